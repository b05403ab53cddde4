//! A track that is being read: the frames of its streams become samples.

use super::{
    clips::Played,
    entries::Entries,
    input::Input,
    parts::{self, FrameKind, Part, Parts},
    timeline::{Cursor, Timeline},
};
use crate::{
    codec::{
        Codec, Medium, TrackKind,
        audio::opus,
        captions::{CaptionChannels, CaptionSearch},
        nal::NalSyntax,
    },
    error::MediaError,
    movie::{
        Edit, Track,
        extraction::{ExtractedStream, FramePlace, PacketForm},
        purpose::Purposes,
    },
    mp4::sample_entries::StoredEntry,
    ts::{FrameFault, Framed, PesUnit, TsFrame, TsStream},
    units::{ByteRange, Timescale},
};

/// `alternate_group` of tracks of pictures, and of sound.
const GROUPS: [u16; 2] = [1, 2];
/// Samples of a frame of sound that tells no number.
const USUAL: u32 = 1024;
/// Steps of work that a configuration takes: its parameter sets are copied, compared and read.
const CONFIGURATION: u64 = 1024;
/// Language of streams that state none.
const UNKNOWN: &str = "und";
/// Most streams that follow one another in a track.
const MOST_STREAMS: usize = 64;

/// A track whose frames are read.
#[derive(Debug)]
pub(super) struct Lane {
    id: u32,
    input: Input,
    /// Streams before the current one.
    sources: Vec<ExtractedStream>,
    language: Option<String>,
    entries: Entries,
    cursor: Cursor,
    parts: Parts,
    captions: CaptionSearch,
    /// Configurations that the streams stated.
    configurations: u64,
    /// Whether the streams had any frame.
    has_frames: bool,
    /// Whether frames are scrambled.
    pub(super) is_scrambled: bool,
    /// Property of dropped frames that is not supported.
    unsupported: Option<&'static str>,
    /// Reason why no further frames are read.
    ended: Option<MediaError>,
}

/// A track before the times of its bases are joined.
#[derive(Debug)]
pub(super) struct Read {
    track: Track,
    entries: Entries,
    played: Played,
    sources: Vec<ExtractedStream>,
    /// Reasons for the lack of some frames.
    pub(super) reasons: Vec<MediaError>,
}

/// A finished track.
#[derive(Debug)]
pub(super) struct Placed {
    pub(super) track: Track,
    pub(super) clips: Vec<Track>,
    pub(super) sources: Vec<ExtractedStream>,
}

/// The extracted object while it grows.
#[derive(Debug, Default)]
pub(super) struct Extracted {
    /// Its length so far.
    pub(super) len: u64,
    /// Its bytes, for comparison with extracted ones.
    #[cfg(test)]
    pub(super) bytes: Vec<u8>,
}

impl Extracted {
    /// Appends a frame; returns its place.
    pub(super) fn append(&mut self, frame: &[u8]) -> ByteRange {
        #[cfg(test)]
        self.bytes.extend_from_slice(frame);
        let place = ByteRange::at(self.len, frame.len() as u64);
        self.len = place.end;
        place
    }
}

impl Lane {
    /// Creates the lane of a stream; `None` if its frames can't be read.
    pub(super) fn new(id: u32, stream: TsStream, packets: PacketForm) -> Option<Self> {
        Some(Self {
            id,
            language: stream.language.clone(),
            input: Input::new(stream, packets)?,
            sources: Vec::new(),
            entries: Entries::default(),
            cursor: Cursor::default(),
            parts: Parts::default(),
            captions: CaptionSearch::default(),
            configurations: 0,
            has_frames: false,
            is_scrambled: false,
            unsupported: None,
            ended: None,
        })
    }

    /// Identifier of the track.
    pub(super) fn id(&self) -> u32 {
        self.id
    }

    /// PID of the current stream.
    pub(super) fn pid(&self) -> u16 {
        self.input.pid()
    }

    /// Whether a stream can continue the track where the current one ends: both have pictures, or both have sound of one language.
    pub(super) fn can_go_on_with(&self, stream: &TsStream) -> bool {
        let is_same = match (&self.language, &stream.language) {
            (Some(a), Some(b)) => a == b,
            _ => true,
        };
        let coding = self.input.coding();
        self.ended.is_none()
            && self.has_frames
            && stream.coding.form().is_some()
            && stream.coding.is_video() == coding.is_video()
            && (is_same || coding.is_video())
    }

