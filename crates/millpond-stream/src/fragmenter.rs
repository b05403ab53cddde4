//! Fragmented MP4 made of frames as they pass (ISO/IEC 14496-12 8.8).
//!
//! A [`Fragmenter`] takes the frames of a running stream and gives [`Fragment`]s. It does no I/O and reads no clock. It needs
//! the [`Format`]s of the tracks and no presentation, so stored and live streams are the same to it.
//!
//! Time 0 of its output is the presentation time of the first key frame of the leading track. Frames that are presented earlier
//! are left out. Presentation times are kept exactly. Decode times are moved earlier by the reordering of the first fragment, so
//! that no frame is decoded after it is presented. An edit list subtracts this shift again, as in [`millpond_package::fmp4`].
//!
//! A frame waits for the next frame of its track, which determines its duration. Where the [`Tempo`] of the stream is known, the
//! first fragment need not wait ([`Fragmenter::start`]): its last picture lasts for the usual interval. The next picture is
//! decoded at the end of this interval, and presented at its own time. So decode times have neither a gap nor an overlap. Where
//! only the reordering is known, the first fragment ends with the last picture but one.

use crate::{Format, Frame, Tempo, frame::ticks};
use bytes::Bytes;
use millpond_media::codec::Codec;
use millpond_package::{
    fmp4::{FragmentSample, TrackHeader, TrackRun, fragment_head, live_init},
    live::FlacUnits,
};
use std::time::Duration;

/// When a fragment ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragmentLimits {
    /// Least duration. The next key frame of the leading track begins another fragment.
    pub least: Duration,
    /// Longest duration. A fragment that becomes longer ends without a key frame.
    pub most: Duration,
    /// Most bytes of frames. A fragment that becomes larger ends without a key frame.
    pub bytes: usize,
}

/// A fragment: the media of all tracks for some time.
#[derive(Clone, Debug)]
pub struct Fragment {
    /// The init segment, before the first fragment.
    pub init: Option<Bytes>,
    /// `moof` and the header of `mdat`.
    pub head: Bytes,
    /// Content of `mdat`.
    pub frames: Vec<Bytes>,
    /// Whether decoding can begin with it.
    pub is_independent: bool,
}

/// Ticks a second in which times of several tracks are compared.
const EARLY: u32 = 1_000_000_000;

/// Makes fragments of frames, which must come in the order of their due times.
#[derive(Debug)]
pub struct Fragmenter {
    /// The leading track is the first.
    lanes: Vec<Lane>,
    limits: FragmentLimits,
    state: State,
    sequence: u32,
    /// Bytes of the frames that wait.
    bytes: usize,
    /// Due time of the first frame of the fragment.
    began: Duration,
    /// Frames that were left out because others were lost.
    skipped: u64,
    has_init: bool,
    /// Whether holes in the numbers of frames need no key frame.
    has_clean_holes: bool,
    /// Whether the output continues an earlier one: all frames after the first key frame are kept.
    continues: bool,
    /// What is known of the stream's frames.
    tempo: Option<Tempo>,
}

/// Which frames end with a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// All frames but the last of each track, whose duration is not known yet.
    Known,
    /// The frames of [`Self::Known`], and the last frame of the leading track, whose duration is assumed.
    Lead,
    /// All.
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the first key frame.
    Empty,
    /// Frames are taken.
    Open,
    /// Frames were lost: the next key frame is waited for.
    Broken,
}

/// A track, and the frames that wait for the end of their fragment.
#[derive(Debug)]
struct Lane {
    /// Index in the formats of the feed.
    track: u16,
    /// As the frames are delivered.
    format: Format,
    /// Makes what is delivered, where that is another codec.
    flac: Option<FlacUnits>,
    id: u32,
    /// Presentation time of the output's time 0, in ticks.
    origin: i64,
    /// Frames that are presented earlier are left out.
    from: i64,
    /// Ticks by which decode times are moved earlier.
    reorder: i64,
    /// Media time of the output's time 0.
    early: i64,
    waiting: Vec<Waiting>,
    /// The next decode time is no less.
    next_dts: i64,
    /// Decode time at which the last sample ends, where its duration was assumed.
    assumed: Option<i64>,
    /// Duration of the last sample.
    duration: u32,
    /// Number of the frame that follows the last one.
    next_number: Option<u32>,
}

