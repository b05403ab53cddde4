//! Makes the frames of a stream from the packets that its sessions receive.

mod attending;
mod passing;

use crate::{
    Format, Frame, Run,
    clock::{DecodeTimes, Stamp, Timeline, TrackClock, Wrapped},
    epoch::{Epoch, EpochReason},
    frame::ticks,
    reception::source::AfterLoss,
    report::Reporter,
    source_health::SourceCounts,
};
use attending::Attending;
use bytes::Bytes;
use millpond_media::{Codec, Importance, NalSyntax, PictureSequence, Timescale, ts::SpliceSection};
use millpond_package::live::Cue;
use millpond_rtp::{payload::Unit, rtcp::SenderReport};
use std::{collections::BTreeSet, sync::Arc, time::Duration};

/// Media of tracks of subtitles. Their frames are few and come late: they begin no epoch, and no track waits for them.
pub(super) const TEXT: &str = "text";
/// Greatest distance of subtitles from the last frame of the other tracks. Others have wrong times.
const ASTRAY: Duration = Duration::from_secs(20);
/// Most cues that wait for a frame.
const MOST_CUES: usize = 16;
/// Most different things that are told once.
const MOST_NAMED: usize = 32;
/// Time between two reports of a session's counts.
pub(super) const COUNT: Duration = Duration::from_secs(1);

/// Gives units their track, number, time and epoch. It lasts over all sessions with the source, so that tracks keep their
/// index and timescale, numbers have no holes, and times never go back.
#[derive(Debug)]
pub(super) struct Assembly {
    reporter: Reporter,
    after_loss: AfterLoss,
    /// Time since the Unix epoch at which arrivals count from.
    began: Duration,
    timeline: Timeline,
    lines: Vec<Line>,
    /// Whether the timestamps of all tracks count on one clock.
    shares_clock: bool,
    /// Whether times are those of another stream, which need no correction.
    is_steady: bool,
    /// Formats of the running epoch.
    formats: Arc<[Option<Format>]>,
    attending: Attending,
    run: Vec<Frame>,
    frames: u64,
    /// Due time of the last frame, subtitles aside.
    due: Duration,
    /// Cues that wait for the first frame of their session.
    cues: Vec<(SpliceSection, Bytes)>,
    /// Counts of the sessions that have ended.
    ended: SourceCounts,
    /// What was told once.
    named: BTreeSet<String>,
}

/// A frame as it arrives.
#[derive(Debug)]
pub(super) struct Arrived {
    /// Presentation time on the clock of its source.
    pub(super) timestamp: Wrapped,
    /// Time by which decoding precedes presentation, in 90 kHz; `None` where the source does not state it.
    pub(super) reordered: Option<u32>,
    pub(super) is_key: bool,
    /// Where the packets told it; `None` where the frame does.
    pub(super) importance: Option<Importance>,
    /// Whether frames of the track before this one were lost.
    pub(super) lost_before: bool,
    pub(super) bytes: Bytes,
}

/// A track of the stream.
#[derive(Debug)]
struct Line {
    /// `video`, `audio` or [`TEXT`].
    media: String,
    timescale: Timescale,
    /// Number of the next frame.
    number: u32,
    decode_times: DecodeTimes,
    /// Decode time of the last frame whose source states it, in ticks.
    decoded: Option<i64>,
    /// Whether frames are dropped until the next key frame.
    awaits_key: bool,
    /// Presentation time of the key frame after frames were dropped: those presented before it refer to dropped ones.
    from: i64,
}

impl Assembly {
    /// Creates the assembly of a stream. `began` is the Unix time from which arrivals count.
    pub(super) fn new(reporter: Reporter, after_loss: AfterLoss, began: Duration) -> Self {
        Self {
            reporter,
            after_loss,
            began,
            timeline: Timeline::new(began, &[], 0),
            lines: Vec::new(),
            shares_clock: false,
            is_steady: false,
            formats: Arc::default(),
            attending: Attending::default(),
            run: Vec::new(),
            frames: 0,
            due: Duration::ZERO,
            cues: Vec::new(),
            ended: SourceCounts::default(),
            named: BTreeSet::new(),
        }
    }

