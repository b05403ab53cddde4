//! Track headers (`trak`, ISO/IEC 14496-12 8.3 and 8.4): all properties of a track except its samples.

use crate::{
    boxes::{Entries, Fields, FourCc, FullBox, Node, show, text},
    codec::{Codec, TrackKind, from_quicktime, orientation::Orientation, parse_sample_entry, video::sps},
    error::MediaError,
    movie::{Edit, purpose::Purposes},
    mp4::{
        alias,
        sample_entries::{MOST_ENTRIES, SampleEntries, StoredEntry},
    },
    protection::{self, Protection},
    units::Timescale,
};

/// Most entries of an edit list; real ones have a handful.
const MAX_EDITS: usize = 10_000;

/// Longest name of a track in bytes.
const MAX_NAME: usize = 256;

/// All properties of a track except its samples.
#[derive(Clone, Debug)]
pub(crate) struct TrackHeader {
    pub(crate) id: u32,
    pub(crate) enabled: bool,
    pub(crate) alternate_group: u16,
    pub(crate) purposes: Purposes,
    pub(crate) timescale: Timescale,
    /// Duration in ticks as stated by `mdhd`; 0 where unknown.
    pub(crate) duration: u64,
    pub(crate) language: String,
    pub(crate) name: Option<String>,
    pub(crate) kind: TrackKind,
    pub(crate) codec: Codec,
    pub(crate) sample_entry: Vec<u8>,
    /// The encryption of the samples.
    pub(crate) protection: Option<Protection>,
    /// Number of the sample description of the same codec without encryption, from 1.
    pub(crate) clear_description: Option<u32>,
    pub(crate) edits: Vec<Edit>,
    /// URL of the other file that holds the samples.
    pub(crate) location: Option<String>,
    /// Number of the sample description in use, from 1.
    pub(crate) description: u32,
    /// All sample descriptions in use.
    pub(crate) entries: SampleEntries,
}

impl TrackHeader {
    /// Returns the duration of a sample, in ticks, for tables that give no sample a duration. This is the duration of the codec's
    /// frames, else an equal part of the track, else 40 ms.
    pub(crate) fn usual_duration(&self, samples: u32) -> u32 {
        let frame = match (&self.codec, self.kind) {
            (Codec::Pcm(config), TrackKind::Audio { sample_rate, .. }) => Some((config.frames_per_unit(), sample_rate)),
            (codec, TrackKind::Audio { sample_rate, .. }) => {
                codec.samples_per_frame().map(|frame| (frame, sample_rate))
            }
            _ => None,
        };
        let scale = u64::from(self.timescale.get());
        let of_frame = frame.and_then(|(frame, rate)| (u64::from(frame) * scale).checked_div(u64::from(rate)));
        let part = || self.duration.checked_div(u64::from(samples)).filter(|part| *part > 0);
        let ticks = of_frame.or_else(part).unwrap_or(scale / 25);
        u32::try_from(ticks).unwrap_or(u32::MAX).max(1)
    }
}

/// `tkhd` (8.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tkhd {
    pub(crate) id: u32,
    pub(crate) enabled: bool,
    /// `alternate_group`: tracks of one group replace each other. 0 says nothing.
    pub(crate) alternate_group: u16,
    pub(crate) orientation: Orientation,
    /// Horizontal and vertical scale of the matrix in 16.16, before rotation.
    pub(crate) scale: (u32, u32),
}

impl Tkhd {
    /// The header of `trak`.
    pub(crate) fn parse(trak: &Node<'_>) -> Result<Self, MediaError> {
        let node = trak.need(b"tkhd")?;
        let FullBox { version, flags, mut fields } = node.full()?;
        fields.skip(if version == 1 { 16 } else { 8 })?;
        let id = fields.u32()?;
        // A reserved word, the duration, two reserved words and the layer.
        fields.skip(if version == 1 { 22 } else { 18 })?;
        let alternate_group = fields.u16()?;
        fields.skip(4)?;
        // A header that ends before its matrix counts as upright.
        let matrix = Matrix::read(&mut fields).unwrap_or(Matrix::UNIT);
        let (orientation, scale) = (matrix.orientation(), matrix.scale());
        Ok(Self { id, enabled: flags & 1 != 0, alternate_group, orientation, scale })
    }
}

/// The first two rows of a matrix (6.2.2), without their last column: a point (x, y) moves to (ax + cy, bx + dy).
#[derive(Clone, Copy, Debug)]
struct Matrix {
    a: i32,
    b: i32,
    c: i32,
    d: i32,
}

impl Matrix {
    const UNIT: Self = Self { a: 0x1_0000, b: 0, c: 0, d: 0x1_0000 };