/// A frame with its times in ticks from the output's time 0.
#[derive(Debug)]
struct Waiting {
    dts: i64,
    pts: i64,
    is_sync: bool,
    data: Bytes,
}

/// Whether fragmented MP4 can carry the frames of a track: it must be clear, and its frames must be as its sample entry says.
/// Frames of PCM are not, because they are as they are in packets; they become [FLAC](FlacUnits).
#[must_use]
pub fn fits(format: &Format) -> bool {
    let is_deliverable = match format.track.codec {
        Codec::Pcm(_) => FlacUnits::of(&format.track).is_some(),
        _ => format.track.codec.fits_fmp4(),
    };
    !format.is_encrypted && is_deliverable
}

impl Fragmenter {
    /// Makes one for tracks of a feed, by their indexes. The key frames of `lead` begin fragments. Tracks that [do not fit](fits)
    /// are left out. `None` if the leading track does not fit.
    #[must_use]
    pub fn new<'a>(
        formats: impl IntoIterator<Item = (u16, &'a Format)>,
        lead: u16,
        limits: FragmentLimits,
    ) -> Option<Self> {
        let mut formats: Vec<_> = formats.into_iter().filter(|(_, format)| fits(format)).collect();
        formats.sort_by_key(|(track, _)| *track != lead);
        let lanes = (1..).zip(formats).map(|(id, (track, format))| Lane::new(id, track, format.clone()));
        let lanes: Vec<_> = lanes.collect();
        lanes.first().filter(|lane| lane.track == lead)?;
        let (state, began) = (State::Empty, Duration::ZERO);
        let (has_init, has_clean_holes, continues) = (false, false, false);
        let (sequence, bytes, skipped, tempo) = (0, 0, 0, None);
        Some(Self {
            lanes,
            limits,
            state,
            sequence,
            bytes,
            began,
            skipped,
            has_init,
            has_clean_holes,
            continues,
            tempo,
        })
    }

    /// The same for frames that can all be decoded, whatever frames between them are missing. Those of a live stream are: the
    /// fork leaves out only frames without which the others can be decoded.
    #[must_use]
    pub fn with_clean_holes(self) -> Self {
        Self { has_clean_holes: true, ..self }
    }

    /// Notes the tempo that earlier frames of the stream showed, or that its format states. Frames follow; they may contradict
    /// it.
    pub fn expect(&mut self, tempo: Tempo) {
        if let Some(lead) = self.lanes.first_mut().filter(|lead| lead.track == tempo.track && lead.format.is_video()) {
            lead.reorder = tempo.reorder;
        }
        self.tempo = Some(tempo);
    }

    /// Ends the first fragment, with all frames of the leading track so far. If the interval of frames is unknown, the last frame
    /// is left out. `None` after the first fragment, and if the tempo of the stream is not [known](Self::expect).
    pub fn start(&mut self) -> Option<Fragment> {
        let tempo = self.tempo.filter(|_| !self.has_init && self.state == State::Open)?;
        let (lead, others) = self.lanes.split_first_mut()?;
        let is_known = lead.track == tempo.track && !others.iter().any(|lane| lane.format.is_video());
        let extent = match (is_known, tempo.interval) {
            (false, _) => return None,
            (true, Some(interval)) => {
                lead.assume(interval);
                Extent::Lead
            }
            (true, None) if lead.waiting.len() > 1 => Extent::Known,
            (true, None) => return None,
        };
        self.cut(self.began, extent)
    }

