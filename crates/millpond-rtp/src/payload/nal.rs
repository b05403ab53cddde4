//! H.264 (RFC 6184) and HEVC (RFC 7798): one NAL unit per packet, or fragments of a large one.

use super::{
    PayloadError, Piece,
    building::{Building, Content, Continues, Join, Progress, Start, head},
    parts,
    start_codes::{self, START_CODE},
};
use bytes::Bytes;
use millpond_media::NalSyntax;
use std::{fmt::Debug, marker::PhantomData, ops::Range};

/// Differences between the two codecs.
pub(super) trait Nal: Debug + Send + Sync {
    /// Length of a NAL unit's header in bytes.
    const HEADER: usize;

    /// Standard of the NAL units.
    const SYNTAX: NalSyntax;

    /// Returns the form of a payload that begins with this byte, given by its NAL unit type.
    fn form(first: u8) -> Result<Form, &'static str>;

    /// Whether a NAL unit that begins with this byte is a sequence parameter set.
    fn is_set(first: u8) -> bool;

    /// Whether a NAL unit that begins with this byte is a slice of a picture.
    fn is_slice(first: u8) -> bool;

    /// Whether a NAL unit that begins with this byte is a parameter set.
    fn is_parameter_set(first: u8) -> bool;

    /// Whether a slice is the first one of its picture.
    fn begins_picture(slice: &[u8]) -> bool {
        // `first_mb_in_slice` is 0, coded as a bit of 1; `first_slice_segment_in_pic_flag` is 1.
        slice.get(Self::HEADER).is_some_and(|byte| byte & 0x80 != 0)
    }

    /// Returns the NAL unit's header, from that of a fragment.
    fn whole(fragment: [u8; 3]) -> [u8; 2];

    /// Returns the header of a fragment: that of a fragmentation unit, then the type of the original unit.
    fn fragment(header: &[u8], first: bool, last: bool) -> ([u8; 3], usize);
}

/// Content of a payload.
pub(super) enum Form {
    /// One NAL unit.
    Single,
    /// Several NAL units, each with its length.
    Aggregate,
    /// A fragment of a NAL unit.
    Fragment,
}

#[derive(Debug)]
pub(super) struct Avc;

impl Nal for Avc {
    const HEADER: usize = 1;
    const SYNTAX: NalSyntax = NalSyntax::Avc;

    /// Decides by RFC 6184 5.2.
    fn form(first: u8) -> Result<Form, &'static str> {
        match first & 0x1f {
            24 => Ok(Form::Aggregate),
            28 => Ok(Form::Fragment),
            25 => Err("a STAP-B (interleaved mode)"),
            26 | 27 => Err("an MTAP (interleaved mode)"),
            29 => Err("an FU-B (interleaved mode)"),
            _ => Ok(Form::Single),
        }
    }

    fn is_set(first: u8) -> bool {
        first & 0x1f == 7
    }

    fn is_slice(first: u8) -> bool {
        NalSyntax::Avc.is_slice(&[first])
    }

    fn is_parameter_set(first: u8) -> bool {
        matches!(first & 0x1f, 7 | 8)
    }

    fn whole(fragment: [u8; 3]) -> [u8; 2] {
        [fragment[0] & 0xe0 | fragment[1] & 0x1f, 0]
    }

    /// Writes an FU-A header (RFC 6184 5.8).
    fn fragment(header: &[u8], first: bool, last: bool) -> ([u8; 3], usize) {
        let indicator = header[0] & 0xe0 | 28;
        ([indicator, ends(first, last) | header[0] & 0x1f, 0], 2)
    }
}

#[derive(Debug)]
pub(super) struct Hevc;

impl Nal for Hevc {
    const HEADER: usize = 2;
    const SYNTAX: NalSyntax = NalSyntax::Hevc;

    /// Decides by RFC 7798 4.4.
    fn form(first: u8) -> Result<Form, &'static str> {
        match first >> 1 & 0x3f {
            48 => Ok(Form::Aggregate),
            49 => Ok(Form::Fragment),
            50 => Err("a PACI packet"),
            _ => Ok(Form::Single),
        }
    }

    fn is_set(first: u8) -> bool {
        first >> 1 & 0x3f == 33
    }

    fn is_slice(first: u8) -> bool {
        NalSyntax::Hevc.is_slice(&[first])
    }

    fn is_parameter_set(first: u8) -> bool {
        matches!(first >> 1 & 0x3f, 32..=34)
    }

    fn whole(fragment: [u8; 3]) -> [u8; 2] {
        [fragment[0] & 0x81 | fragment[2] << 1 & 0x7e, fragment[1]]
    }

    /// Writes an FU header (RFC 7798 4.4.3).
    fn fragment(header: &[u8], first: bool, last: bool) -> ([u8; 3], usize) {
        let kind = header[0] >> 1 & 0x3f;
        ([header[0] & 0x81 | 49 << 1, header[1], ends(first, last) | kind], 3)
    }
}

