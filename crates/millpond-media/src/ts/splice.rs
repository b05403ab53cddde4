//! Splice information sections (ANSI/SCTE 35 2023r1): where an insertion can begin in a programme, and where the programme
//! resumes.

use super::section::checksum;
use crate::bits::BitReader;
use thiserror::Error;

/// `table_id` of a splice information section (9.6).
const TABLE: u32 = 0xfc;
/// `splice_command_type` (9.6.1).
mod command {
    pub(super) const NULL: u8 = 0x00;
    pub(super) const INSERT: u8 = 0x05;
    pub(super) const TIME_SIGNAL: u8 = 0x06;
    pub(super) const BANDWIDTH_RESERVATION: u8 = 0x07;
}
/// `splice_descriptor_tag` of a segmentation descriptor, and its identifier `CUEI` (10.3.3).
const SEGMENTATION: u32 = 0x02;
const CUEI: u32 = 0x4355_4549;
/// Bytes of a section up to its length field's end, and of its CRC.
const HEADER: usize = 3;
const CRC: usize = 4;
/// `splice_command_length` of older senders, which do not state it.
const UNSTATED: u32 = 0xfff;
/// Bits of a time.
const CLOCK: u64 = (1 << 33) - 1;
/// Bits that each component of a segmentation descriptor takes.
const COMPONENT: usize = 48;
/// Most events of a section that are read: no sender has more.
const MOST_EVENTS: usize = 16;

/// A splice information section that announces something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpliceSection {
    /// `splice_command_type`.
    pub command: u8,
    /// Presentation time in 90 kHz modulo 2^33, with `pts_adjustment` added; `None` where the command has none: at once.
    pub time: Option<u64>,
    /// Events of a `splice_insert` or `time_signal`, at most 16. Other commands have none.
    pub events: Vec<SpliceEvent>,
}

/// An event of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpliceEvent {
    /// `splice_event_id` or `segmentation_event_id`.
    pub number: u32,
    /// Field that states it.
    pub kind: SpliceKind,
    /// Effect of the event on the programme.
    pub meaning: SpliceMeaning,
    /// Duration in ticks of 90 kHz, where it is stated: 33 bits, or 40 of a segment.
    pub duration: Option<u64>,
    /// Whether the break ends automatically after its duration (`auto_return`).
    pub returns: bool,
}

/// Field that states an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpliceKind {
    /// A `splice_insert` command (9.7.3).
    Insert,
    /// A segmentation descriptor (10.3.3), with its `segmentation_type_id`; 0 where the event is cancelled.
    Segment(u8),
}

/// Effect of an event on the programme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpliceMeaning {
    /// A break begins: the programme may be left.
    Out,
    /// The break ends, and the programme resumes.
    In,
    /// The announced event does not take place.
    Cancelled,
    /// A segment of another kind begins or ends, such as a programme or a chapter.
    Other,
}

/// Why a section can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SpliceError {
    /// It has another `table_id`.
    #[error("no splice information section: its table_id is {0:#04x}")]
    OtherTable(u8),
    /// The CRC-32 or the length does not fit.
    #[error("a splice information section with a wrong checksum or length")]
    BadChecksum,
    /// It has a later version of the syntax.
    #[error("a splice information section of version {0}, only version 0 is known")]
    Version(u8),
    /// It is encrypted, with this `encryption_algorithm` (11.3).
    #[error("an encrypted splice information section ({})", algorithm(*.0))]
    Encrypted(u8),
    /// A field ends behind its section.
    #[error("a splice information section whose fields are cut off")]
    CutOff,
}

/// Name of an encryption algorithm (table 31).
fn algorithm(number: u8) -> &'static str {
    match number {
        1 => "DES in ECB mode",
        2 => "DES in CBC mode",
        3 => "triple DES",
        _ => "unknown algorithm",
    }
}

impl SpliceSection {
    /// Reads a section, from its `table_id` to its CRC. `None` for commands that announce nothing: `splice_null` and
    /// `bandwidth_reservation`.
    ///
    /// # Errors
    /// Another table, a wrong checksum, encryption, and fields that do not fit.
    pub fn read(section: &[u8]) -> Result<Option<Self>, SpliceError> {
        let table = section.first().copied().ok_or(SpliceError::CutOff)?;
        if u32::from(table) != TABLE {
            return Err(SpliceError::OtherTable(table));
        }
        let body = section.len().checked_sub(CRC).and_then(|end| section.get(..end)).ok_or(SpliceError::CutOff)?;
        if checksum(section) != 0 {
            return Err(SpliceError::BadChecksum);
        }
        let mut bits = BitReader::new(body);
        let head = Head::read(&mut bits).ok_or(SpliceError::CutOff)?;
        if head.length + HEADER != section.len() {
            return Err(SpliceError::BadChecksum);
        }
        match head {
            Head { version: 1.., .. } => Err(SpliceError::Version(head.version)),
            Head { encryption: Some(algorithm), .. } => Err(SpliceError::Encrypted(algorithm)),
            Head { command: command::NULL | command::BANDWIDTH_RESERVATION, .. } => Ok(None),
            _ => Self::of(&head, &mut bits).ok_or(SpliceError::CutOff).map(Some),
        }
    }

    fn of(head: &Head, bits: &mut BitReader<'_>) -> Option<Self> {
        let (time, events) = match head.command {
            command::INSERT => {
                let (time, event) = insert(bits)?;
                (time, vec![event])
            }
            command::TIME_SIGNAL => {
                let begin = bits.position();
                let time = splice_time(bits)?;
                if head.command_length != UNSTATED {
                    bits.skip((head.command_length as usize * 8).checked_sub(bits.position() - begin)?)?;
                }
                (time, segments(bits)?)
            }
            _ => (None, Vec::new()),
        };
        let time = time.map(|time| time.wrapping_add(head.adjustment) & CLOCK);
        Some(Self { command: head.command, time, events })
    }
}