    /// Takes a stream of a later map, which came before `at`. The stream has the lane's PID, or continues the track with another one.
    pub(super) fn describe(&mut self, stream: &TsStream, at: u64, timeline: &mut Timeline, extracted: &mut Extracted) {
        if self.language.is_none() {
            self.language.clone_from(&stream.language);
        }
        let coding = self.input.coding();
        if (stream.pid, stream.coding) == (self.pid(), coding) || self.ended.is_some() {
            return;
        }
        let next = Input::new(stream.clone(), self.input.packets()).filter(|_| self.can_go_on_with(stream));
        match next {
            Some(_) if self.sources.len() + 1 >= MOST_STREAMS => {
                let (found, most) = (self.sources.len() as u64 + 2, MOST_STREAMS as u64);
                self.ended = Some(MediaError::too_large("the stream", at, found, most, "streams of one track"));
            }
            Some(next) => {
                self.end(at, timeline, extracted);
                self.sources.push(std::mem::replace(&mut self.input, next).finish());
            }
            None => {
                let (found, expected) = (stream.coding.name(), coding.name());
                let expected = format!("{expected} as before: the rest is left out");
                self.ended = Some(MediaError::invalid("the stream", at, found, expected));
            }
        }
    }

    /// Takes the next PES packet.
    pub(super) fn push(&mut self, unit: &PesUnit, timeline: &mut Timeline, extracted: &mut Extracted) {
        if self.ended.is_some() {
            return;
        }
        let mut framed = self.input.push(unit);
        self.take(&mut framed, unit.first_packet, timeline, extracted);
        self.input.take_back(framed);
    }

    /// Ends the current stream.
    pub(super) fn end(&mut self, at: u64, timeline: &mut Timeline, extracted: &mut Extracted) {
        let mut framed = self.input.end();
        self.take(&mut framed, at, timeline, extracted);
    }

    /// Steps of work so far.
    pub(super) fn steps(&self) -> u64 {
        u64::from(self.parts.len()) + self.configurations.saturating_mul(CONFIGURATION)
    }

    /// Bytes of heap that its tables and the frame that is being assembled hold.
    pub(super) fn heap_bytes(&self) -> usize {
        let before: usize = self.sources.iter().map(ExtractedStream::heap_bytes).sum();
        self.input.heap_bytes() + before + self.parts.heap_bytes()
    }

    fn take(&mut self, framed: &mut Vec<Framed>, at: u64, timeline: &mut Timeline, extracted: &mut Extracted) {
        for framed in framed.drain(..) {
            match framed {
                Framed::Configuration(configuration) => {
                    self.configurations += 1;
                    self.entries.configure(configuration);
                }
                Framed::Frame(frame) => self.frame(&frame, at, timeline, extracted),
                Framed::Fault(FrameFault::Unsupported(what)) => self.unsupported = Some(what),
                Framed::Fault(_) => {}
            }
        }
    }

    fn frame(&mut self, frame: &TsFrame, at: u64, timeline: &mut Timeline, extracted: &mut Extracted) {
        self.has_frames = true;
        let Some(kind) = self.entries.accept(frame, self.parts.len(), at) else { return };
        let Some((codec, media)) = self.entries.media(kind) else { return };
        let length = match (codec, media) {
            (_, TrackKind::Video { .. }) => None,
            (Codec::Opus(_), _) => Some(opus::samples(&frame.data).unwrap_or(USUAL)),
            (codec, _) => Some(codec.samples_per_frame().unwrap_or(USUAL)),
        };
        let of = FrameKind { kind, clock: clock(media) };
        let time = timeline.place(&mut self.cursor, frame.pts, frame.dts);
        let place = match length {
            None => {
                let place = extracted.append(&frame.data);
                self.parts.picture(of, time, place, frame.is_sync);
                if let Some(form) = NalSyntax::of(codec) {
                    self.captions.picture(form, &frame.data);
                }
                place
            }
            Some(length) => {
                let Some(start) = self.parts.sound_time(of, time, length) else { return };
                let place = extracted.append(&frame.data);
                self.parts.sound(start, length, place);
                place
            }
        };
        self.input.push_frame(FramePlace { extracted: place, source: frame.source });
    }

    /// Returns the track, without samples and edits.
    ///
    /// # Errors
    /// No frame of it can be played.
    pub(super) fn finish(mut self) -> Result<Read, MediaError> {
        let why = |found: &str| MediaError::invalid("the stream", 0, found, "frames that can be played");
        let medium = if self.is_video() { Medium::Video } else { Medium::Audio };
        // The codec is supported, but not in the form of this stream.
        let form = |what: &str| format!("{} ({what})", self.input.coding().name());
        let unread = |what: &'static str| MediaError::unsupported("the stream", 0, what).of_codec(medium, form(what));
        let unsupported = self.unsupported.map(unread);
        let reason = self.entries.take_reason();
        let played = Played::of(self.parts.finish());
        let main = played.main_parts();
        let Some((entry, _)) = self.entries.described(played.main, &main).filter(|_| !main.is_empty()) else {
            return Err(match self.ended {
                Some(error) => error,
                None if self.is_scrambled => why("scrambled packets"),
                None if !self.has_frames => unsupported.unwrap_or_else(|| why("no frames")),
                None if self.entries.is_empty() => reason.unwrap_or_else(|| why("no key frame")),
                None => why("no key frame"),
            });
        };
        let captions = self.captions.finish();
        let track = described((self.id, self.language), entry, captions);
        let others = played.others.iter();
        let others = others.filter_map(|o| self.entries.other_than(played.main, o.kind, o.samples, o.fate));
        let reasons = self.ended.into_iter().chain(reason).chain(unsupported).chain(others).collect();
        self.sources.push(self.input.finish());
        Ok(Read { track, entries: self.entries, played, sources: self.sources, reasons })
    }

