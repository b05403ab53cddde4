//! Tracks that are announced, and tracks that send frames.
//!
//! A session states the formats of its tracks. An epoch has only formats whose tracks send frames. The first frames wait for a
//! while until each track has sent one. Tracks leave and join with key frames of the leading pictures. Tracks of subtitles are there
//! whether they send or not.

use super::{Arrived, Assembly, Line, TEXT, decode_times};
use crate::{Format, clock::TrackClock, epoch::Epoch, reception::attendance::Attendance};
use millpond_media::Timescale;
use std::{sync::Arc, time::Duration};

/// Most bytes of frames that wait for the first ones of other tracks.
const MOST_BYTES: usize = 16 << 20;
/// Bytes that a frame counts for beside its own.
const FRAME: usize = 128;
/// Most tracks of a stream with pictures or sound, and most with subtitles.
const MOST_TRACKS: usize = 8;
const MOST_TEXTS: usize = 16;

/// The tracks of a session, as they are announced and as they give frames.
#[derive(Debug, Default)]
pub(super) struct Attending {
    /// Formats that the session states.
    declared: Arc<[Option<Format>]>,
    attendance: Attendance,
    /// Whether frames are passed on.
    is_settled: bool,
    /// Frames that wait: track, frame and arrival.
    held: Vec<(u16, Arrived, Duration)>,
    held_bytes: usize,
}

impl Attending {
    /// Whether a frame of a track can be used: its format is stated.
    fn is_declared(&self, track: u16) -> bool {
        self.declared.get(usize::from(track)).is_some_and(Option::is_some)
    }

    /// Whether a track has subtitles.
    fn is_text(&self, track: u16) -> bool {
        self.declared.get(usize::from(track)).and_then(Option::as_ref).is_some_and(Format::is_private_text)
    }

    /// The declared tracks with pictures or sound, and whether they have pictures.
    fn tracks(&self) -> impl Iterator<Item = (usize, bool)> {
        let all = self.declared.iter().enumerate().filter_map(|(track, format)| Some((track, format.as_ref()?)));
        all.filter(|(_, format)| !format.is_private_text()).map(|(track, format)| (track, format.is_video()))
    }

    /// Whether the first frame of each track has come, or was waited for long enough.
    fn is_due(&self, now: Duration) -> bool {
        let mut waits = self.tracks().filter_map(|(track, is_video)| self.attendance.until(track, is_video));
        self.attendance.has_begun() && (self.held_bytes > MOST_BYTES || waits.all(|until| now >= until))
    }

    /// The formats of tracks that give frames, and of subtitles.
    fn present(&self) -> Arc<[Option<Format>]> {
        let goes_on = |track: usize, format: &Format| {
            format.is_private_text() || self.attendance.goes_on(track, format.is_video())
        };
        let all = self.declared.iter().enumerate();
        all.map(|(track, format)| format.clone().filter(|format| goes_on(track, format))).collect()
    }
}

impl Assembly {
    /// Sets the formats of a session, by track.
    pub(in crate::reception) fn begin(&mut self, formats: Arc<[Option<Format>]>) {
        self.attending = Attending { declared: formats, ..Attending::default() };
    }

    /// Changes formats within a session: its next frame begins an epoch, unless that is a track's which gives no frames.
    pub(in crate::reception) fn change(&mut self, formats: Arc<[Option<Format>]>) {
        self.attending.declared = formats;
        if self.attending.is_settled {
            let known = |track: usize| self.formats.get(track).is_some_and(Option::is_some);
            let declared = self.attending.declared.iter().enumerate();
            let is_used = |track: usize, format: &Format| format.is_private_text() || known(track);
            let formats: Arc<[_]> =
                declared.map(|(track, format)| format.clone().filter(|format| is_used(track, format))).collect();
            self.alter(formats);
        }
    }

    /// The formats that the session states, by track.
    pub(in crate::reception) fn declared(&self) -> &Arc<[Option<Format>]> {
        &self.attending.declared
    }

    /// Adds a frame that arrived at `arrival` to the run, once the beginning of the session has waited for its other tracks. One
    /// that decoders can't use, or that is older than its epoch, is dropped.
    pub(in crate::reception) fn frame(&mut self, track: u16, arrived: Arrived, arrival: Duration) {
        if !self.attending.is_declared(track) {
            return;
        }
        if self.attending.is_text(track) {
            return if self.attending.is_settled {
                self.pass_text(track, arrived)
            };
        }
        self.attending.attendance.hear(track.into(), arrival);
        if self.attending.is_settled {
            self.follow(track, arrived.is_key);
            return self.pass(track, arrived, arrival);
        }
        self.attending.held_bytes += arrived.bytes.len() + FRAME;
        self.attending.held.push((track, arrived, arrival));
        self.tick(arrival);
    }

