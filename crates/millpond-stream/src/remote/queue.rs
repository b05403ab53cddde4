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
/// Segments that a session fetches ahead of requests before it ends.
const AHEAD: u64 = 4;
/// Sessions that may fail for one segment.
const TRIES: u8 = 2;
/// Segments that are kept until the store has read them.
const KEPT: usize = 6;
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

/// Segments that are waited for, sessions that fetch them, and segments that were fetched last. It starts nothing itself.
#[derive(Debug, Default)]
pub(super) struct FetchQueue {
    sessions: Vec<Running>,
    wanted: BTreeMap<u64, Wanted>,
    kept: VecDeque<Kept>,
    /// Whether the server plays from the beginning only.
    only_forward: bool,
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
            if session.next > number && session.next - number <= AHEAD {
                session.unasked = 0;
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
            let reach = if self.only_forward { u64::MAX } else { REACH };
            let is_reached = |session: &Running| session.next <= number && number - session.next <= reach;
            if self.sessions.iter().any(is_reached) {
                continue;
            }
            let first = if self.only_forward { 0 } else { number };
            let ahead = grid.start(number - first);
            if ahead > PATIENCE {
                self.tell(number, &Err(RemoteError::NotSeekable(ahead)));
            } else if self.sessions.len() < MOST_SESSIONS {
                all.push(self.start(first));
            }
        }
        all
    }

    /// Takes a segment that a session completed. Returns whether the session should go on.
    pub(super) fn complete(&mut self, id: SessionId, number: u64, bytes: Bytes) -> bool {
        let is_asked = self.tell(number, &Ok(bytes.clone()));
        self.keep(number, bytes);
        self.forget_abandoned();
        let next = number + 1;
        let last = next.saturating_add(if self.only_forward { u64::MAX } else { REACH });
        let is_awaited = self.wanted.range(next..=last).next().is_some();
        let Some(session) = self.sessions.iter_mut().find(|session| session.id == id) else { return false };
        session.next = next;
        session.unasked = if is_asked { 0 } else { session.unasked + 1 };
        is_awaited || session.unasked < AHEAD
    }

    /// Removes a session that is over. Those who wait for its next segments are told its error, where no other session may help.
    pub(super) fn over(&mut self, id: SessionId, error: Option<&RemoteError>) {
        let Some(place) = self.sessions.iter().position(|session| session.id == id) else { return };
        let session = self.sessions.remove(place);
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

    /// Notes that the server plays from the beginning only. Returns whether that is new.
    pub(super) fn only_forward(&mut self) -> bool {
        !std::mem::replace(&mut self.only_forward, true)
    }

    /// Forgets segments that the store has not asked for in time.
    pub(super) fn forget_old(&mut self) {
        self.kept.retain(|kept| kept.at.elapsed() < KEPT_FOR);
    }

    /// Forgets segments that nobody waits for any more.
    fn forget_abandoned(&mut self) {
        self.wanted.retain(|_, wanted| wanted.tell.receiver_count() > 0);
    }

    /// Keeps a segment until the store has read it.
    fn keep(&mut self, number: u64, bytes: Bytes) {
        self.kept.retain(|kept| kept.number != number);
        self.kept.push_back(Kept { number, bytes, at: Instant::now() });
        let bytes = |kept: &VecDeque<Kept>| kept.iter().map(|kept| kept.bytes.len()).sum::<usize>();
        while self.kept.len() > KEPT || (self.kept.len() > 1 && bytes(&self.kept) > MOST_KEPT) {
            self.kept.pop_front();
        }
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
        assert!(queue.complete(started[0].id, 5, media(5)));
        let seen = |place: usize| told[place].borrow().clone();
        assert_eq!([seen(0), seen(1), seen(2)], [Some(Ok(media(5))), Some(Ok(media(5))), None]);
        assert!(matches!(queue.ask(5), Asked::Kept(_)), "the store reads further slices");
    }

    #[tokio::test]
    async fn sessions_end_behind_the_last_request() {
        let mut queue = FetchQueue::default();
        let _told = awaited(queue.ask(5));
        let id = queue.sessions_to_start(GRID)[0].id;
        let goes_on: Vec<bool> = (5..10).map(|number| queue.complete(id, number, media(number))).collect();
        assert_eq!(goes_on, [true, true, true, true, false]);
        assert!(matches!(queue.ask(9), Asked::Kept(_)));
        assert!(queue.complete(id, 10, media(10)), "a request for what is ahead keeps the session");
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
        let (near, far) = (awaited(queue.ask(9)), awaited(queue.ask(200)));
        assert!(queue.only_forward() && !queue.only_forward());
        let started = queue.sessions_to_start(GRID);
        assert_eq!(firsts(&started), [0]);
        assert!((0..9).all(|number| queue.complete(started[0].id, number, media(number))));
        assert!(queue.complete(started[0].id, 9, media(9)));
        assert_eq!(near.borrow().clone(), Some(Ok(media(9))));
        assert_eq!(far.borrow().clone(), None, "the session will come there");
        queue.over(started[0].id, None);
        assert_eq!(queue.sessions_to_start(GRID), []);
        let told = far.borrow().clone();
        assert!(matches!(told, Some(Err(RemoteError::NotSeekable(_)))), "{told:?}");
    }
}
