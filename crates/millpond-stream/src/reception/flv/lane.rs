//! One track of a stream of FLV tags.

use super::{super::format::Outline, sound_times::SoundTimes};
use crate::Format;
use bytes::Bytes;
use millpond_media::{
    Codec, MediaError, ParameterSets, Timescale, TrackKind,
    codec::make::{self, Made},
    flv::FlvCodec,
};
use millpond_package::MediaKind;
use std::time::Duration;

/// Length in bytes of NAL unit lengths. Senders have no other one.
pub(super) const LENGTH_SIZE: u8 = 4;
/// Timestamps count milliseconds.
const MILLISECONDS: u32 = 1000;
/// Greatest time in milliseconds by which decoding precedes presentation. Greater ones are errors.
const MOST_REORDERED: i32 = 10_000;

/// A track, and the known parts of its format.
#[derive(Debug)]
pub(super) struct Lane {
    codec: FlvCodec,
    /// Number that its tags state.
    number: u8,
    /// Parameter sets of H.264 and HEVC.
    sets: Option<ParameterSets>,
    made: Option<Made>,
    /// Index in the formats; `None` before the tracks are known, and where there is none for it.
    track: Option<u16>,
    /// Greatest time in milliseconds by which decoding follows presentation: decode times are moved back by it.
    late: i32,
    /// Times of sound whose rate is known.
    times: Option<SoundTimes>,
}

impl Lane {
    pub(super) fn new(codec: FlvCodec, number: u8, track: Option<u16>) -> Self {
        let sets = codec.syntax().map(|syntax| ParameterSets::new(syntax, LENGTH_SIZE));
        Self { codec, number, sets, made: None, track, late: 0, times: None }
    }

    /// Its place among the lanes: pictures before sound, then by the numbers that tags state.
    pub(super) fn place(&self) -> (bool, u8) {
        (!self.codec.is_video(), self.number)
    }

    pub(super) fn codec(&self) -> FlvCodec {
        self.codec
    }

    pub(super) fn track(&self) -> Option<u16> {
        self.track
    }

    pub(super) fn set_track(&mut self, track: Option<u16>) {
        self.track = track;
    }

    /// Whether its format is known.
    pub(super) fn is_known(&self) -> bool {
        self.made.is_some()
    }

    /// Takes the configuration of the decoder. Returns whether the format is a new one.
    ///
    /// # Errors
    /// The configuration is invalid or not supported.
    pub(super) fn configure(&mut self, record: &[u8]) -> Result<bool, MediaError> {
        let made = match (self.codec, self.codec.syntax()) {
            (_, Some(syntax)) => {
                let (length_size, units) = make::parameter_sets(syntax, record)?;
                if length_size != LENGTH_SIZE {
                    let found = format!("NAL unit lengths of {length_size} bytes");
                    return Err(MediaError::unsupported("FLV tag", 0, found));
                }
                let mut sets = ParameterSets::new(syntax, LENGTH_SIZE);
                let made = sets.describe(&units)?;
                self.sets = Some(sets);
                made
            }
            (codec, None) => match codec.configured(record) {
                Some(made) => made?,
                // Frames tell it.
                None => return Ok(false),
            },
        };
        Ok(self.show(made))
    }

    /// Removes from a frame the parts that the sample entry has. Returns whether the format is a new one from this frame on, and
    /// the frame. One without bytes is no frame.
    pub(super) fn sift(&mut self, frame: &Bytes, is_key: bool, now: Duration) -> (bool, Bytes) {
        let (made, bytes) = match (&mut self.sets, self.codec) {
            (Some(sets), _) => {
                let sifted = sets.frame(frame, is_key, now);
                (sifted.made, sifted.bytes)
            }
            // Each key frame may tell other pictures; the first frame of sound tells all.
            (None, codec) if codec.is_video() || self.made.is_none() => (codec.described(frame, is_key), frame.clone()),
            (None, _) => (None, frame.clone()),
        };
        (made.is_some_and(|made| self.show(made)), bytes)
    }

    fn show(&mut self, made: Made) -> bool {
        if self.made.as_ref() == Some(&made) {
            return false;
        }
        if let TrackKind::Audio { sample_rate, .. } = made.kind {
            let frame = match &made.codec {
                Codec::Aac(config) if config.output_sample_rate() == sample_rate => config.samples_per_frame(),
                // The rate of others may be half of the decoder's.
                Codec::Aac(_) => None,
                codec => codec.samples_per_frame(),
            };
            self.times = Some(SoundTimes::new(sample_rate, frame));
        }
        self.made = Some(made);
        true
    }

    /// Media and rate, as tracks are chosen by.
    pub(super) fn media(&self) -> (&'static str, Timescale) {
        match &self.times {
            Some(times) => ("audio", times.rate()),
            None => ("video", Timescale::MPEG),
        }
    }

    /// Ticks a second of the times that frames get.
    pub(super) fn clock(&self) -> Timescale {
        let milliseconds = || Timescale::new(MILLISECONDS).unwrap_or(Timescale::MPEG);
        self.times.as_ref().map_or_else(milliseconds, SoundTimes::rate)
    }

    /// Time of the next frame of sound in samples; `None` for pictures.
    pub(super) fn sound_time(&mut self, timestamp: u32, frame: &[u8]) -> Option<i64> {
        let samples = self.codec.samples(frame);
        Some(self.times.as_mut()?.next(timestamp, samples))
    }

    /// Time in 90 kHz by which a picture is decoded before its presentation.
    pub(super) fn reordered(&mut self, composition: i32) -> u32 {
        let composition = if composition.unsigned_abs() > MOST_REORDERED as u32 { 0 } else { composition };
        self.late = self.late.max(-composition);
        let milliseconds = (composition + self.late).max(0) as u32;
        milliseconds * (Timescale::MPEG.get() / MILLISECONDS)
    }

    /// The format of its track. `number` counts from 1 among the tracks of its media.
    pub(super) fn format(&self, number: u16, timescale: Timescale) -> Option<Format> {
        let (kind, letter) = if self.codec.is_video() { (MediaKind::Video, 'v') } else { (MediaKind::Audio, 'a') };
        let outline = Outline {
            name: format!("{letter}{number}"),
            kind,
            id: u32::from(self.track?) + 1,
            is_default: number == 1,
            language: None,
            bandwidth: 0,
            timescale,
        };
        Some(outline.format(self.made.clone()?))
    }
}