    fn read(fields: &mut Fields<'_, '_>) -> Result<Self, MediaError> {
        let (a, b) = (fields.i32()?, fields.i32()?);
        fields.skip(4)?;
        let (c, d) = (fields.i32()?, fields.i32()?);
        Ok(Self { a, b, c, d })
    }

    fn orientation(&self) -> Orientation {
        Orientation::of_matrix([self.a, self.b, self.c, self.d])
    }

    /// Returns the lengths of the rows, for turns by multiples of 90 degrees.
    fn scale(&self) -> (u32, u32) {
        let length = |x: i32, y: i32| x.unsigned_abs().max(y.unsigned_abs());
        (length(self.a, self.b), length(self.c, self.d))
    }
}

/// Parses the header of `trak`. `described` has the sample descriptions that its samples use. The description of most samples is
/// first. With `is_fragmented`, fragments may use others.
pub(crate) fn parse(
    trak: &Node<'_>,
    tkhd: Tkhd,
    described: &[u32],
    is_fragmented: bool,
) -> Result<TrackHeader, MediaError> {
    let mdia = trak.need(b"mdia")?;
    let handler = handler(&mdia)?;
    let (timescale, duration, language) = media_header(&mdia)?;
    let language = extended_language(&mdia).unwrap_or(language);
    let minf = mdia.need(b"minf")?;
    let stsd = minf.need(b"stbl")?.need(b"stsd")?;
    let source = Source { stsd: &stsd, minf: &minf, handler: handler.kind, timescale, tkhd };
    let (first, protection) = source.first(described)?;
    let clear_description = match &protection {
        Some(_) => clear_description(&stsd, handler.kind, &first.codec),
        None => None,
    };
    let description = first.number;
    let StoredEntry { codec, kind, sample_entry, location, .. } = first.clone();
    let entries = source.entries(first, described, is_fragmented)?;
    let named = trak.child(b"udta").and_then(|udta| udta.child(b"name")).map(|name| text(name.body));
    Ok(TrackHeader {
        id: tkhd.id,
        enabled: tkhd.enabled,
        alternate_group: tkhd.alternate_group,
        purposes: Purposes::parse(trak),
        timescale,
        duration,
        language,
        name: named.into_iter().chain(handler.name).map(|n| front(n.trim()).to_owned()).find(|n| is_useful(n)),
        kind,
        codec,
        sample_entry,
        protection,
        clear_description,
        edits: edits(trak)?,
        location,
        description,
        entries,
    })
}

/// `hdlr` (8.4.3).
struct Handler {
    kind: FourCc,
    name: Option<String>,
}

fn handler(mdia: &Node<'_>) -> Result<Handler, MediaError> {
    let node = mdia.need(b"hdlr")?;
    let FullBox { mut fields, .. } = node.full()?;
    fields.skip(4)?;
    let kind = fields.four_cc()?;
    if !matches!(&kind, b"vide" | b"soun" | b"text" | b"subt" | b"sbtl") {
        return Err(node.unsupported(format!("a track of handler {}", show(kind))));
    }
    let name = fields.skip(12).ok().map(|()| match fields.rest() {
        // QuickTime strings begin with their length.
        [count, name @ ..] if usize::from(*count) == name.len() => text(name),
        name => text(name),
    });
    Ok(Handler { kind, name })
}

/// Returns the start of a name, because every playlist repeats it.
fn front(name: &str) -> &str {
    &name[..name.floor_char_boundary(MAX_NAME)]
}

/// Whether a name is meaningful to a viewer. Most handler names only identify the software that wrote the file.
fn is_useful(name: &str) -> bool {
    const WRITERS: [&str; 11] = [
        "handle",
        "core media",
        "gpac",
        "iso media",
        "isomedia",
        "bento4",
        "mainconcept",
        "l-smash",
        "apple",
        "google",
        "#",
    ];
    let lower = name.to_lowercase();
    !name.is_empty() && !name.contains(char::is_control) && !WRITERS.iter().any(|writer| lower.contains(writer))
}

/// Returns the clock of the samples of a track (`mdhd`).
pub(super) fn timescale(mdia: &Node<'_>) -> Result<Timescale, MediaError> {
    media_header(mdia).map(|(timescale, ..)| timescale)
}