/// Fields before the command (9.6).
struct Head {
    length: usize,
    version: u8,
    /// Algorithm, where it is encrypted.
    encryption: Option<u8>,
    adjustment: u64,
    command_length: u32,
    command: u8,
}

impl Head {
    fn read(bits: &mut BitReader<'_>) -> Option<Self> {
        // `table_id`, indicators and `sap_type`.
        bits.skip(8 + 4)?;
        let length = bits.bits(12)? as usize;
        let version = bits.bits(8)? as u8;
        let is_encrypted = bits.flag()?;
        let algorithm = bits.bits(6)? as u8;
        let adjustment = long(bits, 33)?;
        // `cw_index`, `tier`.
        bits.skip(8 + 12)?;
        let command_length = bits.bits(12)?;
        let command = bits.bits(8)? as u8;
        Some(Self {
            length,
            version,
            encryption: is_encrypted.then_some(algorithm),
            adjustment,
            command_length,
            command,
        })
    }
}

/// Reads a number of more than 32 bits.
fn long(bits: &mut BitReader<'_>, width: usize) -> Option<u64> {
    Some(u64::from(bits.bits(width - 32)?) << 32 | u64::from(bits.bits(32)?))
}

/// Reads `splice_time()` (9.8.1): the time, where one is given.
fn splice_time(bits: &mut BitReader<'_>) -> Option<Option<u64>> {
    if bits.flag()? {
        bits.skip(6)?;
        return Some(Some(long(bits, 33)?));
    }
    bits.skip(7)?;
    Some(None)
}

/// Reads `splice_insert()` (9.7.3): its time and event.
fn insert(bits: &mut BitReader<'_>) -> Option<(Option<u64>, SpliceEvent)> {
    let (number, kind) = (bits.bits(32)?, SpliceKind::Insert);
    if bits.flag()? {
        return Some((None, cancelled(number, kind)));
    }
    bits.skip(7)?;
    let is_out = bits.flag()?;
    let is_programme = bits.flag()?;
    let has_duration = bits.flag()?;
    let is_immediate = bits.flag()?;
    bits.skip(4)?;
    let mut time = None;
    if is_programme {
        if !is_immediate {
            time = splice_time(bits)?;
        }
    } else {
        // Each component has its own time. The first one that is given counts.
        for _ in 0..bits.bits(8)? {
            bits.skip(8)?;
            if !is_immediate {
                let of_component = splice_time(bits)?;
                time = time.or(of_component);
            }
        }
    }
    let (mut returns, mut duration) = (false, None);
    if has_duration {
        returns = bits.flag()?;
        bits.skip(6)?;
        duration = Some(long(bits, 33)?);
    }
    let meaning = if is_out { SpliceMeaning::Out } else { SpliceMeaning::In };
    Some((time, SpliceEvent { number, kind, meaning, duration, returns }))
}

fn cancelled(number: u32, kind: SpliceKind) -> SpliceEvent {
    SpliceEvent { number, kind, meaning: SpliceMeaning::Cancelled, duration: None, returns: false }
}

/// Reads the segmentation descriptors behind `time_signal()`.
fn segments(bits: &mut BitReader<'_>) -> Option<Vec<SpliceEvent>> {
    let mut left = bits.bits(16)?;
    let mut events = Vec::new();
    while left > 0 {
        let (tag, length) = (bits.bits(8)?, bits.bits(8)?);
        left = left.checked_sub(2 + length)?;
        let bytes = bits.bytes(length as usize)?;
        if tag == SEGMENTATION && bytes.starts_with(&CUEI.to_be_bytes()) && events.len() < MOST_EVENTS {
            events.push(segment(&bytes)?);
        }
    }
    Some(events)
}

/// Reads a segmentation descriptor (10.3.3) from its identifier on.
fn segment(bytes: &[u8]) -> Option<SpliceEvent> {
    let mut bits = BitReader::new(bytes);
    bits.skip(32)?;
    let number = bits.bits(32)?;
    if bits.flag()? {
        return Some(cancelled(number, SpliceKind::Segment(0)));
    }
    bits.skip(7)?;
    let (is_programme, has_duration) = (bits.flag()?, bits.flag()?);
    bits.skip(6)?;
    if !is_programme {
        let components = bits.bits(8)? as usize;
        bits.skip(components * COMPONENT)?;
    }
    let duration = if has_duration { Some(long(&mut bits, 40)?) } else { None };
    // `segmentation_upid_type`.
    bits.skip(8)?;
    let upid = bits.bits(8)? as usize;
    bits.skip(upid * 8)?;
    let segmentation_type = bits.bits(8)? as u8;
    let kind = SpliceKind::Segment(segmentation_type);
    Some(SpliceEvent { number, kind, meaning: meaning(segmentation_type), duration, returns: false })
}

/// Returns the meaning of a `segmentation_type_id` (table 23). Breaks, advertisements, placement opportunities and blocks of
/// advertisements leave the programme. The type of an end is one more than that of its beginning.
fn meaning(segmentation_type: u8) -> SpliceMeaning {
    match segmentation_type {
        0x22 | 0x30 | 0x32 | 0x34 | 0x36 | 0x38 | 0x3a | 0x44 | 0x46 => SpliceMeaning::Out,
        0x23 | 0x31 | 0x33 | 0x35 | 0x37 | 0x39 | 0x3b | 0x45 | 0x47 => SpliceMeaning::In,
        _ => SpliceMeaning::Other,
    }
}

#[cfg(test)]
mod tests;