    /// Returns the track of the frames so far, of the first kind in the first time base; `None` if the track begins in another base.
    pub(super) fn so_far(&self) -> Option<Read> {
        let played = Played::of(vec![self.parts.first()?]);
        let (entry, _) = self.entries.described(played.main, &played.main_parts())?;
        // Later pictures may have more captions.
        let track = described((self.id, self.language.clone()), entry, self.captions.partial());
        let sources = self.sources.iter().cloned().chain([self.input.so_far()]).collect();
        Some(Read { track, entries: self.entries.clone(), played, sources, reasons: Vec::new() })
    }

    /// Whether the current stream has pictures.
    pub(super) fn is_video(&self) -> bool {
        self.input.coding().is_video()
    }

    /// Whether there is a frame that can be played.
    pub(super) fn has_track(&self) -> bool {
        self.parts.len() > 0
    }

    /// Whether the stream has no frame that can be played yet, but may still have one.
    pub(super) fn is_awaited(&self) -> bool {
        !self.has_track() && self.ended.is_none() && !self.is_scrambled
    }
}

/// Returns a track without samples and edits, of this identifier and language.
fn described((id, language): (u32, Option<String>), entry: StoredEntry, captions: Option<CaptionChannels>) -> Track {
    let [pictures, sound] = GROUPS;
    let is_video = matches!(entry.kind, TrackKind::Video { .. });
    Track {
        id,
        alternate_group: if is_video { pictures } else { sound },
        timescale: clock(&entry.kind),
        kind: entry.kind,
        language: language.unwrap_or_else(|| UNKNOWN.to_owned()),
        name: None,
        enabled: true,
        purposes: Purposes::default(),
        captions: if is_video { captions } else { None },
        codec: entry.codec,
        sample_entry: entry.sample_entry,
        edits: Vec::new(),
        samples: Default::default(),
        descriptions: None,
        protection: None,
    }
}

impl Read {
    /// The parts that are played.
    pub(super) fn parts(&self) -> &[Part] {
        &self.played.parts
    }

    /// Whether the stream begins with frames of another kind than the track.
    pub(super) fn begins_otherwise(&self) -> bool {
        self.played.begins_otherwise
    }

    /// Returns the track with its samples, whose time bases are presented later by `shifts`; its clips; and its frames in the file.
    pub(super) fn placed(self, shifts: &[i64]) -> Placed {
        let Self { track, entries, played, sources, .. } = self;
        let zero = played.parts.first().map(|part| (parts::start(part, shifts), part.clock));
        let of_parts = |some: &[&Part]| {
            let kind = some.first().map_or(played.main, |part| part.kind);
            let (entry, descriptions) = entries.described(kind, some)?;
            let timescale = clock(&entry.kind);
            let zero = zero.map_or(0, |(ticks, clock)| clock.convert(ticks, timescale));
            let parts::Joined { samples, first, media_time } = parts::join(some, shifts, timescale, zero);
            let empty = u64::try_from(first).ok().filter(|duration| *duration > 0);
            let empty = empty.map(|duration| Edit { duration, media_time: None });
            let shown = Edit { duration: 0, media_time: Some(media_time) };
            Some(Track {
                kind: entry.kind,
                timescale,
                codec: entry.codec,
                sample_entry: entry.sample_entry,
                edits: empty.into_iter().chain([shown]).collect(),
                samples,
                descriptions: descriptions.map(Box::new),
                ..track.clone()
            })
        };
        let clips = played.clips().iter().filter_map(|clip| of_parts(clip)).collect();
        let whole = of_parts(&played.main_parts());
        Placed { track: whole.unwrap_or(track), clips, sources }
    }
}

/// Returns the clock of a track: the 90 kHz of the stream for pictures, the sampling rate for sound.
fn clock(kind: &TrackKind) -> Timescale {
    match kind {
        TrackKind::Audio { sample_rate, .. } => Timescale::new(*sample_rate).unwrap_or(Timescale::MPEG),
        _ => Timescale::MPEG,
    }
}