/// `mdhd` (8.4.2): timescale, duration and language.
fn media_header(mdia: &Node<'_>) -> Result<(Timescale, u64, String), MediaError> {
    let node = mdia.need(b"mdhd")?;
    let FullBox { version, mut fields, .. } = node.full()?;
    fields.skip(if version == 1 { 16 } else { 8 })?;
    let timescale = fields.u32()?;
    let timescale = Timescale::new(timescale).ok_or_else(|| node.invalid("a timescale of 0", "ticks a second"))?;
    let unknown = if version == 1 { u64::MAX } else { u64::from(u32::MAX) };
    let duration = Some(fields.versioned(version)?).filter(|duration| *duration != unknown).unwrap_or(0);
    let language = fields.u16().map_or_else(|_| "und".to_owned(), language);
    Ok((timescale, duration, language))
}

/// Returns the ISO 639-2/T code packed into 15 bits (8.4.2.3), or the code of a QuickTime (Macintosh) language number.
fn language(packed: u16) -> String {
    const MACINTOSH: [&str; 24] = [
        "und", "fra", "deu", "ita", "nld", "swe", "spa", "dan", "por", "nor", "heb", "jpn", "ara", "fin", "ell", "isl",
        "mlt", "tur", "hrv", "zho", "urd", "hin", "tha", "kor",
    ];
    if packed < 0x400 {
        // QuickTime uses 0 for English, but most writers leave the field at 0.
        return MACINTOSH.get(usize::from(packed)).copied().unwrap_or("und").to_owned();
    }
    let letter = |shift: u16| ((packed >> shift & 31) as u8 + 0x60) as char;
    let code: String = [letter(10), letter(5), letter(0)].into_iter().collect();
    if code.chars().all(|c| c.is_ascii_lowercase()) { code } else { "und".to_owned() }
}

/// Reads the BCP 47 tag of `elng` (8.4.6).
fn extended_language(mdia: &Node<'_>) -> Option<String> {
    let node = mdia.child(b"elng")?;
    let FullBox { fields, .. } = node.full().ok()?;
    let tag = text(fields.rest());
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    (!tag.is_empty() && tag.len() <= 64 && tag.chars().all(plain)).then_some(tag)
}

/// The sample entries of a track (`stsd`, 8.5.2), and what is needed to read them.
struct Source<'a, 's> {
    stsd: &'s Node<'a>,
    minf: &'s Node<'a>,
    handler: FourCc,
    timescale: Timescale,
    tkhd: Tkhd,
}

impl<'a> Source<'a, '_> {
    /// Returns entry `number`, counted from 1.
    fn node(&self, number: u32) -> Option<Node<'a>> {
        self.stsd.children_after(8).nth(number.saturating_sub(1) as usize)
    }

    /// Reads entry `number`.
    fn read(&self, number: u32) -> Result<(StoredEntry, Option<Protection>), MediaError> {
        let FullBox { mut fields, .. } = self.stsd.full()?;
        let count = fields.u32()?;
        let entry = self.node(number).ok_or_else(|| {
            self.stsd.invalid(format!("{count} sample entries"), format!("entry {number}, which samples use"))
        })?;
        let location = data_location(self.minf, entry.whole)?;
        let parsed = parse_sample_entry(entry.whole, self.handler, &entry.path, entry.offset)?;
        let mut parsed = parsed.with_clock(self.timescale);
        let protection = protection::parse(&entry)?;
        let mut kind = match parsed.kind {
            TrackKind::Video { width, height, pixel_aspect, .. } => {
                TrackKind::Video { width, height, pixel_aspect, orientation: self.tkhd.orientation }
            }
            other => other,
        };
        let mut sample_entry = from_quicktime::sample_entry(&entry, &parsed.codec, kind);
        if let Some(name) = parsed.codec.entry_type() {
            protection::rename_format(&mut sample_entry, name);
        }
        if let Some(size) = sps::configured_size(&parsed.codec).filter(|_| sps::lacks_size(&kind)) {
            sps::fill_size(&mut kind, &mut sample_entry, size);
        }
        sps::fill_usability(&mut kind, &mut parsed.codec, &mut sample_entry);
        sps::scale(&mut kind, &mut sample_entry, self.tkhd.scale);
        let is_encrypted = protection.is_some();
        Ok((StoredEntry { number, codec: parsed.codec, kind, sample_entry, location, is_encrypted }, protection))
    }

    /// Returns the first entry of `described` that can be read, with the encryption of its samples.
    fn first(&self, described: &[u32]) -> Result<(StoredEntry, Option<Protection>), MediaError> {
        let (number, others) = described.split_first().unwrap_or((&1, &[]));
        self.read(*number).or_else(|error| others.iter().find_map(|other| self.read(*other).ok()).ok_or(error))
    }

    /// Reads the other entries that samples use or may use.
    fn entries(&self, first: StoredEntry, described: &[u32], is_fragmented: bool) -> Result<SampleEntries, MediaError> {
        let (number, is_encrypted) = (first.number, first.is_encrypted);
        let is_whole = is_encrypted || matches!(first.codec, Codec::Pcm(_));
        let whole = self.node(number).map(|entry| entry.whole);
        let is_alike = |other: u32| self.node(other).map(|entry| entry.whole) == whole;
        let mut entries = SampleEntries::new(self.stsd, first);
        let possible = (1..=MOST_ENTRIES as u32).filter(|other| is_fragmented && self.node(*other).is_some());
        let mut numbers: Vec<u32> = described.iter().copied().chain(possible).collect();
        numbers.sort_unstable();
        numbers.dedup();
        for other in numbers.into_iter().filter(|other| *other != number) {
            if is_alike(other) {
                entries.add_alike(other);
            } else if !is_whole {
                entries.add(other, self.read(other).map(|(entry, _)| entry));
            } else if described.contains(&other) {
                let what = format!("a change from sample entry {number} to {other} within the track");
                return Err(self.stsd.unsupported(what));
            }
        }
        if is_fragmented {
            entries.forget_others();
        }
        Ok(entries)
    }
}