    /// Creates the assembly of an MPEG transport stream: all tracks have timestamps of one 90 kHz clock.
    pub(super) fn of_transport(reporter: Reporter, began: Duration) -> Self {
        Self { shares_clock: true, ..Self::new(reporter, AfterLoss::Pass, began) }
    }

    /// Tells whether the timestamps of the next session count on one clock. They do in MPEG transport streams and fragmented
    /// MP4; by RTP each track has a clock of its own.
    pub(super) fn share_clock(&mut self, is_shared: bool) {
        self.shares_clock = is_shared;
    }

    /// Begins a session. Returns the track of each of its streams, as [`tracks_of`](Self::tracks_of) does. The first session
    /// makes the tracks. Timestamps of a shared clock count 90 kHz.
    pub(super) fn adopt(&mut self, streams: &[(&str, Timescale)]) -> Vec<Option<u16>> {
        let clock = |(_, rate): &(&str, Timescale)| if self.shares_clock { Timescale::MPEG } else { *rate };
        self.adopt_counted(streams, &streams.iter().map(clock).collect::<Vec<_>>())
    }

    /// The same for timestamps that count the ticks of `clocks`.
    pub(super) fn adopt_counted(&mut self, streams: &[(&str, Timescale)], clocks: &[Timescale]) -> Vec<Option<u16>> {
        if self.frames == 0 {
            self.set_lines(streams);
        }
        self.forget_tracks();
        self.timeline.restart(EpochReason::Reconnection);
        self.timeline.share_clock(self.shares_clock);
        self.timeline.set_steady(self.is_steady);
        let tracks = self.tracks_of(streams);
        for place in 0..self.lines.len() {
            let stream = tracks.iter().position(|track| track.is_some_and(|track| usize::from(track) == place));
            let other = if self.shares_clock { Timescale::MPEG } else { self.lines[place].timescale };
            let clock = stream.and_then(|stream| clocks.get(stream)).copied().unwrap_or(other);
            self.timeline.set_source(place, clock);
        }
        tracks
    }

    /// Returns the track of each stream, given their media and clock rates. `None` where there is a stream more than in the
    /// first session, or with another rate. Tracks of a shared clock keep the rate that they had first.
    pub(super) fn tracks_of(&self, streams: &[(&str, Timescale)]) -> Vec<Option<u16>> {
        let mut is_taken = vec![false; self.lines.len()];
        let mut track = |(media, timescale): &(&str, Timescale)| {
            let fits = |(line, taken): (&Line, &bool)| {
                !taken && line.media == *media && (self.shares_clock || line.timescale == *timescale)
            };
            let place = self.lines.iter().zip(&is_taken).position(fits)?;
            is_taken[place] = true;
            u16::try_from(place).ok()
        };
        streams.iter().map(&mut track).collect()
    }

    fn set_lines(&mut self, streams: &[(&str, Timescale)]) {
        let clocks: Vec<TrackClock> = streams.iter().map(|(_, timescale)| (*timescale).into()).collect();
        let lead = streams.iter().position(|(media, _)| *media == "video").unwrap_or(0);
        self.timeline = Timeline::new(self.began, &clocks, lead);
        self.lines = streams.iter().map(Line::new).collect();
    }

    /// Sets other formats: the next frame begins an epoch.
    fn alter(&mut self, formats: Arc<[Option<Format>]>) {
        // A track that was added and sends nothing yet changes nothing.
        let has_changed = (0..formats.len().max(self.formats.len())).any(|track| {
            formats.get(track).and_then(Option::as_ref) != self.formats.get(track).and_then(Option::as_ref)
        });
        if has_changed {
            self.timeline.split(EpochReason::Formats);
            self.formats = formats;
        }
    }

    /// Takes the timestamp of a track at the start of playing (`RTP-Info`).
    pub(super) fn start(&mut self, track: u16, timestamp: u32) {
        self.timeline.start(track.into(), Wrapped::rtp(timestamp));
    }

    /// Takes a sender report, which relates the clocks of tracks to each other.
    pub(super) fn sender_report(&mut self, track: u16, report: &SenderReport) {
        self.timeline.report(track.into(), report.ntp, Wrapped::rtp(report.timestamp));
    }

