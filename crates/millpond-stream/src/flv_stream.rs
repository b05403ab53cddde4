//! FLV tags made of frames as they pass, as RTMP sends them.
//!
//! An [`FlvStream`] takes the frames of a running stream and gives the bodies of tags, each at once. It does no I/O and reads no clock.
//! It begins with metadata, the configurations of all tracks, and the first key frame of the leading track; earlier frames are left
//! out. Times begin with 0 there.

use crate::{Format, Frame};
use millpond_media::{
    TrackKind,
    flv::{FlvMessage, FlvMetadata, FlvValue, FlvWriter},
    units::Timescale,
};
use millpond_package::MediaKind;
use std::time::Duration;

/// Most tracks of sound.
const MOST_SOUNDS: usize = 8;

/// Makes FLV tags of frames, which must come in decoding order within each track.
#[derive(Debug)]
pub struct FlvStream {
    lanes: Vec<Lane>,
    lead: u16,
    /// Whether the receiver reads several tracks of sound.
    reads_tracks: bool,
    /// Milliseconds of the stream at which times begin; `None` before the first key frame.
    base: Option<i64>,
}

/// A track.
#[derive(Debug)]
struct Lane {
    /// Index in the formats of the feed.
    track: u16,
    format: Format,
    writer: FlvWriter,
    /// Whether its configuration was written since it changed.
    is_configured: bool,
    /// The next time is no less.
    next: i64,
}

/// Whether FLV tags can carry the frames of a track.
#[must_use]
pub fn fits(format: &Format) -> bool {
    writer(format, 0).is_some()
}

/// The writer of a track; `number` counts those of sound from 0.
fn writer(format: &Format, number: usize) -> Option<FlvWriter> {
    let number = u8::try_from(number).ok().filter(|_| !format.is_encrypted && format.kind != MediaKind::Text)?;
    FlvWriter::of(&format.track.codec, &format.track.sample_entry, number)
}

impl FlvStream {
    /// Makes one for tracks of a feed, by their indexes: the first one of pictures, and the first one of sound, or all of sound where the
    /// receiver `reads_tracks`. It begins with a key frame of `lead`. Tracks that [do not fit](fits) are left out. `None` if the
    /// leading track does not fit.
    #[must_use]
    pub fn new<'a>(
        formats: impl IntoIterator<Item = (u16, &'a Format)>,
        lead: u16,
        reads_tracks: bool,
    ) -> Option<Self> {
        let lanes = lanes(formats, reads_tracks);
        lanes.iter().any(|lane| lane.track == lead).then_some(Self { lanes, lead, reads_tracks, base: None })
    }

    /// Begins an epoch with `formats`. Returns `false` where its tracks can't follow in the same stream: one has another codec, or the
    /// leading one is missing.
    pub fn enter(&mut self, formats: &[Option<Format>]) -> bool {
        let known = (0..).zip(formats).filter_map(|(track, format)| Some((track, format.as_ref()?)));
        let mut lanes = lanes(known, self.reads_tracks);
        if !lanes.iter().any(|lane| lane.track == self.lead) {
            return false;
        }
        for lane in &mut lanes {
            let Some(before) = self.lanes.iter().find(|before| before.track == lane.track) else { continue };
            if self.base.is_some() && lane.writer.codec_id() != before.writer.codec_id() {
                return false;
            }
            lane.is_configured = before.is_configured && lane.writer == before.writer;
            lane.next = before.next;
        }
        self.lanes = lanes;
        true
    }

    /// Takes a frame, and appends the messages that are due to `out`.
    pub fn push(&mut self, frame: &Frame, out: &mut Vec<FlvMessage>) {
        let base = match self.base {
            Some(base) => base,
            None if frame.track == self.lead && frame.is_sync => self.begin(frame, out),
            None => return,
        };
        let Some(lane) = self.lanes.iter_mut().find(|lane| lane.track == frame.track) else { return };
        let presented = milliseconds_of(frame.pts, lane.format.track.timescale);
        let is_video = lane.format.is_video();
        // Only pictures are reordered.
        let decoded = if is_video { milliseconds(frame.due).min(presented) } else { presented };
        if decoded < base && frame.track != self.lead {
            return;
        }
        let decoded = decoded.max(lane.next);
        lane.next = decoded;
        // Times wrap after 49 days.
        let timestamp = (decoded - base) as u32;
        if !std::mem::replace(&mut lane.is_configured, true) {
            out.extend(lane.writer.configuration(timestamp));
        }
        let composition = i32::try_from(presented - decoded).unwrap_or(0);
        out.push(lane.writer.frame(
            timestamp,
            if is_video { composition } else { 0 },
            frame.is_sync,
            frame.data.clone(),
        ));
    }

