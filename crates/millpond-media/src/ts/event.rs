//! Events of a [`Demultiplexer`](super::Demultiplexer).

use super::tables::{Programme, ProgrammeStreams};
use bytes::Bytes;
use std::fmt;

/// An event of a transport stream. Events have the order of its packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TsEvent {
    /// All programmes, at first and after each change.
    Programmes(Vec<Programme>),
    /// The streams of a programme, at first and after each change.
    Streams(ProgrammeStreams),
    /// A PES packet of a supported stream.
    Unit(PesUnit),
    /// A programme clock reference.
    Clock {
        /// PID of the packet: [`ProgrammeStreams::clock_pid`] of one or several programmes.
        pid: u16,
        /// Ticks of 27 MHz, from 0 to 2^33 × 300 − 1.
        pcr: u64,
        /// Whether the clock does not continue the one before: a stated discontinuity, a step back, or a step of over
        /// 10 s. A wrap is none of these.
        is_discontinuous: bool,
    },
    /// A splice information section (SCTE 35) with a right checksum, from `table_id` to its CRC.
    Cue {
        /// PID of the section.
        pid: u16,
        /// The section.
        section: Bytes,
    },
    /// Damage or a limit. The stream continues.
    Fault(TsFault),
}

/// A PES packet without its header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PesUnit {
    /// PID of the stream.
    pub pid: u16,
    /// Presentation time of the first access unit that begins in the packet, in 90 kHz modulo 2^33.
    pub pts: Option<u64>,
    /// Decoding time of that access unit, if it differs.
    pub dts: Option<u64>,
    /// Payload; up to the damage, where `is_broken`.
    pub data: Bytes,
    /// Offset in the stream of the transport packet in which it begins.
    pub first_packet: u64,
    /// Offset in the stream of the last transport packet with bytes of it.
    pub last_packet: u64,
    /// Whether bytes are missing at the end.
    pub is_broken: bool,
    /// Whether bytes of the stream are missing between the unit before and this one.
    pub follows_loss: bool,
    /// Whether the header states no length: the packet ends where the next packet begins. Only video has such packets.
    pub is_unbounded: bool,
}

/// Longest distance of a timestamp of subtitles from the programme's clock, in ticks of 90 kHz: 10 s.
const FARTHEST: u64 = 10 * 90_000;
/// Ticks of 90 kHz after which timestamps wrap.
const WRAP: u64 = 1 << 33;

impl PesUnit {
    /// Returns the presentation time of subtitles. `clock` is the last one of the programme, in ticks of 90 kHz. It replaces a timestamp that
    /// is missing, or far from it: multiplexers of teletext often state such ones, and decoders show teletext as it arrives.
    #[must_use]
    pub fn text_time(&self, clock: Option<u64>) -> Option<u64> {
        let is_near = |pts: u64| {
            clock.is_none_or(|clock| {
                let forth = pts.wrapping_sub(clock) % WRAP;
                forth.min(WRAP - forth) <= FARTHEST
            })
        };
        self.pts.filter(|pts| is_near(*pts)).or(clock)
    }
}

/// Damage of a stream, and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TsFault {
    /// Offset of the transport packet in the stream, in bytes.
    pub offset: u64,
    /// PID of the packet; `None` where no packet was found.
    pub pid: Option<u16>,
    /// Kind of damage.
    pub kind: TsFaultKind,
}

/// Kind of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TsFaultKind {
    /// No sync byte where a packet should begin.
    SyncLost,
    /// The packet is marked as damaged, or its adaptation field does not fit.
    PacketDamaged,
    /// Packets are missing before this one.
    PacketsMissing {
        /// Counter of the next packet.
        expected: u8,
        /// Counter of this packet.
        found: u8,
    },
    /// A section with a wrong checksum, or with fields that do not fit.
    BadSection,
    /// A PES packet with an invalid header.
    BadUnit,
    /// A PES packet that is shorter than its header states.
    ShortUnit,
    /// A PES packet beyond the limit of bytes. It is dropped.
    UnitTooLarge,
    /// A stream is scrambled. Its packets are ignored; this is reported once until a clear packet arrives.
    Scrambled,
    /// Streams beyond the limit of streams are ignored.
    TooManyStreams,
}

impl fmt::Display for TsFaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SyncLost => write!(f, "no sync byte where a packet should begin"),
            Self::PacketDamaged => write!(f, "a packet marked as damaged"),
            Self::PacketsMissing { expected, found } => {
                write!(f, "continuity counter {found}, expected {expected}: packets are missing")
            }
            Self::BadSection => write!(f, "a section with a wrong checksum or length"),
            Self::BadUnit => write!(f, "a PES packet with an invalid header"),
            Self::ShortUnit => write!(f, "a PES packet shorter than its header states"),
            Self::UnitTooLarge => write!(f, "a PES packet beyond the limit of bytes"),
            Self::Scrambled => write!(f, "a scrambled stream, which is ignored"),
            Self::TooManyStreams => write!(f, "more streams than are read"),
        }
    }
}

impl fmt::Display for TsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pid {
            Some(pid) => write!(f, "PID {pid:#06x} at byte {}: {}", self.offset, self.kind),
            None => write!(f, "transport stream at byte {}: {}", self.offset, self.kind),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subtitles_have_a_time_near_the_clock() {
        let time = |pts, clock| PesUnit { pts, ..PesUnit::default() }.text_time(clock);
        assert_eq!(time(Some(5), None), Some(5));
        assert_eq!(time(None, Some(7)), Some(7));
        assert_eq!(time(None, None), None);
        assert_eq!(time(Some(900_000), Some(0)), Some(900_000));
        assert_eq!(time(Some(900_001), Some(0)), Some(0));
        assert_eq!(time(Some(WRAP - 90_000), Some(0)), Some(WRAP - 90_000), "behind the clock, before it wrapped");
    }
}
