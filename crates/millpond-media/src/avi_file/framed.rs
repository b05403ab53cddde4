//! Streams whose chunks together are an elementary stream. The framers of transport streams find its frames.

use super::{
    gaps::{COPIES, Gaps},
    header::Stream,
    lane::Finished,
    pace::{self, Pace},
    picture_table::{PictureTable, Pictures},
};
use crate::{
    codec::{
        AAC_SAMPLES, StreamForm, TrackKind,
        captions::CaptionSearch,
        make::Made,
        nal::{
            NalSyntax,
            picture_order::{PictureOrder, UNKNOWN_ORDER},
        },
    },
    error::MediaError,
    movie::{
        extraction::{ExtractedStreamBuilder, FramePlace, UnitPlace},
        sample_table::SampleTableBuilder,
        whole_frames::Extracted,
    },
    ts::{Framed, Framer, PesUnit, StreamCoding, TsConfiguration, TsFrame},
    ts_file::Entries,
    units::{ByteRange, Timescale},
};
use bytes::Bytes;

/// Bytes of the lengths of NAL units in samples.
const LENGTH_SIZE: u8 = 4;
/// Most bytes of sound that the framer gets at once: a chunk may hold seconds of sound.
const SOUND: usize = 64 << 10;
/// Steps of work for a configuration, whose parameter sets are copied, compared and read.
const CONFIGURATION: u64 = 1024;
/// Mask of a chunk's number, which takes the place of a timestamp of 33 bits.
const NUMBER: u64 = (1 << 33) - 1;

/// Kind of the first frames. Only frames of this kind are in the track.
const MAIN: usize = 0;

/// The reading of a stream whose frames are found in its chunks.
#[derive(Debug)]
pub(super) struct FramedStream {
    form: StreamForm,
    framer: Framer,
    framed: Vec<Framed>,
    entries: Entries,
    source: ExtractedStreamBuilder,
    /// Length of the elementary stream so far.
    position: u64,
    samples: Samples,
    /// Configurations that the stream stated.
    configurations: u64,
    /// Last kind of frames that are left out because they need another decoder, and the number of all frames left out.
    others: Option<(usize, u64)>,
    /// Reason why no further frames are read.
    ended: Option<MediaError>,
}

/// The samples read so far.
#[derive(Debug)]
enum Samples {
    Pictures(Box<PictureSamples>),
    Sound(Box<Sound>),
}

impl Samples {
    fn len(&self) -> u32 {
        match self {
            Self::Pictures(pictures) => pictures.table.len(),
            Self::Sound(sound) => sound.table.len(),
        }
    }
}

#[derive(Debug)]
struct PictureSamples {
    syntax: NalSyntax,
    pace: Pace,
    table: PictureTable,
    order: PictureOrder,
    captions: CaptionSearch,
}

#[derive(Debug, Default)]
struct Sound {
    table: SampleTableBuilder,
    clock: Option<Timescale>,
}

impl FramedStream {
    /// Creates the reading of a stream; `None` if no framer knows `coding`, or the pictures have no rate. `known` is the header's
    /// configuration.
    pub(super) fn new(stream: &Stream, coding: StreamCoding, known: Option<TsConfiguration>) -> Option<Self> {
        let (form, framer) = (coding.form()?, Framer::new(coding)?.for_files());
        let syntax = match form {
            StreamForm::Avc => Some(NalSyntax::Avc),
            StreamForm::Hevc => Some(NalSyntax::Hevc),
            _ => None,
        };
        let samples = match syntax {
            Some(syntax) => {
                let pace = Pace::of(stream).ok()?;
                let (table, order) = (PictureTable::new(pace.step), PictureOrder::new(syntax, LENGTH_SIZE));
                let captions = CaptionSearch::default();
                Samples::Pictures(Box::new(PictureSamples { syntax, pace, table, order, captions }))
            }
            None => Samples::Sound(Box::default()),
        };
        let mut framed = Self {
            form,
            framer,
            framed: Vec::new(),
            entries: Entries::default(),
            source: ExtractedStreamBuilder::default(),
            position: 0,
            samples,
            configurations: 0,
            others: None,
            ended: None,
        };
        known.into_iter().for_each(|known| framed.configure(known));
        Some(framed)
    }

    /// Steps of work so far, besides those for chunks and bytes.
    pub(super) fn steps(&self) -> u64 {
        self.configurations.saturating_mul(CONFIGURATION)
    }

    /// Bytes of heap held.
    pub(super) fn heap_bytes(&self) -> usize {
        let samples = match &self.samples {
            Samples::Pictures(pictures) => pictures.table.heap_bytes(),
            Samples::Sound(sound) => sound.table.heap_bytes() * COPIES,
        };
        self.framer.held() + self.source.heap_bytes() + samples
    }

    /// Time of the next frame of sound; of the picture of chunk `number`.
    pub(super) fn time(&self, number: u64) -> i64 {
        match &self.samples {
            Samples::Pictures(pictures) => pictures.pace.time(number),
            Samples::Sound(sound) => sound.table.next_dts(),
        }
    }

    /// Takes the data of chunk `number`. Their place in the file is `place`.
    pub(super) fn push(&mut self, number: u64, place: ByteRange, data: Bytes, extracted: &mut Extracted) {
        if self.ended.is_some() || data.is_empty() {
            return;
        }
        let most = match &self.samples {
            Samples::Pictures(_) => data.len(),
            Samples::Sound(_) => SOUND,
        };
        let (mut at, mut rest) = (place.start, data);
        while !rest.is_empty() {
            let data = rest.split_to(rest.len().min(most));
            let place = ByteRange::at(at, data.len() as u64);
            at = place.end;
            self.unit(number, place, data, extracted);
        }
    }

