//! Requests to one store in the order of their deadlines, with as many in progress as its link can carry.
//!
//! Requests that share a thin link all arrive late, the first one too. So the next request leaves when the earlier requests have
//! few bytes left: the bytes that the store sends within a request's delay. A far and fast store gets many at once, a thin one
//! gets one. The one that leaves is the one that is needed first.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::due::Due;
use crate::schedule::{LinkState, Meter, Seconds};

/// Time that the requests under way may still take when another one leaves; at least that of two delays.
const QUEUE: Seconds = 0.05;
/// Most requests under way at one store.
const AT_ONCE: usize = 16;

/// The time at which a piece of a read is needed.
#[derive(Clone, Debug)]
pub(super) struct PieceDue {
    /// That of the whole read.
    pub(super) read: Due,
    /// Time from the begin of the read to the request for the piece: later pieces are needed later.
    pub(super) after: Duration,
}

impl PieceDue {
    fn at(&self) -> Instant {
        self.read.at() + self.after
    }
}

/// The link to one store, and the requests that wait for it.
#[derive(Debug)]
pub(super) struct Turns {
    /// A lock, held briefly.
    state: Mutex<State>,
    started: Instant,
}

#[derive(Debug, Default)]
struct State {
    meter: Meter,
    under_way: usize,
    waiting: Vec<Waiting>,
    /// Number of the next request in line.
    next: u64,
}

/// A request in line.
#[derive(Debug)]
struct Waiting {
    due: PieceDue,
    /// Of two requests with one deadline the one that came first leaves first.
    number: u64,
    bytes: u64,
    granted: oneshot::Sender<Turn>,
}

impl State {
    /// Returns whether another request may leave.
    fn has_room(&self) -> bool {
        let LinkState { busy, least_delay, .. } = self.meter.state();
        self.under_way == 0 || (self.under_way < AT_ONCE && busy <= QUEUE.max(2.0 * least_delay))
    }

    /// Takes the request out of the line that is needed first.
    fn first(&mut self) -> Option<Waiting> {
        self.waiting.retain(|waiting| !waiting.granted.is_closed());
        let keyed = self.waiting.iter().map(|waiting| (waiting.due.at(), waiting.number)).enumerate();
        let (place, _) = keyed.min_by_key(|(_, key)| *key)?;
        Some(self.waiting.swap_remove(place))
    }
}

impl Turns {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), started: Instant::now() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Seconds {
        self.started.elapsed().as_secs_f64()
    }

    /// Returns the measured rate of the store in bytes a second; `None` before it was measured.
    pub(super) fn rate(&self) -> Option<f64> {
        self.state().meter.measured()
    }

    /// Waits for the turn of a request for `bytes` bytes. Cancel safe.
    pub(super) async fn take(self: &Arc<Self>, bytes: u64, due: PieceDue) -> Turn {
        loop {
            let (granted, turn) = oneshot::channel();
            {
                let mut state = self.state();
                let number = state.next;
                state.next += 1;
                state.waiting.push(Waiting { due: due.clone(), number, bytes, granted });
            }
            self.grant();
            // A request stays in line while this waits, so there is one turn.
            if let Ok(turn) = turn.await {
                return turn;
            }
        }
    }

    /// Lets requests leave while the link has room.
    fn grant(self: &Arc<Self>) {
        loop {
            let (granted, turn) = {
                let mut state = self.state();
                if !state.has_room() {
                    return;
                }
                let Some(Waiting { bytes, granted, .. }) = state.first() else { return };
                let tells = state.meter.tells_delay();
                state.under_way += 1;
                state.meter.requested(bytes);
                let asked = tells.then(|| self.now());
                (granted, Turn { turns: self.clone(), asked, rest: bytes, has_begun: false })
            };
            // The turn of a reader that has left ends at once.
            drop(granted.send(turn));
        }
    }
}

/// A request under way.
#[derive(Debug)]
pub(super) struct Turn {
    turns: Arc<Turns>,
    /// The time of the request, if the time to its first byte measures the delay.
    asked: Option<Seconds>,
    rest: u64,
    has_begun: bool,
}