    /// Begins with a key frame of the leading track. Returns the milliseconds at which times begin.
    fn begin(&mut self, key: &Frame, out: &mut Vec<FlvMessage>) -> i64 {
        let base = milliseconds(key.due);
        self.base = Some(base);
        out.push(self.metadata().message(0));
        for lane in &mut self.lanes {
            lane.next = base;
            lane.is_configured = true;
            out.extend(lane.writer.configuration(0));
        }
        base
    }

    /// The properties of the tracks.
    fn metadata(&self) -> FlvMetadata {
        let mut metadata = FlvMetadata::default();
        metadata.set("duration", FlvValue::Number(0.0));
        let (mut others, mut sounds) = (FlvMetadata::default(), 0_u32);
        for lane in &self.lanes {
            let number = |number: u32| FlvValue::Number(number.into());
            match lane.format.track.kind {
                TrackKind::Video { width, height, .. } => {
                    metadata.set("width", number(width.into()));
                    metadata.set("height", number(height.into()));
                    metadata.set("videocodecid", number(lane.writer.codec_id()));
                }
                TrackKind::Audio { channels, sample_rate } if sounds == 0 => {
                    metadata.set("audiocodecid", number(lane.writer.codec_id()));
                    metadata.set("audiosamplerate", number(sample_rate));
                    metadata.set("audiosamplesize", number(16));
                    metadata.set("audiochannels", number(channels.into()));
                    metadata.set("stereo", FlvValue::Boolean(channels > 1));
                    sounds = 1;
                }
                TrackKind::Audio { channels, sample_rate } => {
                    let mut track = FlvMetadata::default();
                    track.set("audiocodecid", number(lane.writer.codec_id()));
                    track.set("samplerate", number(sample_rate));
                    track.set("channels", number(channels.into()));
                    if let Some(language) = &lane.format.language {
                        track.set("language", FlvValue::Text(language));
                    }
                    others.set_object(&sounds.to_string(), &track);
                    sounds += 1;
                }
                TrackKind::Text => {}
            }
        }
        if sounds > 1 {
            metadata.set_object("audioTrackIdInfoMap", &others);
        }
        metadata.set("encoder", FlvValue::Text("Millpond"));
        metadata
    }
}

/// Chooses tracks: the first one of pictures, and one or all of sound. The one that players should begin with is the first of sound.
fn lanes<'a>(formats: impl IntoIterator<Item = (u16, &'a Format)>, reads_tracks: bool) -> Vec<Lane> {
    let (mut pictures, mut sounds): (Vec<_>, Vec<_>) =
        formats.into_iter().filter(|(_, format)| fits(format)).partition(|(_, format)| format.is_video());
    pictures.truncate(1);
    sounds.sort_by_key(|(_, format)| !format.is_default);
    sounds.truncate(if reads_tracks { MOST_SOUNDS } else { 1 });
    let sounds = sounds.into_iter().enumerate();
    let all = pictures.into_iter().map(|found| (0, found)).chain(sounds);
    all.filter_map(|(number, (track, format))| {
        let (writer, format) = (writer(format, number)?, format.clone());
        Some(Lane { track, format, writer, is_configured: false, next: 0 })
    })
    .collect()
}

/// Converts a time to the nearest millisecond.
fn milliseconds(time: Duration) -> i64 {
    i64::try_from((time.as_nanos() + 500_000) / 1_000_000).unwrap_or(i64::MAX)
}

/// Converts ticks to the nearest millisecond.
fn milliseconds_of(ticks: i64, timescale: Timescale) -> i64 {
    let (ticks, rate) = (i128::from(ticks), i128::from(timescale.get()));
    i64::try_from((ticks * 1000 + rate / 2).div_euclid(rate)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