fn ends(first: bool, last: bool) -> u8 {
    u8::from(first) << 7 | u8::from(last) << 6
}

/// Makes packets of a frame of NAL units, each preceded by its length (ISO/IEC 14496-15 5.3.3.1).
pub(super) fn cut<N: Nal>(
    frame: &[u8],
    length_size: u8,
    most: usize,
    pieces: &mut Vec<Piece>,
) -> Result<(), PayloadError> {
    let mut at = 0;
    while at < frame.len() {
        let unit = unit(frame, at, usize::from(length_size), N::HEADER)?;
        at = unit.end;
        // The types that payload formats use have no meaning in files (RFC 6184 5.2, RFC 7798 4.4).
        if !matches!(N::form(frame[unit.start]), Ok(Form::Single)) {
            let found = format!("a NAL unit that begins with {:#04x}", frame[unit.start]);
            return Err(PayloadError::new(unit.start, found, "a type other than those of payload formats"));
        }
        if unit.len() <= most {
            pieces.push(Piece::new(&[], unit));
            continue;
        }
        let header = &frame[unit.start..unit.start + N::HEADER];
        let body = unit.start + N::HEADER..unit.end;
        let room = most - N::fragment(header, true, true).1;
        for part in parts(body.clone(), room) {
            let (head, length) = N::fragment(header, part.start == body.start, part.end == body.end);
            pieces.push(Piece::new(&head[..length], part));
        }
    }
    Ok(())
}

/// Whether a frame contains a sequence parameter set.
pub(super) fn has_sets<N: Nal>(frame: &[u8], length_size: u8) -> bool {
    first::<N>(frame, length_size, N::is_set).is_some()
}

/// Returns the offset of the first slice of a frame, after its length.
pub(super) fn first_slice<N: Nal>(frame: &[u8], length_size: u8) -> Option<usize> {
    first::<N>(frame, length_size, N::is_slice)
}

/// Returns the offset of the first NAL unit whose first byte passes `test`.
fn first<N: Nal>(frame: &[u8], length_size: u8, test: fn(u8) -> bool) -> Option<usize> {
    let mut at = 0;
    while at < frame.len() {
        let unit = unit(frame, at, usize::from(length_size), N::HEADER).ok()?;
        if test(frame[unit.start]) {
            return Some(unit.start);
        }
        at = unit.end;
    }
    None
}

fn unit(frame: &[u8], at: usize, length_size: usize, header: usize) -> Result<Range<usize>, PayloadError> {
    let start = at + length_size;
    let Some(length) = frame.get(at..start) else {
        return Err(PayloadError::new(at, format!("{} bytes", frame.len() - at), "the length of a NAL unit"));
    };
    let length = length.iter().fold(0_usize, |length, byte| length << 8 | usize::from(*byte));
    let end = start.checked_add(length).filter(|end| *end <= frame.len());
    match end {
        Some(end) if length >= header => Ok(start..end),
        _ => Err(PayloadError::new(at, format!("a NAL unit of {length} bytes"), "one that fits in the frame")),
    }
}

/// Joins NAL units, each preceded by its length.
#[derive(Debug)]
pub(super) struct NalJoin<N> {
    length_size: usize,
    fragmented: Option<Fragmented>,
    /// The last NAL units with which the sender has begun key frames, and other pictures.
    leads: [Option<Lead>; 2],
    codec: PhantomData<N>,
}

/// Kinds of NAL units in the order in which a picture begins with them (H.264 7.4.1.2.3, H.265 7.4.2.4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Lead {
    Delimiter,
    ParameterSet,
    Supplement,
    Slice,
}

/// The NAL unit of which fragments are arriving.
#[derive(Clone, Copy, Debug)]
struct Fragmented {
    header: [u8; 2],
    /// Offset of its length in the unit.
    at: usize,
}

impl<N: Nal> NalJoin<N> {
    /// Creates a joiner that writes lengths of `length_size` bytes.
    pub(super) fn new(length_size: u8) -> Self {
        Self {
            length_size: usize::from(length_size).clamp(1, 4),
            fragmented: None,
            leads: [None; 2],
            codec: PhantomData,
        }
    }