    /// Takes a frame. Returns the fragment that ends before it, where one does. Frames of other tracks are ignored.
    ///
    /// A missing frame of a leading video track counts as a [gap](Self::gap), unless holes are
    /// [clean](Self::with_clean_holes).
    pub fn push(&mut self, frame: &Frame) -> Option<Fragment> {
        let index = self.lanes.iter().position(|lane| lane.track == frame.track)?;
        let is_lead = index == 0;
        let lane = self.lanes.get(index)?;
        let is_video = lane.format.is_video();
        let lost = is_lead
            && is_video
            && !self.has_clean_holes
            && lane.next_number.is_some_and(|number| number != frame.number);
        let broken = if lost { self.gap() } else { None };
        let is_key = is_lead && frame.is_sync;
        if is_lead {
            self.lanes[0].next_number = Some(frame.number.wrapping_add(1));
        }
        if self.state != State::Open {
            if !is_key {
                self.skipped += u64::from(self.state == State::Broken);
                return broken;
            }
            self.begin(frame);
        }
        let ends = self.ends_before(frame, is_key);
        if is_lead && self.lanes[0].waiting.is_empty() {
            self.began = frame.due;
        }
        self.lanes[index].take(frame);
        self.bytes += frame.data.len();
        // A fragment that is broken off leaves none that could end here.
        if ends { self.cut(frame.due, Extent::Known) } else { broken }
    }

    /// Notes that frames were lost. The fragment ends, and the next fragment begins with the next key frame. Returns the
    /// fragment.
    pub fn gap(&mut self) -> Option<Fragment> {
        let fragment = self.finish();
        if self.state == State::Open {
            self.state = State::Broken;
        }
        self.lanes.iter_mut().for_each(|lane| (lane.next_number, lane.assumed) = (None, None));
        fragment
    }

    /// Returns the last fragment, with all frames that wait.
    pub fn finish(&mut self) -> Option<Fragment> {
        self.cut(self.began, Extent::All)
    }

    /// Ends the output before a key frame of the leading track, which begins another output with an init segment of its own. Returns the
    /// last fragment. The key frame must be [pushed](Self::push) next.
    ///
    /// No frame is left out between the two. The last frame of the leading track lasts up to the key frame. Time 0 of the new output is the
    /// earliest presentation time in its first fragment: sound and pictures that are presented before the key frame are kept.
    pub fn turn(&mut self, key: &Frame) -> Option<Fragment> {
        if let Some(lead) = self.lanes.first_mut().filter(|_| self.state == State::Open) {
            let dts = match lead.format.is_video() {
                true => key.decoded(lead.format.timescale()),
                false => key.pts,
            };
            let end = dts.saturating_sub(lead.origin).max(lead.next_dts);
            // Behind a gap the last frame lasts for the usual interval.
            let is_near = end.saturating_sub(lead.next_dts) < i64::from(lead.format.timescale());
            lead.assumed = is_near.then_some(end);
        }
        let fragment = self.finish();
        self.lanes.iter_mut().for_each(Lane::restart);
        (self.state, self.sequence, self.has_init, self.continues) = (State::Empty, 0, false, true);
        fragment
    }

    /// Duration of the frames taken so far, gaps included.
    #[must_use]
    pub fn duration(&self) -> Duration {
        let Some(lead) = self.lanes.first() else { return Duration::ZERO };
        let ticks = u64::try_from(lead.next_dts).unwrap_or(0) as f64;
        Duration::try_from_secs_f64(ticks / f64::from(lead.format.timescale().max(1))).unwrap_or_default()
    }

    /// Number of frames that were left out because others were lost.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Begins with a key frame of the leading track.
    fn begin(&mut self, key: &Frame) {
        let timescale = self.lanes.first().map_or(1, |lead| lead.format.timescale());
        for lane in &mut self.lanes {
            let at = scaled(key.pts, timescale, lane.format.timescale());
            if self.state == State::Empty {
                lane.origin = at;
            }
            // The first frames of the new output may be presented before the key frame.
            let is_first = self.state == State::Empty && self.continues;
            lane.from = if is_first { i64::MIN } else { at.saturating_sub(lane.origin) };
        }
        self.state = State::Open;
        self.began = key.due;
    }