/// Returns the number, from 1, of the entry of `stsd` that has `codec` without encryption. Fragments before the first
/// encrypted one use it.
fn clear_description(stsd: &Node<'_>, handler: FourCc, codec: &Codec) -> Option<u32> {
    let mut entries = (1_u32..).zip(stsd.children_after(8)).take(MOST_ENTRIES);
    let is_clear = |entry: &Node<'_>| {
        let same = || parse_sample_entry(entry.whole, handler, &entry.path, entry.offset);
        !matches!(&entry.kind, b"encv" | b"enca") && same().is_ok_and(|parsed| parsed.codec == *codec)
    };
    entries.find(|(_, entry)| is_clear(entry)).map(|(number, _)| number)
}

/// Returns the URL or path of the samples (8.7.2); `None` where they are in this file.
fn data_location(minf: &Node<'_>, sample_entry: &[u8]) -> Result<Option<String>, MediaError> {
    let Some(dref) = minf.child(b"dinf").and_then(|dinf| dinf.child(b"dref")) else { return Ok(None) };
    // The header of a sample entry is followed by six reserved bytes, then the index (8.5.2.2).
    let index = match sample_entry.get(14..16) {
        Some([high, low]) => usize::from(u16::from_be_bytes([*high, *low])),
        _ => 1,
    };
    let Some(entry) = dref.children_after(8).nth(index.saturating_sub(1)) else { return Ok(None) };
    let FullBox { flags, fields, .. } = entry.full()?;
    if flags & 1 != 0 {
        return Ok(None);
    }
    match &entry.kind {
        b"url " => Ok(Some(text(fields.rest())).filter(|location| !location.is_empty())),
        b"alis" => {
            let path = alias::path(fields.rest());
            path.map(Some).ok_or_else(|| entry.unsupported("an alias without a path"))
        }
        other => Err(entry.unsupported(format!("media in another file by a data reference {}", show(*other)))),
    }
}

/// Reads the edit list (8.6.6).
pub(super) fn edits(trak: &Node<'_>) -> Result<Vec<Edit>, MediaError> {
    let Some(elst) = trak.child(b"edts").and_then(|edts| edts.child(b"elst")) else { return Ok(Vec::new()) };
    let FullBox { version, mut fields, .. } = elst.full()?;
    let count = fields.u32()?;
    let edit = |duration, time: i64| Edit { duration, media_time: (time >= 0).then_some(time) };
    let edits: Vec<Edit> = if version == 1 {
        let entries = Entries::<20>::new(fields.rest(), count);
        let entry = |[a, b, c, d, e, f, g, h, time @ ..]: [u8; 20]| {
            let time = time.first_chunk().map_or(-1, |t| i64::from_be_bytes(*t));
            edit(u64::from_be_bytes([a, b, c, d, e, f, g, h]), time)
        };
        entries.iter().take(MAX_EDITS + 1).map(|bytes| entry(*bytes)).collect()
    } else {
        let entries = Entries::<12>::new(fields.rest(), count);
        let entry = |[a, b, c, d, e, f, g, h, ..]: [u8; 12]| {
            edit(u64::from(u32::from_be_bytes([a, b, c, d])), i64::from(i32::from_be_bytes([e, f, g, h])))
        };
        entries.iter().take(MAX_EDITS + 1).map(|bytes| entry(*bytes)).collect()
    };
    if edits.len() > MAX_EDITS {
        return Err(elst.invalid(format!("{count} edits"), format!("at most {MAX_EDITS}")));
    }
    Ok(edits)
}

#[cfg(test)]
mod tests;