    /// Waits for a key frame of a track with pictures: its source is another one.
    pub(super) fn await_key(&mut self, track: u16) {
        if let Some(line) = self.lines.get_mut(usize::from(track)).filter(|line| line.media == "video") {
            line.awaits_key = true;
        }
    }

    /// Logs the parts of a stream that are left out, once in a run.
    pub(super) fn name(&mut self, words: String) {
        if self.named.len() < MOST_NAMED && self.named.insert(words.clone()) {
            tracing::warn!("{words}");
        }
    }

    /// Takes the Unix time of now: clocks of machines are set, and drift.
    pub(super) fn set_clock(&mut self, unix: Duration, now: Duration) {
        self.timeline.set_clock(unix, now);
    }

    /// Tells the counts of the session that runs, and of those before.
    pub(super) fn count(&self, session: SourceCounts) {
        let mut sum = self.ended;
        sum += session;
        self.reporter.count(sum);
    }

    /// Adds the counts of a session that ends.
    pub(super) fn end(&mut self, session: SourceCounts) {
        self.ended += session;
        self.reporter.count(self.ended);
    }

    /// Number of a track among those of its media, from 1.
    pub(super) fn number(&self, track: u16) -> u16 {
        let place = usize::from(track);
        let media = self.lines.get(place).map_or("", |line| line.media.as_str());
        self.lines.iter().take(place + 1).filter(|line| line.media == media).count() as u16
    }

    /// Ticks per second of a track's presentation times.
    pub(super) fn timescale(&self, track: u16) -> Option<Timescale> {
        self.lines.get(usize::from(track)).map(|line| line.timescale)
    }

    /// Number of tracks.
    pub(super) fn tracks(&self) -> usize {
        self.lines.len()
    }

    /// Number of frames of all sessions.
    pub(super) fn frames(&self) -> u64 {
        self.frames
    }

    /// Adds the frame of a unit that arrived just now to the run, as [`frame`](Self::frame) does.
    pub(super) fn unit(&mut self, track: u16, unit: Unit, arrival: Duration) {
        let arrived = Arrived {
            timestamp: Wrapped::rtp(unit.timestamp),
            reordered: None,
            is_key: unit.is_key,
            importance: unit.importance,
            lost_before: unit.lost_before,
            bytes: unit.bytes,
        };
        self.frame(track, arrived, arrival);
    }

    /// Adds a frame of a track that the epoch has to the run.
    fn pass(&mut self, track: u16, arrived: Arrived, arrival: Duration) {
        let place = usize::from(track);
        let Some(format) = self.formats.get(place).and_then(Option::as_ref) else { return };
        let is_video = format.is_video();
        let importance = arrived.importance.unwrap_or_else(|| format.importance(&arrived.bytes));
        let line = &mut self.lines[place];
        line.awaits_key |= arrived.lost_before && is_video && self.after_loss == AfterLoss::Wait;
        if line.awaits_key && !arrived.is_key {
            return;
        }
        let Some(stamp) = self.timeline.stamp(place, arrived.timestamp, arrival, arrived.is_key) else { return };
        self.tell(&stamp);
        let line = &mut self.lines[place];
        if std::mem::take(&mut line.awaits_key) {
            line.from = stamp.pts;
        } else if stamp.pts < line.from {
            return;
        }
        let number = line.number;
        line.number = number.wrapping_add(1);
        let due = match arrived.reordered {
            None => line.decode_times.push(stamp.pts),
            Some(by) => line.decode_before(stamp.pts, by),
        };
        let due = time(due, line.timescale);
        self.frames += 1;
        self.due = due;
        self.run.push(Frame {
            track,
            number,
            due,
            pts: stamp.pts,
            epoch: stamp.epoch,
            is_sync: arrived.is_key,
            importance,
            data: arrived.bytes,
        });
    }

    /// Adds subtitles to the run. They are due with the frames that came last. Ones before the first frame of a session are dropped.
    fn pass_text(&mut self, track: u16, arrived: Arrived) {
        let place = usize::from(track);
        let Some(format) = self.formats.get(place).and_then(Option::as_ref) else { return };
        let at = self.timeline.locate(Some(arrived.timestamp));
        let Some(at) = at.filter(|at| at.abs_diff(self.due) <= ASTRAY) else { return };
        let Some(line) = self.lines.get_mut(place) else { return };
        let number = line.number;
        line.number = number.wrapping_add(1);
        self.run.push(Frame {
            track,
            number,
            due: self.due,
            pts: ticks(at, format.track.timescale.get()),
            epoch: self.timeline.epoch(),
            is_sync: true,
            importance: format.importance(&arrived.bytes),
            data: arrived.bytes,
        });
    }