    /// Whether the fragment ends before a frame.
    fn ends_before(&self, frame: &Frame, is_key: bool) -> bool {
        let FragmentLimits { least, most, bytes } = self.limits;
        let age = frame.due.saturating_sub(self.began);
        let has_lead = self.lanes.first().is_some_and(|lead| !lead.waiting.is_empty());
        // Tracks without pictures have key frames only.
        has_lead && ((is_key && age >= least) || age >= most || self.bytes >= bytes)
    }

    /// Ends the fragment. The frames that are left over begin the next one.
    fn cut(&mut self, began: Duration, extent: Extent) -> Option<Fragment> {
        let init = (!self.has_init).then(|| {
            self.begin_with_the_earliest();
            self.lanes.iter_mut().for_each(|lane| lane.settle());
            self.init()
        });
        let lead = self.lanes.first()?;
        let has_lead = lead.waiting.len() > usize::from(extent == Extent::Known);
        let is_independent = has_lead && lead.waiting.first().is_some_and(|first| first.is_sync);
        let mut frames = Vec::new();
        let mut is_whole = extent != Extent::Known;
        let mut runs = Vec::with_capacity(self.lanes.len());
        for lane in &mut self.lanes {
            runs.extend(lane.run(&mut frames, is_whole));
            is_whole = extent == Extent::All;
        }
        if runs.is_empty() {
            return None;
        }
        self.has_init = true;
        self.began = began;
        self.bytes = self.lanes.iter().flat_map(|lane| &lane.waiting).map(|waiting| waiting.data.len()).sum();
        self.sequence = self.sequence.wrapping_add(1);
        Some(Fragment { init, head: fragment_head(self.sequence, &runs), frames, is_independent })
    }

    /// Makes the earliest presentation time of the frames that wait time 0, if it lies before that.
    fn begin_with_the_earliest(&mut self) {
        let early = |lane: &Lane| {
            let first = lane.waiting.iter().map(|waiting| waiting.pts).min()?;
            Some(scaled(first, lane.format.timescale(), EARLY))
        };
        let earliest = self.lanes.iter().filter_map(early).min().unwrap_or(0).min(0);
        self.lanes
            .iter_mut()
            .for_each(|lane| lane.shift(scaled(earliest.saturating_neg(), EARLY, lane.format.timescale())));
    }

    fn init(&self) -> Bytes {
        live_init(&self.lanes.iter().map(Lane::header).collect::<Vec<_>>())
    }
}

impl Lane {
    fn new(id: u32, track: u16, format: Format) -> Self {
        let (flac, format) = match FlacUnits::of(&format.track) {
            Some((flac, track)) => (Some(flac), Format { track, ..format }),
            None => (None, format),
        };
        // Until there are two samples: 25 pictures a second, or the frames of the codec.
        let duration = format.track.codec.samples_per_frame().unwrap_or(format.timescale() / 25).max(1);
        let (waiting, next_number) = (Vec::new(), None);
        let (origin, from, reorder, early, next_dts) = (0, 0, 0, 0, i64::MIN);
        let assumed = None;
        Self {
            track,
            format,
            flac,
            id,
            origin,
            from,
            reorder,
            early,
            waiting,
            next_dts,
            assumed,
            duration,
            next_number,
        }
    }

