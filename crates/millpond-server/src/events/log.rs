//! The events that are kept for readers.

use super::Event;
use std::{collections::VecDeque, sync::Arc};

/// Most bytes of the kept events.
const BYTES: usize = 16 << 20;
/// Memory of an event beside the bytes of its JSON.
const OVERHEAD: usize = 1024;

/// The newest events, by rising numbers without gaps. Above its bounds the oldest event is dropped.
#[derive(Debug)]
pub(super) struct Log {
    events: VecDeque<Arc<Event>>,
    bytes: usize,
    most: usize,
    newest: u64,
}

/// The next event of a reader.
#[derive(Clone, Debug)]
pub(crate) struct Next {
    /// The event.
    pub(crate) event: Arc<Event>,
    /// Events before it that the reader has lost: they were dropped before it read them.
    pub(crate) skipped: u64,
}

impl Log {
    /// Makes an empty log of at most `most` events.
    pub(super) fn new(most: usize) -> Self {
        Self { events: VecDeque::new(), bytes: 0, most, newest: 0 }
    }

    /// Changes the most events.
    pub(super) fn set_most(&mut self, most: usize) {
        self.most = most;
        self.bound();
    }

    /// Returns the number of the newest event, 0 before the first one.
    pub(super) fn newest(&self) -> u64 {
        self.newest
    }

    /// Adds the event whose number follows that of the newest one.
    pub(super) fn push(&mut self, event: Arc<Event>) {
        self.newest = event.number();
        self.bytes += size(&event);
        self.events.push_back(event);
        self.bound();
    }

    /// Returns the first event after a position, which is the number of an event.
    pub(super) fn after(&self, position: u64) -> Option<Next> {
        let first = self.events.front()?.number();
        let wanted = position.saturating_add(1).max(first);
        let event = self.events.get(usize::try_from(wanted - first).ok()?)?.clone();
        Some(Next { event, skipped: (wanted - 1).saturating_sub(position) })
    }

    fn bound(&mut self) {
        while self.events.len() > self.most.max(1) || (self.bytes > BYTES && self.events.len() > 1) {
            let Some(oldest) = self.events.pop_front() else { return };
            self.bytes -= size(&oldest);
        }
    }
}

fn size(event: &Event) -> usize {
    event.json().len() + OVERHEAD
}

#[cfg(test)]
mod tests {
    use super::{super::event::Emission, *};
    use crate::events::Kind;
    use serde_json::json;
    use std::time::Duration;

    fn event(number: u64, data: &str) -> Arc<Event> {
        let (kind, data) = (Kind::SourceLost, json!({ "why": data }));
        let emission = Emission { id: "1", source: "s", kind, subject: "a", wall: Duration::ZERO, data };
        Arc::new(Event::new(number, Duration::ZERO, &emission))
    }

    #[test]
    fn readers_lose_the_oldest_events() {
        let mut log = Log::new(3);
        assert!(log.after(0).is_none() && log.newest() == 0);
        for number in 1..=5 {
            log.push(event(number, ""));
        }
        let after = |log: &Log, position| log.after(position).map(|next| (next.event.number(), next.skipped));
        assert_eq!(after(&log, 0), Some((3, 2)));
        assert_eq!(after(&log, 1), Some((3, 1)));
        assert_eq!([2, 3, 4].map(|position| after(&log, position)), [3, 4, 5].map(|number| Some((number, 0))));
        assert_eq!([5, 6, u64::MAX].map(|position| after(&log, position)), [None; 3]);
        log.set_most(1);
        assert_eq!((after(&log, 2), log.newest()), (Some((5, 2)), 5));
    }

    #[test]
    fn memory_is_bounded_too() {
        let mut log = Log::new(usize::MAX);
        let text = "x".repeat(1 << 20);
        for number in 1..=100 {
            log.push(event(number, &text));
        }
        assert!(log.bytes <= BYTES && log.events.len() >= 14, "{} {}", log.bytes, log.events.len());
        assert_eq!(log.after(0).unwrap().skipped, 100 - log.events.len() as u64);
    }
}
