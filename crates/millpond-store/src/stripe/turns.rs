//! Requests to one store in order, as many at once as its link carries.
//!
//! Requests that share a thin link all arrive late, the first one too. So the next request leaves when little is left of those
//! before it: what the store sends within a request's delay. A far and fast store gets many at once, a thin one gets one.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Mutex as Line, Notify};
use tokio::time::Instant;

use crate::schedule::{LinkState, Meter, Seconds};

/// Time that the requests under way may still take when another one leaves; at least that of two delays.
const QUEUE: Seconds = 0.05;
/// Most requests under way at one store.
const AT_ONCE: usize = 16;

/// The link to one store, and the requests that wait for it.
#[derive(Debug)]
pub(super) struct Turns {
    /// The first in line holds it. Others get it in the order in which they came.
    line: Line<()>,
    /// A lock, held briefly.
    link: Mutex<Link>,
    /// Told when bytes arrive and when a request ends.
    changed: Notify,
    started: Instant,
}

#[derive(Debug, Default)]
struct Link {
    meter: Meter,
    under_way: usize,
}

impl Link {
    /// Returns whether another request may leave.
    fn has_room(&self) -> bool {
        let LinkState { busy, least_delay, .. } = self.meter.state();
        self.under_way == 0 || (self.under_way < AT_ONCE && busy <= QUEUE.max(2.0 * least_delay))
    }
}

impl Turns {
    pub(super) fn new() -> Self {
        Self { line: Line::new(()), link: Mutex::default(), changed: Notify::new(), started: Instant::now() }
    }

    fn link(&self) -> MutexGuard<'_, Link> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Seconds {
        self.started.elapsed().as_secs_f64()
    }

    /// Waits for the turn of a request for so many bytes. Cancel safe.
    pub(super) async fn take(&self, bytes: u64) -> Turn<'_> {
        let _first = self.line.lock().await;
        loop {
            let changed = self.changed.notified();
            {
                let mut link = self.link();
                if link.has_room() {
                    let tells = link.meter.tells_delay();
                    link.under_way += 1;
                    link.meter.requested(bytes);
                    let asked = tells.then(|| self.now());
                    return Turn { turns: self, asked, rest: bytes, has_begun: false };
                }
            }
            changed.await;
        }
    }
}

/// A request under way.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    turns: &'a Turns,
    /// The time of the request, if the time to its first byte measures the delay.
    asked: Option<Seconds>,
    rest: u64,
    has_begun: bool,
}

impl Turn<'_> {
    /// Counts bytes that arrived.
    pub(super) fn arrived(&mut self, bytes: u64) {
        let (bytes, now) = (bytes.min(self.rest), self.turns.now());
        let meter = &mut self.turns.link().meter;
        if std::mem::replace(&mut self.has_begun, true) {
            meter.arrived(now, bytes);
        } else {
            meter.begins(now, self.asked.map(|asked| now - asked), bytes);
        }
        self.rest -= bytes;
        self.turns.changed.notify_one();
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let now = self.turns.now();
        let mut link = self.turns.link();
        link.under_way = link.under_way.saturating_sub(1);
        link.meter.ends(now, self.rest, self.has_begun);
        drop(link);
        self.turns.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;

    /// Starts `count` requests for 500 kB at a store that sends so many bytes a second, to all requests alike, the first after
    /// `delay` milliseconds. Returns the order of their ends, and the most that were under way.
    async fn run(count: usize, rate: u64, delay: u64) -> (Vec<usize>, usize) {
        let (turns, ends) = (Arc::new(Turns::new()), Arc::new(Mutex::new(Vec::new())));
        let most = Arc::new(Mutex::new(0));
        let tasks: Vec<_> = (0..count)
            .map(|number| {
                let (turns, ends, most) = (turns.clone(), ends.clone(), most.clone());
                tokio::spawn(async move {
                    let mut turn = turns.take(500_000).await;
                    tokio::time::sleep(Duration::from_millis(delay)).await;
                    let mut rest = 500_000;
                    while rest > 0 {
                        tokio::time::sleep(Duration::from_millis(10)).await;
                        let under_way = turns.link().under_way as u64;
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
        let first = turns.take(1_000_000).await;
        for _ in 0..3 {
            assert!(tokio::time::timeout(Duration::from_secs(1), turns.take(1)).await.is_err());
        }
        drop(first);
        assert!(tokio::time::timeout(Duration::from_secs(1), turns.take(1)).await.is_ok());
    }
}
