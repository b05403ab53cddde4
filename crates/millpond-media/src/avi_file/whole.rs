//! Streams whose chunks are samples: a picture, a frame of sound, or whole frames of PCM.

use super::{
    format::SelfDescribed,
    gaps::{COPIES, Gaps},
    header::Stream,
    key_frame,
    lane::Finished,
    pace::{self, Pace},
    picture_table::PictureTable,
};
use crate::{
    codec::{
        Codec, StreamForm, TrackKind,
        captions::CaptionSearch,
        make::Made,
        nal::{
            self, NalSyntax,
            picture_order::{PictureOrder, UNKNOWN_ORDER},
        },
    },
    error::MediaError,
    movie::{
        sample_table::SampleTableBuilder,
        whole_frames::{Extracted, WholeFrames},
    },
    mp4::pcm_units::PcmUnits,
    units::{ByteRange, Timescale},
};

/// A chunk of a stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamChunk<'a> {
    /// Number within its stream, from 0.
    pub(super) number: u64,
    /// Place of its data in the file.
    pub(super) place: ByteRange,
    /// Whether decoding can begin with the chunk, as the index states; `None` without an index.
    pub(super) is_key: Option<bool>,
    /// The chunk's data, if they were read.
    pub(super) data: Option<&'a [u8]>,
}

/// The reading of a stream whose chunks are samples.
#[derive(Debug)]
pub(super) struct WholeStream {
    kind: Kind,
    /// Map of the frames in the extracted object.
    frames: WholeFrames,
    /// First chunk with which decoding can begin.
    first_key: Option<ByteRange>,
}

#[derive(Debug)]
enum Kind {
    Picture { codec: SelfDescribed, pace: Pace, table: PictureTable, made: Option<Result<Made, MediaError>> },
    Units(Box<Units>),
    Sound { made: Made, clock: Timescale, length: u32, table: SampleTableBuilder },
    Pcm { made: Made, clock: Timescale, units: PcmUnits, table: SampleTableBuilder },
}

/// Pictures of NAL units, each after its length.
#[derive(Debug)]
struct Units {
    made: Made,
    syntax: NalSyntax,
    length_size: u8,
    pace: Pace,
    table: PictureTable,
    order: PictureOrder,
    captions: CaptionSearch,
}

impl WholeStream {
    fn of(kind: Kind) -> Self {
        Self { kind, frames: WholeFrames::default(), first_key: None }
    }

    /// Creates a stream of pictures whose key frames describe themselves.
    pub(super) fn of_pictures(codec: SelfDescribed, pace: Pace) -> Self {
        Self::of(Kind::Picture { codec, pace, table: PictureTable::new(pace.step), made: None })
    }

    /// Creates a stream of pictures of NAL units, each after its length.
    ///
    /// # Errors
    /// The order of presentation is not known.
    pub(super) fn of_units(syntax: NalSyntax, made: Made, pace: Pace) -> Result<Self, MediaError> {
        let length_size = NalSyntax::of(&made.codec).map_or(4, |(_, length_size)| length_size);
        let mut order = PictureOrder::new(syntax, length_size);
        let is_known = match &made.codec {
            Codec::Avc(config) => order.describe(config.parameter_sets()),
            Codec::Hevc(config) => order.describe(config.parameter_sets()),
            _ => false,
        };
        if !is_known {
            return Err(MediaError::unsupported("strf", 0, UNKNOWN_ORDER));
        }
        let (table, captions) = (PictureTable::new(pace.step), CaptionSearch::default());
        Ok(Self::of(Kind::Units(Box::new(Units { made, syntax, length_size, pace, table, order, captions }))))
    }

    /// Creates a stream of sound with a frame of `length` samples in each chunk.
    pub(super) fn of_sound(made: Made, length: u32) -> Self {
        let clock = clock(&made.kind);
        Self::of(Kind::Sound { made, clock, length, table: SampleTableBuilder::default() })
    }

    /// Creates a stream of PCM; `None` for another codec.
    pub(super) fn of_pcm(made: Made) -> Option<Self> {
        let (clock, units) = (clock(&made.kind), PcmUnits::of(&made.codec)?);
        Some(Self::of(Kind::Pcm { made, clock, units, table: SampleTableBuilder::default() }))
    }

    /// Number of samples.
    pub(super) fn len(&self) -> u32 {
        match &self.kind {
            Kind::Picture { table, .. } => table.len(),
            Kind::Units(units) => units.table.len(),
            Kind::Sound { table, .. } | Kind::Pcm { table, .. } => table.len(),
        }
    }

    /// Time of the next frame of sound; of the picture of chunk `number`.
    pub(super) fn time(&self, number: u64) -> i64 {
        match &self.kind {
            Kind::Picture { pace, .. } => pace.time(number),
            Kind::Units(units) => units.pace.time(number),
            Kind::Sound { table, .. } | Kind::Pcm { table, .. } => table.next_dts(),
        }
    }

    /// Whether samples are parts of chunks.
    pub(super) fn is_divided(&self) -> bool {
        matches!(self.kind, Kind::Pcm { .. })
    }

    /// Bytes of heap held.
    pub(super) fn heap_bytes(&self) -> usize {
        let table = match &self.kind {
            Kind::Picture { table, .. } => table.heap_bytes(),
            Kind::Units(units) => units.table.heap_bytes(),
            Kind::Sound { table, .. } | Kind::Pcm { table, .. } => table.heap_bytes() * COPIES,
        };
        table + self.frames.heap_bytes()
    }

    /// First chunk with which decoding can begin, if the codec must be read from this chunk.
    pub(super) fn describes_itself(&self) -> Option<ByteRange> {
        self.first_key.filter(|_| matches!(self.kind, Kind::Picture { .. }))
    }