    /// Takes a chunk, or a part of one.
    fn unit(&mut self, number: u64, place: ByteRange, data: Bytes, extracted: &mut Extracted) {
        let payload = ByteRange::at(self.position, place.len());
        self.source.push_unit(UnitPlace { packets: place, payload });
        self.position = payload.end;
        let (pts, first_packet, last_packet) = (Some(number & NUMBER), place.start, place.end);
        let unit = PesUnit { pts, data, first_packet, last_packet, is_unbounded: true, ..PesUnit::default() };
        let mut framed = std::mem::take(&mut self.framed);
        self.framer.push(&unit, &mut framed);
        self.take(&mut framed, place.start, extracted);
        self.framed = framed;
    }

    /// Takes the complete frames. `at` is the offset of the last chunk, for errors.
    fn take(&mut self, framed: &mut Vec<Framed>, at: u64, extracted: &mut Extracted) {
        for framed in framed.drain(..) {
            match framed {
                Framed::Configuration(configuration) => self.configure(configuration),
                Framed::Frame(frame) => self.frame(&frame, at, extracted),
                Framed::Fault(_) => {}
            }
        }
    }

    /// Takes the configuration of the frames that follow.
    fn configure(&mut self, configuration: TsConfiguration) {
        self.configurations += 1;
        if let Samples::Pictures(pictures) = &mut self.samples {
            let sets = match &configuration {
                TsConfiguration::Avc { sps, pps } => [sps, pps],
                TsConfiguration::Hevc { sps, pps, .. } => [sps, pps],
                _ => return,
            };
            if !pictures.order.describe(sets.into_iter().flatten().map(Vec::as_slice)) {
                self.ended = Some(MediaError::unsupported("the stream", 0, UNKNOWN_ORDER));
                return;
            }
        }
        self.entries.configure(configuration);
    }

    fn frame(&mut self, frame: &TsFrame, at: u64, extracted: &mut Extracted) {
        let count = self.samples.len();
        // Decoding begins with a key frame.
        if self.ended.is_some() || count == 0 && !frame.is_sync {
            return;
        }
        match self.entries.accept(frame, count, at) {
            Some(MAIN) => {}
            Some(other) => {
                self.others = Some((other, self.others.map_or(1, |(_, frames)| frames + 1)));
                return;
            }
            None => return,
        }
        let Some((codec, kind)) = self.entries.media(MAIN) else { return };
        let place = extracted.append(frame.data.len() as u64);
        match &mut self.samples {
            Samples::Pictures(pictures) => {
                pictures.captions.picture((pictures.syntax, LENGTH_SIZE), &frame.data);
                let order = pictures.order.next(&frame.data);
                pictures.table.push(pictures.pace.time(frame.dts), Some(order), place, frame.is_sync);
            }
            Samples::Sound(sound) => {
                let rate = match kind {
                    TrackKind::Audio { sample_rate, .. } => *sample_rate,
                    _ => 0,
                };
                sound.clock = sound.clock.or(Timescale::new(rate));
                let (size, length) = (u32::try_from(place.len()).unwrap_or(u32::MAX), codec.samples_per_frame());
                sound.table.push(place.start, size, length.unwrap_or(AAC_SAMPLES), 0, true);
            }
        }
        self.source.push_frame(FramePlace { extracted: place, source: frame.source });
    }

    /// Returns the track's parts. Sound that is missing takes as long as other sound of as many bytes.
    ///
    /// # Errors
    /// No frame of it can be played.
    pub(super) fn finish(
        mut self,
        stream: &Stream,
        gaps: Gaps,
        extracted: &mut Extracted,
    ) -> Result<Finished, MediaError> {
        let mut framed = std::mem::take(&mut self.framed);
        self.framer.finish(&mut framed);
        self.take(&mut framed, stream.format.0, extracted);
        let why = |found: &str| {
            let found = format!("{found} in stream {}", stream.number);
            MediaError::invalid("movi", 0, found, "frames that can be played")
        };
        if let Some(error) = self.ended {
            return Err(error);
        }
        let count = self.samples.len();
        let reason = self.entries.take_reason();
        let Some((entry, descriptions)) = self.entries.described_whole(MAIN, count) else {
            return Err(reason.unwrap_or_else(|| why("no configuration")));
        };
        let others =
            self.others.and_then(|(kind, frames)| self.entries.other_than(MAIN, kind, frames, "they are left out"));
        let reason = reason.or(others);
        let made = Made { codec: entry.codec, kind: entry.kind, sample_entry: entry.sample_entry };
        let (clock, samples, (media_time, first), captions) = match self.samples {
            Samples::Pictures(pictures) => {
                let PictureSamples { pace, table, captions, .. } = *pictures;
                let gaps = gaps.shifts(|missing| pace.duration(missing.chunks));
                let Pictures { samples, media_time, first } = table.finish(&gaps).ok_or_else(|| why("no key frame"))?;
                (pace.clock, samples, (media_time, first), captions.finish())
            }
            Samples::Sound(sound) => {
                let clock = sound.clock.ok_or_else(|| why("no frame"))?;
                let samples = sound.table.finish();
                let (ticks, bytes) = (i128::from(samples.end_dts()), i128::from(self.position.max(1)));
                let ticks = |missing: u64| i64::try_from(ticks * i128::from(missing) / bytes).unwrap_or(i64::MAX);
                let samples = gaps.shifts(|missing| ticks(missing.bytes)).of_sound(samples);
                let times = pace::sound_times(stream, clock, &samples);
                (clock, samples, times, None)
            }
        };
        if samples.is_empty() {
            return Err(why("no frame"));
        }
        let (source, descriptions) = (Some((self.source, self.form)), descriptions.map(Box::new));
        Ok(Finished { made, clock, samples, media_time, first, captions, descriptions, source, reason })
    }
}
