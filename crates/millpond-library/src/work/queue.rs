//! The jobs that wait for a thread, with fair shares by kind and by client.

use super::asker::Asker;
use millpond_media::Work;
use std::collections::VecDeque;

/// Jobs that may wait for a thread.
pub(super) const MOST_WAITING: usize = 1024;
/// Jobs of one client that may wait.
const MOST_OF_CLIENT: usize = MOST_WAITING / 4;

/// Kind of a job. Jobs of an earlier kind run first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JobKind {
    /// Indexes, playlists and manifests: playback waits for them.
    #[default]
    Text,
    /// Images, which players do without. They leave one thread to other jobs.
    Picture,
}

/// A job that waits.
pub(super) struct Job {
    pub(super) id: u64,
    pub(super) kind: JobKind,
    pub(super) work: Work,
    pub(super) run: Box<dyn FnOnce() + Send>,
}

/// Waiting jobs: texts before pictures, and the clients of each kind in turn.
#[derive(Default)]
pub(super) struct Queue {
    texts: Rota,
    pictures: Rota,
    len: usize,
}

/// Jobs of one kind, by client. The first client is the next one.
#[derive(Default)]
struct Rota(VecDeque<(Option<Asker>, VecDeque<Job>)>);

impl Queue {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds a job of a client. Returns how many jobs wait and how many may, where that is too many.
    pub(super) fn push(&mut self, asker: Option<Asker>, job: Job) -> Result<(), (usize, usize)> {
        if self.len >= MOST_WAITING {
            return Err((self.len, MOST_WAITING));
        }
        if asker.is_some() {
            let waiting = self.texts.count(asker) + self.pictures.count(asker);
            if waiting >= MOST_OF_CLIENT {
                return Err((waiting, MOST_OF_CLIENT));
            }
        }
        self.rota(job.kind).push(asker, job);
        self.len += 1;
        Ok(())
    }

    /// Takes the next job; a picture only where `has_room` for one.
    pub(super) fn pop(&mut self, has_room: bool) -> Option<Job> {
        let job = self.texts.pop().or_else(|| has_room.then(|| self.pictures.pop()).flatten())?;
        self.len -= 1;
        Some(job)
    }

    /// Removes a job.
    pub(super) fn remove(&mut self, id: u64) -> Option<Job> {
        let job = self.texts.remove(id).or_else(|| self.pictures.remove(id))?;
        self.len -= 1;
        Some(job)
    }

    fn rota(&mut self, kind: JobKind) -> &mut Rota {
        match kind {
            JobKind::Text => &mut self.texts,
            JobKind::Picture => &mut self.pictures,
        }
    }
}

impl Rota {
    fn count(&self, asker: Option<Asker>) -> usize {
        self.0.iter().find(|(other, _)| *other == asker).map_or(0, |(_, jobs)| jobs.len())
    }

    fn push(&mut self, asker: Option<Asker>, job: Job) {
        match self.0.iter_mut().find(|(other, _)| *other == asker) {
            Some((_, jobs)) => jobs.push_back(job),
            None => self.0.push_back((asker, VecDeque::from([job]))),
        }
    }

    fn pop(&mut self) -> Option<Job> {
        let (asker, mut jobs) = self.0.pop_front()?;
        let job = jobs.pop_front();
        if !jobs.is_empty() {
            self.0.push_back((asker, jobs));
        }
        job
    }

    fn remove(&mut self, id: u64) -> Option<Job> {
        let find = |jobs: &VecDeque<Job>| jobs.iter().position(|job| job.id == id);
        let (turn, place) = self.0.iter().enumerate().find_map(|(turn, (_, jobs))| Some((turn, find(jobs)?)))?;
        let (_, jobs) = self.0.get_mut(turn)?;
        let job = jobs.remove(place);
        if jobs.is_empty() {
            self.0.remove(turn);
        }
        job
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    fn asker(number: u8) -> Option<Asker> {
        Some(Asker::from(IpAddr::from([10, 0, 0, number])))
    }

    fn job(id: u64, kind: JobKind) -> Job {
        Job { id, kind, work: Work::unlimited(), run: Box::new(|| ()) }
    }

    fn order(queue: &mut Queue) -> Vec<u64> {
        std::iter::from_fn(|| queue.pop(true)).map(|job| job.id).collect()
    }

    #[test]
    fn texts_run_before_pictures_and_clients_take_turns() {
        let mut queue = Queue::default();
        for (id, client, kind) in [
            (1, 1, JobKind::Picture),
            (2, 1, JobKind::Text),
            (3, 1, JobKind::Text),
            (4, 1, JobKind::Text),
            (5, 2, JobKind::Text),
            (6, 3, JobKind::Picture),
            (7, 1, JobKind::Picture),
        ] {
            queue.push(asker(client), job(id, kind)).unwrap();
        }
        assert_eq!(order(&mut queue), [2, 5, 3, 4, 1, 6, 7]);
        assert_eq!(queue.len(), 0);
    }

    #[test]
    fn a_client_cannot_fill_the_queue_and_pictures_wait_for_room() {
        let mut queue = Queue::default();
        for id in 0..MOST_OF_CLIENT as u64 {
            queue.push(asker(1), job(id, JobKind::Picture)).unwrap();
        }
        assert_eq!(queue.push(asker(1), job(1000, JobKind::Text)), Err((MOST_OF_CLIENT, MOST_OF_CLIENT)));
        assert!(queue.pop(false).is_none());
        queue.push(asker(2), job(1001, JobKind::Text)).unwrap();
        assert_eq!(queue.pop(false).map(|job| job.id), Some(1001));
        assert_eq!(queue.remove(7).map(|job| job.id), Some(7));
        assert!(queue.remove(7).is_none());
        assert_eq!(queue.len(), MOST_OF_CLIENT - 1);
    }
}
