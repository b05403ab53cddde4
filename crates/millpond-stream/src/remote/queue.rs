//! Decides which sessions fetch the segments of a title that are asked for.

use super::{error::RemoteError, grid::Grid};
use bytes::Bytes;
use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};
use tokio::{sync::watch, time::Instant};

/// Sessions with the server that fetch segments of one title at a time.
const MOST_SESSIONS: usize = 4;
/// Segments ahead of a session up to which a request waits for it: another session would not be faster.
const REACH: u64 = 2;
/// Segments that a session fetches ahead of requests before it ends, or is held back where another one could not go on from there.
const AHEAD: u64 = 4;
/// Longest time for which a session is held back.
pub(super) const HELD_FOR: Duration = Duration::from_secs(60);
/// Sessions that may fail for one segment.
const TRIES: u8 = 2;
/// Segments that are kept until the store has read them.
const KEPT: usize = 6;
/// Segments that are kept of a server that plays from the beginning only: those that lie between two viewers are not fetched again.
const KEPT_FORWARD: usize = 64;
/// Most bytes of these; one may have more.
const MOST_KEPT: usize = 64 << 20;
/// Longest time for which they are kept.
pub(super) const KEPT_FOR: Duration = Duration::from_secs(60);
/// Longest time for which a segment is waited for.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// The result of fetching a segment.
pub(super) type Fetched = Result<Bytes, RemoteError>;

/// Number of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SessionId(u64);

/// The answer to a request for a segment.
#[derive(Debug)]
pub(super) enum Asked {
    /// It was fetched just now.
    Kept(Bytes),
    /// It is told here. [`FetchQueue::sessions_to_start`] has the sessions that are missing.
    Awaited(watch::Receiver<Option<Fetched>>),
}

/// A session to start, and the segment that it begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ToStart {
    pub(super) id: SessionId,
    pub(super) first: u64,
}

/// How a session continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It fetches the next segment.
    GoOn,
    /// It reads nothing until viewers ask for more: no other session could go on from there.
    Hold,
    /// It ends.
    End,
}

/// Segments that are waited for, sessions that fetch them, and segments that were fetched last. It starts nothing itself.
#[derive(Debug, Default)]
pub(super) struct FetchQueue {
    sessions: Vec<Running>,
    wanted: BTreeMap<u64, Wanted>,
    kept: VecDeque<Kept>,
    /// Segments that a session fetches while a request waits, where the server plays from the beginning only; else `None`.
    forward: Option<u64>,
    /// Number of the next session.
    next_id: u64,
}

/// A session that runs.
#[derive(Debug)]
struct Running {
    id: SessionId,
    /// Segment that it fetches.
    next: u64,
    /// Segments before it that nobody has asked for, in a row.
    unasked: u64,
}

impl Running {
    /// Returns whether it has fetched a segment that its viewers have not reached.
    fn is_ahead(&self, number: u64) -> bool {
        number < self.next && self.next - number <= self.unasked
    }
}

/// A segment that was fetched.
#[derive(Debug)]
struct Kept {
    number: u64,
    bytes: Bytes,
    at: Instant,
}

/// A segment that is waited for.
#[derive(Debug)]
struct Wanted {
    tell: watch::Sender<Option<Fetched>>,
    failures: u8,
}

impl FetchQueue {
    /// Takes a request for a segment.
    pub(super) fn ask(&mut self, number: u64) -> Asked {
        self.forget_old();
        for session in &mut self.sessions {
            if session.is_ahead(number) {
                session.unasked = session.next - number - 1;
            }
        }
        if let Some(kept) = self.kept.iter().find(|kept| kept.number == number) {
            return Asked::Kept(kept.bytes.clone());
        }
        let wanted = self.wanted.entry(number);
        let wanted = wanted.or_insert_with(|| Wanted { tell: watch::Sender::new(None), failures: 0 });
        Asked::Awaited(wanted.tell.subscribe())
    }

    /// Adds a session that begins with a segment.
    pub(super) fn start(&mut self, first: u64) -> ToStart {
        let id = SessionId(self.next_id);
        self.next_id += 1;
        self.sessions.push(Running { id, next: first, unasked: 0 });
        ToStart { id, first }
    }

