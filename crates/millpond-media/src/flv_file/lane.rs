//! The frames of pictures or of sound.

use super::entries::{self, Entries};
use crate::{
    codec::{AAC_SAMPLES, Codec, MpegAudioHeader, TrackKind, captions::CaptionSearch, make, nal::NalSyntax},
    error::MediaError,
    flv::FlvCodec,
    movie::{
        Edit, SkippedTrack, Track,
        sample_table::{SampleTable, SampleTableBuilder, Slack},
    },
    mp4::sample_entries::StoredEntry,
    units::{ByteRange, Timescale},
};
use bytes::Bytes;

/// Milliseconds of a picture whose end is not known.
const USUAL: u32 = 40;
/// Milliseconds by which stated times are rounded.
const ROUNDED: i64 = 1;

/// A coded frame.
#[derive(Debug)]
pub(super) struct Frame {
    /// Decoding time in milliseconds.
    pub(super) time: i64,
    /// Milliseconds from decoding to presentation.
    pub(super) composition: i32,
    pub(super) is_key: bool,
    pub(super) range: ByteRange,
    /// Its first bytes; all of MP3.
    pub(super) beginning: Bytes,
    /// Its first bytes, as far as they were read anyway.
    pub(super) available: Bytes,
}

/// The tags of one kind.
#[derive(Debug)]
pub(super) struct Lane {
    codec: Option<FlvCodec>,
    entries: Option<Entries>,
    /// Clock of the samples.
    rate: Timescale,
    /// Ticks of a frame of sound; of a picture, those of the one before.
    length: u32,
    table: SampleTableBuilder,
    /// Least time of presentation in milliseconds, and ticks.
    first: Option<(i64, i64)>,
    /// Time of the last picture.
    last: Option<i64>,
    /// Form of pictures that can carry captions.
    form: Option<(NalSyntax, u8)>,
    captions: CaptionSearch,
    /// Why the track can't be played, or why the first tag that is left out of it is.
    refused: Option<MediaError>,
}

impl Default for Lane {
    fn default() -> Self {
        Self {
            codec: None,
            entries: None,
            rate: Timescale::MILLIS,
            length: USUAL,
            table: SampleTable::builder().keep_presentation(),
            first: None,
            last: None,
            form: None,
            captions: CaptionSearch::default(),
            refused: None,
        }
    }
}

impl Lane {
    /// Whether further tags are of use.
    pub(super) fn plays(&self) -> bool {
        let is_over = matches!(self.refused, Some(MediaError::Unsupported { .. }));
        !is_over || self.entries.is_some()
    }

    /// Whether the next frame tells the codec.
    pub(super) fn needs_frame(&self) -> bool {
        self.entries.is_none() && self.codec == Some(FlvCodec::Av1)
    }

    /// Leaves out a tag. If it has an unsupported codec, and no tag before it could be decoded, all others are left out too.
    pub(super) fn refuse(&mut self, error: MediaError) {
        self.refused.get_or_insert(error);
    }

    /// Least time of presentation in milliseconds.
    pub(super) fn first(&self) -> Option<i64> {
        self.first.map(|(time, _)| time)
    }

    /// Bytes of heap that the samples hold.
    pub(super) fn heap_bytes(&self) -> usize {
        self.table.heap_bytes()
    }

    /// Takes the configuration of the tag at `offset`.
    pub(super) fn configure(&mut self, codec: FlvCodec, record: &Bytes, offset: u64) {
        if !self.is_of(codec, offset) {
            return;
        }
        if let Some(entries) = &mut self.entries {
            entries.change(codec, record, self.table.len());
            return;
        }
        match entries::made(codec, record) {
            // A part of a request would keep all of it in memory.
            Some(Ok(made)) => self.begin(made, Bytes::copy_from_slice(record), offset),
            Some(Err(error)) => self.refuse(super::at(error, offset)),
            None => {}
        }
    }

    /// Adds a frame. Frames before the first configuration, and pictures before the first key frame, can't be decoded.
    pub(super) fn push(&mut self, codec: FlvCodec, frame: &Frame) {
        if !self.is_of(codec, frame.range.start) {
            return;
        }
        if self.entries.is_none() {
            match codec.described(&frame.beginning, frame.is_key) {
                Some(made) => self.begin(made, Bytes::new(), frame.range.start),
                None => return,
            }
        }
        if frame.range.is_empty() || !self.entries.as_mut().is_some_and(Entries::keeps) {
            return;
        }
        match codec {
            codec if codec.is_video() => self.picture(frame),
            FlvCodec::Mp3 => self.sound(frame, &mp3_frames(frame)),
            codec => {
                let length = codec.samples(&frame.beginning).unwrap_or(self.length);
                self.sound(frame, &[(frame.range, length)]);
            }
        }
    }

