//! The changes of a node's copy, for those that follow it.

use super::{GossipError, GossipStamp};
use std::{collections::VecDeque, sync::Arc};

/// Most changes that are kept, and most bytes of them. A reader that is further behind reads all keys anew.
const MOST: (usize, usize) = (16_384, 16 << 20);

/// A key with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GossipPair {
    /// The key.
    pub key: String,
    /// Its value.
    pub value: Arc<str>,
    /// Stamp of the last change.
    pub revision: GossipStamp,
    /// Stamp of the change that made the key.
    pub created: GossipStamp,
}

/// A change of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GossipEvent {
    /// A key has a value.
    Put(GossipPair),
    /// A key is gone.
    Delete(String),
}

impl GossipEvent {
    pub(super) fn key(&self) -> &str {
        match self {
            Self::Put(pair) => &pair.key,
            Self::Delete(key) => key,
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::Put(pair) => pair.key.len() + pair.value.len(),
            Self::Delete(key) => key.len(),
        }
    }
}

/// The last changes of a copy, with their sequence numbers.
#[derive(Debug, Default)]
pub(super) struct ChangeLog {
    events: VecDeque<(u64, GossipEvent)>,
    bytes: usize,
    sequence: u64,
    /// Number of the last change that is forgotten.
    forgotten: u64,
}

impl ChangeLog {
    /// Number of the last change.
    pub(super) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Numbers a change that no reader sees.
    pub(super) fn silent(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// Numbers and keeps a change.
    pub(super) fn push(&mut self, event: GossipEvent) -> u64 {
        let sequence = self.silent();
        self.bytes += event.size();
        self.events.push_back((sequence, event));
        while self.events.len() > MOST.0 || self.bytes > MOST.1 {
            let Some((number, oldest)) = self.events.pop_front() else { break };
            self.bytes -= oldest.size();
            self.forgotten = number;
        }
        sequence
    }

    /// The changes from a number on.
    pub(super) fn from(&self, from: u64) -> Result<impl Iterator<Item = &GossipEvent>, GossipError> {
        if from <= self.forgotten {
            return Err(GossipError::Forgotten(self.forgotten + 1));
        }
        let begin = self.events.partition_point(|(number, _)| *number < from);
        Ok(self.events.range(begin..).map(|(_, event)| event))
    }
}