    /// Adds the sessions for segments that are waited for and that no session will reach soon.
    pub(super) fn sessions_to_start(&mut self, grid: Grid) -> Vec<ToStart> {
        self.forget_abandoned();
        let numbers: Vec<u64> = self.wanted.keys().copied().collect();
        let mut all = Vec::new();
        for number in numbers {
            let nearest = self.sessions.iter().filter_map(|session| number.checked_sub(session.next)).min();
            if nearest.is_some_and(|ahead| ahead <= self.reach()) {
                continue;
            }
            let first = if self.forward.is_some() { 0 } else { number };
            if grid.start(number - first) > PATIENCE {
                let ahead = nearest.map_or(number, |ahead| ahead.min(number));
                self.tell(number, &Err(RemoteError::NotSeekable(grid.start(ahead))));
            } else if self.sessions.len() < MOST_SESSIONS {
                all.push(self.start(first));
            }
        }
        all
    }

    /// Returns the segments ahead of a session up to which requests wait for it.
    fn reach(&self) -> u64 {
        self.forward.map_or(REACH, |reach| reach.max(REACH))
    }

    /// Takes a segment that a session completed. Returns how the session continues.
    pub(super) fn complete(&mut self, id: SessionId, number: u64, bytes: Bytes) -> Step {
        let is_asked = self.tell(number, &Ok(bytes.clone()));
        if let Some(session) = self.sessions.iter_mut().find(|session| session.id == id) {
            session.next = number + 1;
            session.unasked = if is_asked { 0 } else { session.unasked + 1 };
        }
        self.keep(number, bytes);
        self.step(id)
    }

    /// Returns how a session continues.
    pub(super) fn step(&mut self, id: SessionId) -> Step {
        self.forget_abandoned();
        let Some(session) = self.sessions.iter().find(|session| session.id == id) else { return Step::End };
        let last = session.next.saturating_add(self.reach());
        let is_awaited = self.wanted.range(session.next..=last).next().is_some();
        // A server that can't seek does not send a segment twice: its segments stay until viewers reach them.
        let has_room = session.unasked < AHEAD && (self.forward.is_none() || self.kept_bytes() < MOST_KEPT);
        match self.forward {
            _ if is_awaited || has_room => Step::GoOn,
            Some(_) => Step::Hold,
            None => Step::End,
        }
    }

    /// Removes a session that is over. Those who wait for its next segments are told its error, where no other session may help.
    pub(super) fn over(&mut self, id: SessionId, error: Option<&RemoteError>) {
        let Some(place) = self.sessions.iter().position(|session| session.id == id) else { return };
        let session = self.sessions.remove(place);
        self.forget_old();
        let Some(error) = error else { return };
        let all = self.wanted.range(session.next..).map(|(number, _)| *number);
        let concerned: Vec<u64> = all.take_while(|number| *number - session.next <= REACH).collect();
        for number in concerned {
            let failures = self.wanted.get_mut(&number).map_or(0, |wanted| {
                wanted.failures += 1;
                wanted.failures
            });
            if failures >= TRIES || !error.may_pass() {
                self.tell(number, &Err(error.clone()));
            }
        }
    }

    /// Tells an error to all who wait for segments from a number on.
    pub(super) fn refuse_from(&mut self, number: u64, error: &RemoteError) {
        let behind: Vec<u64> = self.wanted.range(number..).map(|(number, _)| *number).collect();
        for number in behind {
            self.tell(number, &Err(error.clone()));
        }
    }

    /// Notes that the server plays from the beginning only. A request waits for a session that is up to `reach` segments behind it. Returns
    /// whether that is new.
    pub(super) fn only_forward(&mut self, reach: u64) -> bool {
        self.forward.replace(reach).is_none()
    }

    /// Forgets segments that the store has not asked for in time.
    pub(super) fn forget_old(&mut self) {
        let (sessions, is_held) = (&self.sessions, self.forward.is_some());
        let is_ahead = |number| is_held && sessions.iter().any(|session| session.is_ahead(number));
        self.kept.retain(|kept| kept.at.elapsed() < KEPT_FOR || is_ahead(kept.number));
    }

    /// Forgets segments that nobody waits for any more.
    fn forget_abandoned(&mut self) {
        self.wanted.retain(|_, wanted| wanted.tell.receiver_count() > 0);
    }

