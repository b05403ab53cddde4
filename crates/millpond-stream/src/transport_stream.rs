//! One transport stream made of frames as they pass (ISO/IEC 13818-1).
//!
//! A [`TransportStream`] takes the frames of a running stream and gives packets: with each picture at once, and with sound after
//! 80 ms at most. It does no I/O and reads no clock. It begins with the first key frame of the leading track; earlier frames,
//! and sound that is presented before it, are left out.
//!
//! Times are those of the stream's transport stream segments ([`millpond_package::live`]), so that players can change between
//! both.
//!
//! Teletext and DVB subtitles are passed on as they are, with the descriptors of their source.

use crate::{Format, Frame};
use millpond_media::{Track, units::Timescale};
use millpond_package::{
    MediaKind,
    ts::{Continuation, Sample, clock_of},
};
use std::time::Duration;

/// Time of sound after which it is written without a picture, on the 90 kHz clock.
const SOUND: i64 = 7_200;

/// Makes a transport stream of frames, which must come in decoding order within each track.
#[derive(Debug)]
pub struct TransportStream {
    /// In the order of the streams.
    lanes: Vec<Lane>,
    lead: u16,
    writer: Continuation,
    /// Whether the first key frame was taken.
    is_open: bool,
}

/// A track.
#[derive(Debug)]
struct Lane {
    /// Index in the formats of the feed.
    track: u16,
    /// Its track as the writer describes it.
    described: Track,
    is_video: bool,
    /// Whether it has subtitles as they are.
    is_text: bool,
    timescale: Timescale,
    /// The next decode time is no less.
    next_dts: i64,
    /// Frames that are presented earlier are left out.
    from: i64,
}

/// Most bytes of a frame of subtitles: those of a PES packet.
const MOST_TEXT: usize = 65_000;

/// Whether a transport stream can carry the pictures or the sound of a track.
#[must_use]
pub fn fits(format: &Format) -> bool {
    !format.is_encrypted && format.kind != MediaKind::Text && format.track.codec.fits_ts()
}

impl TransportStream {
    /// Makes one for tracks of a feed, by their indexes. It begins with a key frame of `lead`. Tracks that [do not fit](fits) are
    /// left out, and subtitles beyond those that the programme map lists. `None` if the leading track does not fit.
    #[must_use]
    pub fn new<'a>(formats: impl IntoIterator<Item = (u16, &'a Format)>, lead: u16) -> Option<Self> {
        let is_carried = |format: &Format| fits(format) || format.is_private_text();
        let mut formats: Vec<_> = formats.into_iter().filter(|(_, format)| is_carried(format)).collect();
        formats.sort_by_key(|(track, format)| (format.is_private_text(), *track != lead));
        formats.first().filter(|(track, format)| *track == lead && !format.is_private_text())?;
        let mut listed: Vec<&Track> = Vec::with_capacity(formats.len());
        formats.retain(|(_, format)| {
            listed.push(&format.track);
            let is_listed = !format.is_private_text() || Continuation::lists(&listed);
            if !is_listed {
                listed.pop();
            }
            is_listed
        });
        let lanes: Vec<_> = formats.iter().map(|(track, format)| Lane::new(*track, format)).collect();
        let writer = Continuation::new(lanes.iter().map(|lane| lane.described.clone()).collect());
        Some(Self { lanes, lead, writer, is_open: false })
    }

    /// Begins an epoch with `formats`. Returns `false` where its tracks can't follow in the same stream: one has another codec,
    /// or is missing.
    pub fn enter(&mut self, formats: &[Option<Format>]) -> bool {
        let of_lane = |lane: &Lane| {
            let format = formats.get(usize::from(lane.track)).and_then(Option::as_ref);
            let track = format.filter(|format| fits(format) || lane.is_text && format.is_private_text());
            // Subtitles may be missing.
            let known = lane.is_text.then_some(&lane.described);
            track.map(|format| &format.track).or(known).cloned()
        };
        let Some(tracks) = self.lanes.iter().map(of_lane).collect::<Option<Vec<Track>>>() else { return false };
        let described = tracks.clone();
        if !self.is_open {
            self.writer = Continuation::new(tracks);
        } else if !self.writer.discontinue(tracks) {
            return false;
        }
        for (lane, track) in self.lanes.iter_mut().zip(described) {
            lane.timescale = track.timescale;
            lane.described = track;
        }
        true
    }

    /// Takes a frame, and appends the packets that are complete to `out`. A picture or frame that its codec does not allow is
    /// left out, with the sound beside it.
    pub fn push(&mut self, frame: &Frame, out: &mut Vec<u8>) {
        let Some(place) = self.lanes.iter().position(|lane| lane.track == frame.track) else { return };
        let is_lead = frame.track == self.lead;
        if !self.is_open {
            if !is_lead || !frame.is_sync {
                return;
            }
            self.begin(place, frame);
        }
        let Some(lane) = self.lanes.get_mut(place) else { return };
        let Some(sample) = lane.take(frame) else { return };
        let is_picture = lane.is_video;
        self.writer.push(place, sample);
        if is_picture || self.writer.waiting() >= SOUND {
            self.finish(out);
        }
    }

    /// Appends the packets of all frames that were taken.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        // The writer leaves out what it can't write.
        let _ = self.writer.write(out);
    }

    /// Begins with a key frame of the leading track.
    fn begin(&mut self, place: usize, key: &Frame) {
        self.is_open = true;
        let Some(from) = self.lanes.get(place).map(|lane| clock_of(key.pts, lane.timescale)) else { return };
        self.lanes.iter_mut().for_each(|lane| lane.from = from);
    }
}

impl Lane {
    fn new(track: u16, format: &Format) -> Self {
        let (is_video, is_text, timescale) = (format.is_video(), format.is_private_text(), format.track.timescale);
        Self { track, described: format.track.clone(), is_video, is_text, timescale, next_dts: i64::MIN, from: 0 }
    }

    /// Time at which a frame is due.
    fn due(&self, frame: &Frame) -> i64 {
        clock_of(clock(frame.due), Timescale::MPEG)
    }

    /// Returns a frame as a sample; `None` where it is presented too early.
    fn take(&mut self, frame: &Frame) -> Option<Sample> {
        let pts = clock_of(frame.pts, self.timescale);
        if pts < self.from || self.is_text && frame.data.len() > MOST_TEXT {
            return None;
        }
        // Only pictures are reordered. Subtitles are sent with the frames beside them.
        let dts = if self.is_video || self.is_text { self.due(frame) } else { pts };
        let dts = dts.max(self.next_dts).min(pts);
        self.next_dts = dts.saturating_add(1);
        Some(Sample { dts, pts, is_sync: frame.is_sync, data: frame.data.clone() })
    }
}

/// Converts a time to the nearest tick of 90 kHz.
fn clock(time: Duration) -> i64 {
    i64::try_from((time.as_nanos() * 9 + 50_000) / 100_000).unwrap_or(i64::MAX)
}

#[cfg(test)]
pub(crate) mod tests;