    /// Returns whether a picture is a key frame, and its first NAL unit; `None` without its first slice.
    fn lead(&self, unit: &[u8]) -> Option<(bool, Lead)> {
        let (mut at, mut lead, mut recovers) = (0, None, false);
        while at < unit.len() {
            let range = self::unit(unit, at, self.length_size, N::HEADER).ok()?;
            at = range.end;
            let nal = &unit[range];
            let kind = match nal[0] {
                _ if N::SYNTAX.is_slice(nal) => Lead::Slice,
                first if N::is_parameter_set(first) => Lead::ParameterSet,
                _ if N::SYNTAX.is_delimiter(nal) => Lead::Delimiter,
                _ => Lead::Supplement,
            };
            let lead = *lead.get_or_insert(kind);
            if kind == Lead::Slice {
                return N::begins_picture(nal).then(|| (recovers || N::SYNTAX.is_entry_slice(nal), lead));
            }
            recovers |= N::SYNTAX.is_recovery_point(nal);
        }
        None
    }

    fn single(&self, nal: &[u8], unit: &mut Building) -> Result<(), PayloadError> {
        let at = self.begin(unit)?;
        unit.extend(nal)?;
        self.end(at, unit)
    }

    /// Reserves space for the length.
    fn begin(&self, unit: &mut Building) -> Result<usize, PayloadError> {
        let at = unit.bytes.len();
        unit.extend(&[0; 4][..self.length_size])?;
        Ok(at)
    }

    fn end(&self, at: usize, unit: &mut Building) -> Result<(), PayloadError> {
        let start = at + self.length_size;
        if start_codes::find(&unit.bytes[start..]).is_some() {
            return self.split(at, unit);
        }
        self.close(at, unit)
    }

    /// Divides the last NAL unit at start codes, which some senders put into payloads with several NAL units behind each other.
    /// No NAL unit contains one (H.264 and H.265, 7.4.1).
    fn split(&self, at: usize, unit: &mut Building) -> Result<(), PayloadError> {
        let all = unit.bytes.split_off(at);
        let mut rest = &all[self.length_size..];
        while !rest.is_empty() {
            let code = start_codes::find(rest);
            let (nal, after) = code.map_or((rest, &[][..]), |code| (&rest[..code], &rest[code + START_CODE.len()..]));
            let end = nal.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            if end >= N::HEADER && matches!(N::form(nal[0]), Ok(Form::Single)) {
                let at = self.begin(unit)?;
                unit.extend(&nal[..end])?;
                self.close(at, unit)?;
            }
            rest = after;
        }
        Ok(())
    }

    /// Writes the length of the last NAL unit.
    fn close(&self, at: usize, unit: &mut Building) -> Result<(), PayloadError> {
        let start = at + self.length_size;
        let length = unit.bytes.len() - start;
        let bytes = (length as u64).to_be_bytes();
        let (high, low) = bytes.split_at(bytes.len() - self.length_size);
        if high.iter().any(|byte| *byte != 0) {
            return Err(PayloadError::TooLarge { most: (1 << (8 * self.length_size)) - 1 });
        }
        unit.bytes[at..start].copy_from_slice(low);
        Ok(())
    }

    /// Takes an aggregation packet (RFC 6184 5.7.1, RFC 7798 4.4.2).
    fn aggregate(&self, payload: &[u8], unit: &mut Building) -> Result<(), PayloadError> {
        // Zeros at the end fill the packet up, in violation of both.
        let end = payload.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let mut at = N::HEADER;
        while at < end {
            let size = payload.get(at..at + 2).map_or(0, |size| usize::from(u16::from_be_bytes([size[0], size[1]])));
            let nal = payload.get(at + 2..at + 2 + size).filter(|nal| nal.len() >= N::HEADER);
            let nal = nal.ok_or_else(|| {
                let found = format!("a NAL unit of {size} bytes, {} are left", payload.len() - at);
                PayloadError::packet(at, found, "one that fits in the packet")
            })?;
            if !matches!(N::form(nal[0]), Ok(Form::Single)) {
                let found = format!("a NAL unit that begins with {:#04x}", nal[0]);
                return Err(PayloadError::packet(at + 2, found, "a single NAL unit"));
            }
            self.single(nal, unit)?;
            at += 2 + size;
        }
        Ok(())
    }

    /// Takes a fragment (RFC 6184 5.8, RFC 7798 4.4.3).
    fn fragment(&mut self, payload: &[u8], unit: &mut Building) -> Result<(), PayloadError> {
        let (header, flags, media) = fragment::<N>(payload)?;
        let (first, last) = (flags & 0x80 != 0, flags & 0x40 != 0);
        let whole = match (first, self.fragmented.take()) {
            // Some senders put a whole NAL unit into one fragment.
            (true, None) => {
                let whole = Fragmented { header, at: self.begin(unit)? };
                unit.extend(&header[..N::HEADER])?;
                whole
            }
            (false, Some(whole)) if whole.header == header => whole,
            (_, before) => {
                let found = format!("a fragment with flags {flags:#04x}");
                let expected = if before.is_some() { "the next fragment of its NAL unit" } else { "a first fragment" };
                return Err(PayloadError::packet(N::HEADER, found, expected));
            }
        };
        unit.extend(media)?;
        if last {
            self.end(whole.at, unit)?;
        } else {
            self.fragmented = Some(whole);
        }
        Ok(())
    }
}