impl Turn {
    /// Counts bytes that arrived.
    pub(super) fn arrived(&mut self, bytes: u64) {
        let (bytes, now) = (bytes.min(self.rest), self.turns.now());
        let mut state = self.turns.state();
        if std::mem::replace(&mut self.has_begun, true) {
            state.meter.arrived(now, bytes);
        } else {
            state.meter.begins(now, self.asked.map(|asked| now - asked), bytes);
        }
        drop(state);
        self.rest -= bytes;
        self.turns.grant();
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let now = self.turns.now();
        let mut state = self.turns.state();
        state.under_way = state.under_way.saturating_sub(1);
        state.meter.ends(now, self.rest, self.has_begun);
        drop(state);
        self.turns.grant();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Needed in `seconds` from now on.
    fn needed(seconds: u64) -> PieceDue {
        PieceDue { read: Due::new(Instant::now() + Duration::from_secs(seconds)), after: Duration::ZERO }
    }

    /// Starts `count` requests for 500 kB at a store that sends so many bytes a second, to all requests alike, the first after
    /// `delay` milliseconds. Returns the order of their ends, and the most that were under way.
    async fn run(count: usize, rate: u64, delay: u64) -> (Vec<usize>, usize) {
        let (turns, ends) = (Turns::new(), Arc::new(Mutex::new(Vec::new())));
        let most = Arc::new(Mutex::new(0));
        let tasks: Vec<_> = (0..count)
            .map(|number| {
                let (turns, ends, most) = (turns.clone(), ends.clone(), most.clone());
                tokio::spawn(async move {
                    let mut turn = turns.take(500_000, needed(0)).await;
                    tokio::time::sleep(Duration::from_millis(delay)).await;
                    let mut rest = 500_000;
                    while rest > 0 {
                        tokio::time::sleep(Duration::from_millis(10)).await;
                        let under_way = turns.state().under_way as u64;
                        let mut most = most.lock().unwrap();
                        *most = under_way.max(*most);
                        let bytes = (rate / 100 / under_way).min(rest);
                        turn.arrived(bytes);
                        rest -= bytes;
                    }
                    drop(turn);
                    ends.lock().unwrap().push(number);
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        let ends = ends.lock().unwrap().clone();
        let most = *most.lock().unwrap() as usize;
        (ends, most)
    }

    #[tokio::test(start_paused = true)]
    async fn a_thin_store_gets_one_request_after_the_other_in_order() {
        let (ends, most) = run(8, 500_000, 0).await;
        assert_eq!(ends, (0..8).collect::<Vec<_>>());
        assert!(most <= 2, "{most}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_far_and_fast_store_gets_many_at_once() {
        let (ends, most) = run(200, 40_000_000, 50).await;
        assert_eq!(ends.len(), 200);
        assert!((4..=AT_ONCE).contains(&most), "{most}");
    }

    #[tokio::test(start_paused = true)]
    async fn who_leaves_the_line_holds_up_nobody() {
        let turns = Turns::new();
        let first = turns.take(1_000_000, needed(0)).await;
        for _ in 0..3 {
            assert!(tokio::time::timeout(Duration::from_secs(1), turns.take(1, needed(0))).await.is_err());
        }
        drop(first);
        assert!(tokio::time::timeout(Duration::from_secs(1), turns.take(1, needed(0))).await.is_ok());
        assert_eq!(turns.state().under_way, 0);
        assert!(turns.state().waiting.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_needed_first_leaves_first_and_a_deadline_may_move() {
        let turns = Turns::new();
        let first = turns.take(1_000_000, needed(0)).await;
        let order = Arc::new(Mutex::new(Vec::new()));
        let moved = needed(60);
        let mut tasks = Vec::new();
        for (name, due) in [('d', needed(30)), ('b', needed(5)), ('c', needed(5)), ('a', moved.clone())] {
            let (turns, order) = (turns.clone(), order.clone());
            tasks.push(tokio::spawn(async move {
                let _turn = turns.take(1_000_000, due).await;
                order.lock().unwrap().push(name);
                tokio::time::sleep(Duration::from_secs(1)).await;
            }));
            tokio::task::yield_now().await;
        }
        moved.read.sooner(Instant::now());
        drop(first);
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), ['a', 'b', 'c', 'd']);
    }
}