    /// Reports the epoch that begins with a frame, if any.
    fn tell(&mut self, stamp: &Stamp) {
        let Stamp { epoch, at, wall, arrival, begins, .. } = *stamp;
        let Some(reason) = begins else { return };
        if reason != EpochReason::Formats {
            // The frames of other tracks are in another sequence too.
            for line in &mut self.lines {
                line.decode_times.restart();
            }
        }
        let formats = self.formats.clone();
        self.reporter.begin(Epoch { number: epoch, from: at, wall, arrival, formats, reason });
    }

    /// Takes a cue, whose time is on the clock of the frames. It is told with the next run.
    pub(super) fn cue(&mut self, splice: SpliceSection, section: Bytes) {
        if self.cues.len() < MOST_CUES {
            self.cues.push((splice, section));
        }
    }

    /// Tells the cues whose time is known.
    fn tell_cues(&mut self) {
        let Self { cues, timeline, reporter, .. } = self;
        cues.retain(|(splice, section)| {
            let at = timeline.locate(splice.time.map(Wrapped::mpeg));
            if let Some(at) = at {
                reporter.cue(Cue { at, splice: Arc::new(splice.clone()), section: section.clone() });
            }
            at.is_none()
        });
    }

    /// Removes and returns the frames of the units since the last call, in the order of their due times. Tells cues too.
    pub(super) fn take_run(&mut self) -> Option<Run> {
        self.tell_cues();
        if self.run.is_empty() {
            return None;
        }
        self.run.sort_by_key(|frame| frame.due);
        Some(self.run.drain(..).collect())
    }
}

impl Line {
    fn new((media, timescale): &(&str, Timescale)) -> Self {
        Self {
            media: (*media).to_owned(),
            timescale: *timescale,
            number: 0,
            decode_times: DecodeTimes::new(0, 1),
            decoded: None,
            awaits_key: false,
            from: i64::MIN,
        }
    }

    /// Decode time of a frame that is decoded `reordered` ticks of 90 kHz before its presentation. Decode times rise.
    fn decode_before(&mut self, pts: i64, reordered: u32) -> i64 {
        let by = i64::from(reordered) * i64::from(self.timescale.get()) / i64::from(Timescale::MPEG.get());
        let decoded = pts.saturating_sub(by);
        let decoded = self.decoded.map_or(decoded, |last| decoded.max(last.saturating_add(1)));
        self.decoded = Some(decoded);
        decoded
    }
}

/// Returns the decode times of a track, by the reorder depth and frame rate that its parameter sets state.
fn decode_times(format: &Format) -> DecodeTimes {
    let (syntax, sps) = match &format.track.codec {
        Codec::Avc(config) => (NalSyntax::Avc, config.sps.first()),
        Codec::Hevc(config) => (NalSyntax::Hevc, config.sps.first()),
        _ => return DecodeTimes::new(0, 1),
    };
    let sequence = sps.and_then(|sps| PictureSequence::read(syntax, sps).ok());
    let depth = sequence.as_ref().and_then(|sequence| sequence.reorder_depth).unwrap_or(0);
    let rate = sequence.and_then(|sequence| sequence.frame_rate).filter(|(frames, _)| *frames > 0).unwrap_or((25, 1));
    let interval = i64::from(format.timescale()) * i64::from(rate.1) / i64::from(rate.0);
    DecodeTimes::new(depth, interval)
}

/// Converts ticks to a time; negative ones to zero.
fn time(ticks: i64, timescale: Timescale) -> Duration {
    let (ticks, rate) = (u64::try_from(ticks).unwrap_or(0), u64::from(timescale.get()));
    let nanoseconds = u128::from(ticks % rate) * 1_000_000_000 / u128::from(rate);
    Duration::from_secs(ticks / rate) + Duration::from_nanos(nanoseconds as u64)
}