    /// Whether a tag has the codec of those before it.
    fn is_of(&mut self, codec: FlvCodec, offset: u64) -> bool {
        let first = *self.codec.get_or_insert(codec);
        if first != codec {
            let (found, expected) = (format!("{codec}"), format!("{first}, as before"));
            self.refuse(MediaError::invalid(super::PATH, offset, found, expected));
        }
        first == codec
    }

    fn begin(&mut self, made: make::Made, record: Bytes, offset: u64) {
        if let TrackKind::Audio { sample_rate, .. } = made.kind {
            self.rate = Timescale::new(sample_rate).unwrap_or(Timescale::MILLIS);
            self.length = Codec::samples_per_frame(&made.codec).unwrap_or(AAC_SAMPLES);
        }
        self.form = NalSyntax::of(&made.codec);
        self.entries = Some(Entries::new(made, record, offset));
    }

    fn picture(&mut self, frame: &Frame) {
        if self.table.is_empty() && !frame.is_key {
            return;
        }
        let Ok(size) = u32::try_from(frame.range.len()) else { return };
        if let Some(length) = self.last.map(|last| frame.time - last).and_then(|length| u32::try_from(length).ok()) {
            self.length = if length > 0 { length } else { self.length };
        }
        self.last = Some(frame.time);
        let shown = frame.time + i64::from(frame.composition);
        self.first = Some(self.first.map_or((shown, shown), |first| first.min((shown, shown))));
        self.table.set_start_dts(frame.time);
        self.table.push(frame.range.start, size, self.length, frame.composition, frame.is_key);
        if let Some(form) = self.form {
            self.captions.picture(form, &frame.available);
        }
    }

    /// Adds frames of sound with their lengths. The first begins at the stated time, or where the one before ends.
    fn sound(&mut self, frame: &Frame, frames: &[(ByteRange, u32)]) {
        let stated = Timescale::MILLIS.convert(frame.time, self.rate);
        let slack = Slack::of_sound(self.rate, Timescale::MILLIS.convert(ROUNDED, self.rate));
        let mut at = self.table.follow(stated, slack);
        for (range, length) in frames {
            let Ok(size) = u32::try_from(range.len()) else { continue };
            self.first.get_or_insert((frame.time, at));
            self.table.set_start_dts(at);
            self.table.push(range.start, size, *length, 0, true);
            at += i64::from(*length);
        }
    }

    /// Returns the track in a presentation that begins at `base` milliseconds, and why it, or frames of it, are left out.
    pub(super) fn finish(self, id: u32, base: i64) -> (Option<Track>, Vec<SkippedTrack>) {
        let Self { entries, rate, table, first, refused, codec, captions, .. } = self;
        let left = |error: &MediaError| SkippedTrack::of_error(id, error);
        let mut reasons: Vec<SkippedTrack> = refused.iter().map(left).collect();
        let samples = table.finish();
        let (Some(entries), Some((time, shown)), false) = (entries, first, samples.is_empty()) else {
            if let (None, Some(codec)) = (&refused, codec) {
                let (found, expected) = (format!("no frames of {codec}"), "a configuration and frames");
                reasons.push(left(&MediaError::invalid(super::PATH, 0, found, expected)));
            }
            return (None, reasons);
        };
        let (entry, descriptions, warnings) = entries.finish();
        // Frames of one codec are played, so the track is not left out for the other.
        reasons.iter_mut().for_each(|left| left.codec = None);
        reasons.extend(warnings.into_iter().map(|why| SkippedTrack::new(id, why)));
        let Some(StoredEntry { codec, kind, sample_entry, .. }) = entry else { return (None, reasons) };
        let made = make::Made { codec, kind, sample_entry };
        let track = Track::live(id, made, rate, "und");
        // Nothing is presented until the first frame.
        let waits = u64::try_from(Timescale::MILLIS.convert(time - base, Timescale::MPEG)).unwrap_or(0);
        let empty = (waits > 0).then_some(Edit { duration: waits, media_time: None });
        let edits = empty.into_iter().chain([Edit { duration: 0, media_time: Some(shown) }]).collect();
        let (captions, descriptions) = (captions.partial(), descriptions.map(Box::new));
        (Some(Track { samples, edits, captions, descriptions, ..track }), reasons)
    }
}

/// Returns the frames of MP3 in a tag with their lengths in samples: mostly one.
fn mp3_frames(frame: &Frame) -> Vec<(ByteRange, u32)> {
    let (mut frames, mut at) = (Vec::new(), 0);
    while let Some(header) = frame.beginning.get(at..).and_then(MpegAudioHeader::read) {
        let start = frame.range.start + at as u64;
        let length = header.length.filter(|length| *length > 0).unwrap_or(usize::MAX);
        let end = start.saturating_add(length as u64).min(frame.range.end);
        frames.push((ByteRange::new(start, end), header.samples));
        at = at.saturating_add(length);
    }
    frames
}