    /// Keeps a segment until the store has read it. Those that viewers have reached leave first.
    fn keep(&mut self, number: u64, bytes: Bytes) {
        self.kept.retain(|kept| kept.number != number);
        self.kept.push_back(Kept { number, bytes, at: Instant::now() });
        let most = if self.forward.is_some() { KEPT_FORWARD } else { KEPT };
        while self.kept.len() > most || (self.kept.len() > 1 && self.kept_bytes() > MOST_KEPT) {
            // The store still reads the last one.
            let older = self.kept.iter().take(self.kept.len() - 1);
            let is_ahead = |kept: &Kept| self.sessions.iter().any(|session| session.is_ahead(kept.number));
            let reached = older.map(is_ahead).position(|is_ahead| !is_ahead);
            self.kept.remove(reached.filter(|_| self.forward.is_some()).unwrap_or(0));
        }
    }

    fn kept_bytes(&self) -> usize {
        self.kept.iter().map(|kept| kept.bytes.len()).sum()
    }

    /// Tells a result to all who wait for a segment. Returns whether there are any.
    fn tell(&mut self, number: u64, result: &Fetched) -> bool {
        let Some(wanted) = self.wanted.remove(&number) else { return false };
        wanted.tell.send_replace(Some(result.clone()));
        wanted.tell.receiver_count() > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source_health::{SourceError, SourceErrorKind};

    const GRID: Grid = Grid { segment: Duration::from_secs(2), length: Duration::from_secs(600) };

    fn awaited(asked: Asked) -> watch::Receiver<Option<Fetched>> {
        match asked {
            Asked::Awaited(told) => told,
            Asked::Kept(_) => panic!("not fetched"),
        }
    }

    fn firsts(started: &[ToStart]) -> Vec<u64> {
        started.iter().map(|session| session.first).collect()
    }

    fn media(number: u64) -> Bytes {
        Bytes::from(number.to_string())
    }

    #[tokio::test]
    async fn requests_share_sessions_and_distant_ones_have_their_own() {
        let mut queue = FetchQueue::default();
        let told: Vec<_> = [5, 5, 7, 50].map(|number| awaited(queue.ask(number))).into();
        let started = queue.sessions_to_start(GRID);
        assert_eq!(firsts(&started), [5, 50], "7 is reached soon");
        assert_eq!(queue.sessions_to_start(GRID), []);
        assert_eq!(queue.complete(started[0].id, 5, media(5)), Step::GoOn);
        let seen = |place: usize| told[place].borrow().clone();
        assert_eq!([seen(0), seen(1), seen(2)], [Some(Ok(media(5))), Some(Ok(media(5))), None]);
        assert!(matches!(queue.ask(5), Asked::Kept(_)), "the store reads further slices");
    }

    #[tokio::test]
    async fn sessions_end_behind_the_last_request() {
        let mut queue = FetchQueue::default();
        let _told = awaited(queue.ask(5));
        let id = queue.sessions_to_start(GRID)[0].id;
        let steps: Vec<Step> = (5..10).map(|number| queue.complete(id, number, media(number))).collect();
        assert_eq!(steps, [Step::GoOn, Step::GoOn, Step::GoOn, Step::GoOn, Step::End]);
        assert!(matches!(queue.ask(7), Asked::Kept(_)));
        let steps = [10, 11].map(|number| queue.complete(id, number, media(number)));
        assert_eq!(steps, [Step::GoOn, Step::End], "a request for what is ahead keeps the session");
    }

    #[tokio::test]
    async fn sessions_are_bounded_and_abandoned_segments_need_none() {
        let mut queue = FetchQueue::default();
        let told: Vec<_> = [10, 20, 30, 40, 50].map(|number| awaited(queue.ask(number))).into();
        assert_eq!(firsts(&queue.sessions_to_start(GRID)), [10, 20, 30, 40]);
        queue.over(SessionId(0), None);
        assert_eq!(firsts(&queue.sessions_to_start(GRID)), [10], "its segment is still waited for");
        queue.over(SessionId(1), None);
        drop(told);
        assert_eq!(queue.sessions_to_start(GRID), []);
    }

    #[tokio::test]
    async fn a_failure_that_may_pass_is_tried_again_once() {
        let mut queue = FetchQueue::default();
        let told = awaited(queue.ask(3));
        let why = SourceError {
            kind: SourceErrorKind::Unreachable,
            address: "rtsp://h".to_owned(),
            words: "the connection ended".to_owned(),
        };
        let error = RemoteError::from(why);
        let first = queue.sessions_to_start(GRID)[0];
        queue.over(first.id, Some(&error));
        assert_eq!(told.borrow().clone(), None);
        let second = queue.sessions_to_start(GRID)[0];
        queue.over(second.id, Some(&error));
        assert_eq!(told.borrow().clone(), Some(Err(error)));
        assert_eq!(queue.sessions_to_start(GRID), []);
    }

    #[tokio::test]
    async fn a_server_that_cannot_seek_plays_from_the_beginning() {
        let mut queue = FetchQueue::default();
        assert!(queue.only_forward(30) && !queue.only_forward(30));
        let (near, far) = (awaited(queue.ask(9)), awaited(queue.ask(200)));
        let started = queue.sessions_to_start(GRID);
        assert_eq!(firsts(&started), [0]);
        let told = far.borrow().clone();
        assert_eq!(told, Some(Err(RemoteError::NotSeekable(Duration::from_secs(400)))), "at once");
        assert!((0..10).all(|number| queue.complete(started[0].id, number, media(number)) == Step::GoOn));
        assert_eq!(near.borrow().clone(), Some(Ok(media(9))));
        let (soon, far) = (awaited(queue.ask(40)), awaited(queue.ask(41)));
        assert_eq!(queue.sessions_to_start(GRID), [], "the session will come there");
        assert_eq!(soon.borrow().clone(), None);
        assert_eq!(far.borrow().clone(), Some(Err(RemoteError::NotSeekable(Duration::from_secs(62)))));
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_that_cannot_be_repeated_is_held_back_for_its_viewer() {
        let mut queue = FetchQueue::default();
        queue.only_forward(30);
        let _told = awaited(queue.ask(0));
        let id = queue.sessions_to_start(GRID)[0].id;
        let mut step = Step::GoOn;
        let mut sent = 0;
        for shown in 0..200 {
            while step == Step::GoOn {
                step = queue.complete(id, sent, media(sent));
                sent += 1;
            }
            assert_eq!((step, sent), (Step::Hold, shown + 1 + AHEAD));
            // The viewer is slow: what waits for it is older than other segments may become.
            tokio::time::sleep(Duration::from_secs(20)).await;
            queue.forget_old();
            assert!(matches!(queue.ask(shown + 1), Asked::Kept(_)), "{shown}");
            step = queue.step(id);
        }
        queue.over(id, None);
        tokio::time::sleep(KEPT_FOR).await;
        queue.forget_old();
        assert!(queue.kept.is_empty());
    }

    #[tokio::test]
    async fn held_sessions_keep_no_more_than_their_bound() {
        let mut queue = FetchQueue::default();
        queue.only_forward(30);
        let _told = awaited(queue.ask(0));
        let id = queue.sessions_to_start(GRID)[0].id;
        let large = Bytes::from(vec![0; MOST_KEPT / 2]);
        assert_eq!([0, 1].map(|number| queue.complete(id, number, large.clone())), [Step::GoOn, Step::Hold]);
        // The viewer reaches segment 1, and waits for the next one: the oldest leaves.
        assert!(matches!(queue.ask(1), Asked::Kept(_)));
        let _told = awaited(queue.ask(2));
        assert_eq!(queue.step(id), Step::GoOn);
        queue.complete(id, 2, large.clone());
        assert_eq!(queue.kept.iter().map(|kept| kept.number).collect::<Vec<_>>(), [1, 2]);
    }

    #[tokio::test]
    async fn a_viewer_is_not_robbed_by_one_ahead() {
        let mut queue = FetchQueue::default();
        queue.only_forward(30);
        let _told = awaited(queue.ask(0));
        let id = queue.sessions_to_start(GRID)[0].id;
        queue.complete(id, 0, media(0));
        let _ahead = awaited(queue.ask(20));
        assert!((1..=20).all(|number| queue.complete(id, number, media(number)) == Step::GoOn));
        assert!((1..=20).all(|number| matches!(queue.ask(number), Asked::Kept(_))));
    }
}