    /// Passes on the first frames, once they have waited long enough.
    pub(in crate::reception) fn tick(&mut self, now: Duration) {
        if !self.attending.is_settled && self.attending.is_due(now) {
            self.settle();
        }
    }

    /// Time at which [`tick`](Self::tick) must be called, if any.
    pub(in crate::reception) fn wake(&self) -> Option<Duration> {
        let Attending { is_settled, attendance, .. } = &self.attending;
        let waits = self.attending.tracks().filter_map(|(track, is_video)| attendance.until(track, is_video));
        waits.max().filter(|_| !is_settled)
    }

    /// Passes on the frames that wait for others: the session ends.
    pub(in crate::reception) fn flush(&mut self) {
        if !self.attending.held.is_empty() {
            self.settle();
        }
    }

    /// Forgets the tracks of the last session.
    pub(super) fn forget_tracks(&mut self) {
        self.attending = Attending::default();
    }

    /// Begins with the tracks that have given frames.
    fn settle(&mut self) {
        self.attending.is_settled = true;
        self.formats = self.attending.present();
        self.name_silent();
        for (line, format) in self.lines.iter_mut().zip(self.attending.declared.iter()) {
            // Pictures of a new session refer to earlier ones that nobody has.
            line.awaits_key = format.as_ref().is_some_and(Format::is_video);
            line.decode_times.restart();
            if let (0, Some(format)) = (line.number, format) {
                line.decode_times = decode_times(format);
            }
        }
        self.attending.held_bytes = 0;
        for (track, arrived, arrival) in std::mem::take(&mut self.attending.held) {
            self.pass(track, arrived, arrival);
        }
    }

    /// Lets silent tracks leave and other tracks join, at a frame that can be decoded without the frames before it.
    fn follow(&mut self, track: u16, is_key: bool) {
        let (attending, formats) = (&self.attending, &self.formats);
        let is_known = |track: usize| formats.get(track).is_some_and(Option::is_some);
        let goes_on = |track: usize, is_video: bool| attending.attendance.goes_on(track, is_video);
        if attending.tracks().all(|(track, is_video)| is_known(track) == goes_on(track, is_video)) {
            return;
        }
        let present = attending.present();
        let has_pictures = present.iter().flatten().any(Format::is_video);
        if has_pictures && (Epoch::lead_of(&present) != Some(track) || !is_key) {
            return;
        }
        for (place, line) in self.lines.iter_mut().enumerate() {
            let format = present.get(place).and_then(Option::as_ref);
            if let Some(format) = format.filter(|_| self.formats.get(place).is_none_or(Option::is_none)) {
                line.awaits_key = format.is_video();
                line.decode_times.restart();
                if line.number == 0 {
                    line.decode_times = decode_times(format);
                }
                tracing::info!(track = %format.name, "a track of a source that was left out sends: it is served again");
            }
        }
        self.alter(present);
        self.name_silent();
    }

    /// Tells the tracks that are announced and left out.
    fn name_silent(&self) {
        let silent = |(track, format): (usize, &Option<Format>)| {
            format.clone().filter(|_| self.formats.get(track).is_none_or(Option::is_none))
        };
        for format in self.attending.declared.iter().enumerate().filter_map(silent) {
            tracing::info!(track = %format.name, codec = format.track.codec.name(),
                "a track of a source is announced, but sends nothing: it is left out until it sends");
        }
    }

    /// Returns a track for a stream that joins a session whose other streams have the tracks `taken`. This is a free track of the
    /// same media, or a new track if the clock rate is known. `clock` has the ticks of its timestamps. `None` where there is none
    /// for it.
    pub(in crate::reception) fn join(
        &mut self,
        stream: (&str, Timescale),
        clock: Timescale,
        (taken, is_known): (&[u16], bool),
    ) -> Option<u16> {
        let fits = |line: &Line| line.media == stream.0 && (self.shares_clock || line.timescale == stream.1);
        let lines = (0..).zip(&self.lines);
        let free = lines.filter(|(track, line)| !taken.contains(track) && fits(line)).map(|(track, _)| track).next();
        if let Some(track) = free {
            self.timeline.set_source(track.into(), clock);
            return Some(track);
        }
        let most = if stream.0 == TEXT { MOST_TEXTS } else { MOST_TRACKS };
        let is_alike = |line: &&Line| (line.media == TEXT) == (stream.0 == TEXT);
        if !is_known || self.lines.iter().filter(is_alike).count() >= most {
            return None;
        }
        self.lines.push(Line::new(&stream));
        let leads = stream.0 == "video" && self.lines.iter().filter(|line| line.media == "video").count() == 1;
        self.timeline.add(TrackClock { source: clock, track: stream.1 }, leads);
        u16::try_from(self.lines.len() - 1).ok()
    }
}