    /// Takes the beginning of the chunk that [`describes_itself`](Self::describes_itself) named. Returns `false` if its samples are no
    /// whole chunks.
    pub(super) fn describe(&mut self, beginning: &[u8]) -> bool {
        let Kind::Picture { codec, made, .. } = &mut self.kind else { return true };
        *made = Some(codec.made(beginning));
        key_frame::delimiter(*codec, beginning) == 0
    }

    /// Takes the next chunk. With an index, samples are ranges of the file. Without one, they are appended to the extracted object.
    pub(super) fn push(&mut self, chunk: StreamChunk<'_>, extracted: Option<&mut Extracted>) {
        if chunk.place.is_empty() {
            return;
        }
        let data = chunk.data.unwrap_or_default();
        let skip = match &mut self.kind {
            Kind::Picture { codec, made, .. } => {
                let is_key = chunk.is_key.unwrap_or_else(|| key_frame::is_key(*codec, data));
                if self.first_key.is_none() && !is_key {
                    return;
                }
                if self.first_key.is_none() && chunk.data.is_some() {
                    *made = Some(codec.made(data));
                }
                key_frame::delimiter(*codec, data)
            }
            Kind::Units(units) if self.first_key.is_none() && !units.is_key(data) => return,
            _ => 0,
        };
        self.first_key.get_or_insert(chunk.place);
        let place = self.place(chunk.place, skip, extracted);
        if place.is_empty() {
            return;
        }
        let size = u32::try_from(place.len()).unwrap_or(u32::MAX);
        match &mut self.kind {
            Kind::Picture { codec, pace, table, .. } => {
                let is_key = chunk.is_key.unwrap_or_else(|| key_frame::is_key(*codec, data));
                table.push(pace.time(chunk.number), None, place, is_key);
            }
            Kind::Units(units) => {
                let is_key = units.is_key(data);
                units.captions.picture((units.syntax, units.length_size), data);
                let order = units.order.next(data);
                units.table.push(units.pace.time(chunk.number), Some(order), place, is_key);
            }
            Kind::Sound { length, table, .. } => table.push(place.start, size, *length, 0, true),
            Kind::Pcm { units, table, .. } => {
                let frames = size / units.frame().max(1);
                units.begin(frames);
                units.frames(table, place.start, frames, 1);
                units.end(table);
            }
        }
    }

    /// Returns the place of a sample, which begins `skip` bytes behind the beginning of its chunk.
    fn place(&mut self, chunk: ByteRange, skip: u64, extracted: Option<&mut Extracted>) -> ByteRange {
        let sample = ByteRange::new(chunk.start.saturating_add(skip), chunk.end);
        match extracted.filter(|_| !sample.is_empty()) {
            Some(extracted) => self.frames.append(sample, extracted),
            None => sample,
        }
    }

    /// Returns the track's parts.
    ///
    /// # Errors
    /// No frame of it can be played.
    pub(super) fn finish(self, stream: &Stream, gaps: Gaps) -> Result<Finished, MediaError> {
        let why = |found: String| {
            let found = format!("{found} in stream {}", stream.number);
            MediaError::invalid("movi", 0, found, "frames that can be played")
        };
        let source = Some((self.frames.into_source(), StreamForm::Plain));
        let (descriptions, reason) = (None, None);
        let (made, clock, samples, times, captions) = match self.kind {
            Kind::Picture { codec, pace, table, made } => {
                let made = made.unwrap_or_else(|| Err(why(format!("no key frame of {}", codec.name()))))?;
                let gaps = gaps.shifts(|missing| pace.duration(missing.chunks));
                let pictures = table.finish(&gaps).ok_or_else(|| why("no picture".to_owned()))?;
                (made, pace.clock, pictures.samples, (pictures.media_time, pictures.first), None)
            }
            Kind::Units(units) => {
                let Units { made, pace, table, captions, .. } = *units;
                let gaps = gaps.shifts(|missing| pace.duration(missing.chunks));
                let pictures = table.finish(&gaps).ok_or_else(|| why("no key frame".to_owned()))?;
                (made, pace.clock, pictures.samples, (pictures.media_time, pictures.first), captions.finish())
            }
            Kind::Sound { made, clock, table, length } => {
                let ticks = |chunks: u64| i64::try_from(chunks).unwrap_or(i64::MAX).saturating_mul(length.into());
                let samples = gaps.shifts(|missing| ticks(missing.filled)).of_sound(table.finish());
                let times = pace::sound_times(stream, clock, &samples);
                (made, clock, samples, times, None)
            }
            Kind::Pcm { made, clock, table, units } => {
                let frame = u64::from(units.frame().max(1));
                let ticks = |bytes: u64| i64::try_from(bytes / frame).unwrap_or(i64::MAX);
                let samples = gaps.shifts(|missing| ticks(missing.bytes)).of_sound(table.finish());
                let times = pace::sound_times(stream, clock, &samples);
                (made, clock, samples, times, None)
            }
        };
        if samples.is_empty() {
            return Err(why("no frame".to_owned()));
        }
        let (media_time, first) = times;
        Ok(Finished { made, clock, samples, media_time, first, captions, descriptions, source, reason })
    }
}

impl Units {
    /// Whether decoding can begin with a picture.
    fn is_key(&self, picture: &[u8]) -> bool {
        let mut units = nal::units(self.length_size, picture);
        units.any(|unit| self.syntax.is_entry_slice(unit) || self.syntax.is_recovery_point(unit))
    }
}

fn clock(kind: &TrackKind) -> Timescale {
    match kind {
        TrackKind::Audio { sample_rate, .. } => Timescale::new(*sample_rate).unwrap_or(Timescale::MILLIS),
        _ => Timescale::MILLIS,
    }
}