/// Returns the NAL unit's header, the flags, and the media.
fn fragment<N: Nal>(payload: &[u8]) -> Result<([u8; 2], u8, &[u8]), PayloadError> {
    let expected = "a fragmentation unit";
    let head = match N::HEADER {
        1 => head::<2>(payload, expected).map(|[indicator, header]| [indicator, header, 0])?,
        _ => head::<3>(payload, expected)?,
    };
    Ok((N::whole(head), head[N::HEADER], &payload[N::HEADER + 1..]))
}

/// The header of the first NAL unit that a payload begins, and the byte behind it. `None` for a later fragment.
fn first_bytes<N: Nal>(payload: &[u8]) -> Option<Vec<u8>> {
    let nal = match form::<N>(payload).ok()? {
        Form::Single => payload,
        Form::Aggregate => payload.get(N::HEADER + 2..)?,
        Form::Fragment => {
            let (header, _, media) = fragment::<N>(payload).ok().filter(|(_, flags, _)| flags & 0x80 != 0)?;
            return Some([&header[..N::HEADER], media.get(..1)?].concat());
        }
    };
    nal.get(..=N::HEADER).map(<[u8]>::to_vec)
}

/// Whether a unit has a slice.
fn has_slice<N: Nal>(unit: &[u8], length_size: usize) -> bool {
    first::<N>(unit, length_size as u8, N::is_slice).is_some()
}

fn form<N: Nal>(payload: &[u8]) -> Result<Form, PayloadError> {
    if payload.len() < N::HEADER {
        return Err(PayloadError::packet(0, format!("{} bytes", payload.len()), "a NAL unit"));
    }
    N::form(payload[0]).map_err(|found| PayloadError::packet(0, found, "NAL units in the order of decoding"))
}

impl<N: Nal> Join for NalJoin<N> {
    fn start(&self, payload: &[u8]) -> Result<Start, PayloadError> {
        // A NAL unit doesn't show whether others before it were lost.
        let continues = matches!(form::<N>(payload)?, Form::Fragment) && fragment::<N>(payload)?.1 & 0x80 == 0;
        Ok(if continues { Start::No } else { Start::Later })
    }

    fn join(&mut self, payload: &[u8], unit: &mut Building) -> Result<Progress, PayloadError> {
        match form::<N>(payload)? {
            Form::Fragment => self.fragment(payload, unit)?,
            _ if self.fragmented.is_some() => {
                return Err(PayloadError::packet(0, "a whole NAL unit", "another fragment of the last NAL unit"));
            }
            Form::Single => self.single(payload, unit)?,
            Form::Aggregate => self.aggregate(payload, unit)?,
        }
        Ok(Progress::Open)
    }

    fn is_whole(&self, _unit: &Building) -> bool {
        self.fragmented.is_none()
    }

    /// Senders begin all key frames alike, with parameter sets or without, and all other pictures too.
    fn has_beginning(&self, unit: &Building) -> bool {
        let Some((is_key, lead)) = self.lead(&unit.bytes) else { return false };
        self.leads[usize::from(is_key)].is_some_and(|usual| lead <= usual)
    }

    fn learn(&mut self, unit: &Building) {
        if let Some((is_key, lead)) = self.lead(&unit.bytes) {
            let usual = &mut self.leads[usize::from(is_key)];
            *usual = (*usual).max(Some(lead));
        }
    }

    fn continues(&self, ended: &[u8], payload: &[u8]) -> Continues {
        let Some(nal) = first_bytes::<N>(payload) else { return Continues::No };
        if !has_slice::<N>(ended, self.length_size) {
            return Continues::Precedes;
        }
        // Fields of one time begin pictures of their own.
        if N::SYNTAX.is_slice(&nal) && !N::begins_picture(&nal) { Continues::Slices } else { Continues::No }
    }

    fn forget(&mut self) {
        self.fragmented = None;
    }

    fn content(&self, unit: &Bytes) -> Content {
        let mut content = Content::picture(false);
        let (mut at, mut recovers, mut has_slices) = (0, false, false);
        while let Ok(range) = self::unit(unit, at, self.length_size, N::HEADER) {
            at = range.end;
            let nal = &unit[range.clone()];
            if N::is_parameter_set(nal[0]) {
                content.parameter_sets.push(unit.slice(range));
            } else if N::SYNTAX.is_slice(nal) && !has_slices {
                // A picture without its first slice is none.
                has_slices = true;
                content.is_key = N::begins_picture(nal) && (recovers || N::SYNTAX.is_entry_slice(nal));
            } else {
                recovers |= N::SYNTAX.is_recovery_point(nal);
            }
            if at == unit.len() {
                break;
            }
        }
        content
    }
}
