//! Damage of received media in the log, once a minute at most.

use millpond_media::ts::{FrameFault, SpliceError, TsFault};
use std::{fmt, time::Duration};

/// Time between two lines of the log.
const INTERVAL: Duration = Duration::from_secs(60);

/// Counts damage.
#[derive(Debug, Default)]
pub(in crate::reception) struct Faults {
    /// Faults since the last line.
    count: u64,
    last: Option<Fault>,
    /// Pieces that were dropped so far because too many waited.
    dropped: u64,
    /// Time of the last line.
    told: Option<Duration>,
}

/// The last fault.
#[derive(Clone, Debug)]
enum Fault {
    Stream(TsFault),
    Frame { pid: u16, fault: FrameFault },
    Cue { pid: u16, error: SpliceError },
    Fragment(String),
    Dropped,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stream(fault) => fault.fmt(f),
            Self::Frame { pid, fault } => write!(f, "PID {pid:#06x}: {fault}"),
            Self::Cue { pid, error } => write!(f, "PID {pid:#06x}: {error}"),
            Self::Fragment(words) => f.write_str(words),
            Self::Dropped => f.write_str("packets dropped because too many waited"),
        }
    }
}

impl Faults {
    /// Takes damage of packets.
    pub(in crate::reception) fn stream(&mut self, fault: TsFault) {
        self.take(1, Fault::Stream(fault));
    }

    /// Takes damage of a frame.
    pub(in crate::reception) fn frame(&mut self, pid: u16, fault: FrameFault) {
        self.take(1, Fault::Frame { pid, fault });
    }

    /// Takes a cue that can't be read.
    pub(in crate::reception) fn cue(&mut self, pid: u16, error: SpliceError) {
        self.take(1, Fault::Cue { pid, error });
    }

    /// Takes damage of fragmented MP4, or of an FLV tag.
    pub(in crate::reception) fn fragment(&mut self, words: String) {
        self.take(1, Fault::Fragment(words));
    }

    /// Takes the number of pieces that were dropped so far.
    pub(super) fn dropped(&mut self, so_far: u64) {
        let new = so_far.saturating_sub(self.dropped);
        self.dropped = so_far;
        if new > 0 {
            self.take(new, Fault::Dropped);
        }
    }

    fn take(&mut self, count: u64, fault: Fault) {
        self.count += count;
        self.last = Some(fault);
    }

    /// Returns the number of faults since the last line, and the last fault, where a line is due.
    pub(in crate::reception) fn due(&mut self, now: Duration) -> Option<(u64, String)> {
        if self.told.is_some_and(|told| now < told + INTERVAL) {
            return None;
        }
        let last = self.last.take()?;
        self.told = Some(now);
        Some((std::mem::take(&mut self.count), last.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_told_once_a_minute() {
        let mut faults = Faults::default();
        let at = Duration::from_secs;
        assert_eq!(faults.due(at(0)), None);
        faults.frame(0x100, FrameFault::Garbage);
        assert_eq!(faults.due(at(1)), Some((1, "PID 0x0100: bytes that are no frame".to_owned())));
        faults.frame(0x100, FrameFault::Garbage);
        faults.dropped(5);
        assert_eq!(faults.due(at(60)), None);
        assert_eq!(faults.due(at(61)), Some((6, "packets dropped because too many waited".to_owned())));
        assert_eq!(faults.due(at(200)), None);
    }
}