    fn header(&self) -> TrackHeader<'_> {
        let Format { kind, language, track, .. } = &self.format;
        let (language, label) = (language.as_deref(), track.name.as_deref().unwrap_or_default());
        TrackHeader { id: self.id, track, kind: *kind, language, label, timescale: track.timescale, early: self.early }
    }

    /// Forgets the times of an output that has ended. What is known of the track stays.
    fn restart(&mut self) {
        (self.origin, self.from, self.early, self.next_dts, self.assumed) = (0, 0, 0, i64::MIN, None);
    }

    /// Moves time 0 to an earlier time.
    fn shift(&mut self, by: i64) {
        if by <= 0 {
            return;
        }
        self.origin = self.origin.saturating_sub(by);
        self.next_dts = self.next_dts.saturating_add(by);
        self.assumed = self.assumed.map(|end| end.saturating_add(by));
        for Waiting { dts, pts, .. } in &mut self.waiting {
            (*dts, *pts) = (dts.saturating_add(by), pts.saturating_add(by));
        }
    }

    /// Takes a frame, unless it is presented too early.
    fn take(&mut self, frame: &Frame) {
        let pts = frame.pts.saturating_sub(self.origin);
        if pts < self.from {
            return;
        }
        // The due times of priming are all 0. Only pictures are reordered.
        let dts = match self.format.is_video() {
            true => self.decoded(frame.decoded(self.format.timescale()).saturating_sub(self.origin), pts),
            false => pts,
        };
        let dts = dts.max(self.next_dts);
        self.next_dts = dts.saturating_add(1);
        let data = self.flac.as_mut().map_or_else(|| frame.data.clone(), |flac| flac.encode(&frame.data));
        self.waiting.push(Waiting { dts, pts, is_sync: frame.is_sync, data });
    }

    /// Returns the decode time of the next picture, of which `dts` is the own one. It is the end that was assumed for the picture
    /// before, unless that lies behind both its own decode time and its presentation time.
    fn decoded(&mut self, dts: i64, pts: i64) -> i64 {
        let latest = dts.max(pts.saturating_add(self.reorder));
        self.assumed.take().map_or(dts, |end| end.min(latest))
    }

    /// Assumes the duration of the last frame.
    fn assume(&mut self, interval: Duration) {
        let Some(last) = self.waiting.last() else { return };
        let duration = ticks(interval, self.format.timescale()).max(1);
        self.assumed = Some(last.dts.saturating_add(duration));
    }

    /// Settles the media time of time 0 by the frames of the first fragment, and by what is known of earlier ones.
    fn settle(&mut self) {
        let reorder = self.waiting.iter().map(|waiting| waiting.dts.saturating_sub(waiting.pts)).max();
        self.reorder = reorder.unwrap_or(0).max(self.reorder);
        let first = self.waiting.first().map_or(0, |waiting| waiting.dts.saturating_sub(self.reorder));
        self.early = first.min(0).saturating_neg();
    }

    /// Takes the frames of a fragment out: all of them, or all but the last one. `None` where there are none.
    fn run(&mut self, frames: &mut Vec<Bytes>, is_whole: bool) -> Option<TrackRun> {
        let count = self.waiting.len().saturating_sub(usize::from(!is_whole));
        let rest = self.waiting.split_off(count);
        let taken = std::mem::replace(&mut self.waiting, rest);
        let first = taken.first()?.dts;
        let ends = taken.iter().skip(1).chain(self.waiting.first()).map(|next| Some(next.dts)).chain([self.assumed]);
        let mut samples = Vec::with_capacity(taken.len());
        for (sample, end) in taken.iter().zip(ends) {
            if let Some(end) = end {
                self.duration = u32::try_from(end.saturating_sub(sample.dts)).unwrap_or(u32::MAX);
            }
            samples.push(FragmentSample {
                duration: self.duration,
                size: u32::try_from(sample.data.len()).unwrap_or(u32::MAX),
                offset: sample.pts.saturating_sub(sample.dts).saturating_add(self.reorder),
                is_sync: sample.is_sync,
            });
        }
        frames.extend(taken.into_iter().map(|sample| sample.data));
        let decode_time = first.saturating_sub(self.reorder).saturating_add(self.early);
        Some(TrackRun { id: self.id, decode_time: u64::try_from(decode_time).unwrap_or(0), samples })
    }
}

/// Converts ticks of one timescale to the nearest ticks of another.
fn scaled(ticks: i64, from: u32, to: u32) -> i64 {
    let from = i128::from(from.max(1));
    let product = i128::from(ticks) * i128::from(to);
    i64::try_from((product + from / 2).div_euclid(from)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
