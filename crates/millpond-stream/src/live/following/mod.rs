//! Following a ladder: a viewer gets the pictures of the best stream that the viewer's network can carry.
//!
//! The frames of all streams arrive at a [`Follower`], which passes on the frames of one stream. It changes between streams at
//! key frames that show the same moment. The first stream is the best one, and gives the sound. Times and numbers continue over
//! all changes, and key frames have their parameter sets in band. So no epoch begins, and players and protocols need not know of
//! a change.

mod climber;
mod followed;
mod in_band;
#[cfg(test)]
mod tests;

use crate::{Format, Frame, epoch::Epoch, splice::Passed, strain::Strain};
use climber::{Climber, Wish};
use followed::{Followed, SECOND};
use millpond_media::{movie::TrackKind, units::Timescale};
use std::{sync::Arc, time::Duration};

/// Longest time between two key frames that show the same moment, in nanoseconds. It is less where groups are short.
const SAME: i64 = SECOND / 5 * 2;
/// Longest wait for the other stream's key frame.
const HOLD: Duration = Duration::from_millis(400);
/// Attempts to find key frames of the same moment, before wall clocks decide.
const TRIES: u32 = 2;

/// What a viewer gets.
#[derive(Clone, Debug)]
pub(crate) enum Given {
    /// An epoch begins.
    Epoch(Epoch),
    /// A frame.
    Frame(Frame),
}

/// Gives the frames of one of several streams. See the [module](self).
#[derive(Debug)]
pub(crate) struct Follower {
    /// The best one first.
    streams: Vec<Followed>,
    climber: Climber,
    /// The format of pictures that all streams must follow.
    format: Format,
    /// Track of the pictures, and its clock.
    lead: (u16, Timescale),
    /// Number of the epoch; `None` before the first one.
    epoch: Option<u32>,
    passed: Vec<Passed>,
    current: usize,
    wanted: usize,
    /// Time until which the current stream's pictures are held back for a key frame of the wanted one.
    hold: Option<Duration>,
    tries: u32,
    /// The greatest presentation time of a picture so far, in nanoseconds.
    shown: i64,
    changes: u64,
}

/// The size of a stream's pictures, by which the streams of a ladder are ordered.
pub(crate) fn area(formats: &[Option<Format>]) -> u64 {
    let area = |format: &Format| match format.track.kind {
        TrackKind::Video { width, height, .. } => u64::from(width) * u64::from(height),
        TrackKind::Audio { .. } | TrackKind::Text => 0,
    };
    formats.iter().flatten().map(area).max().unwrap_or(0)
}

/// Whether the pictures of one stream can take the place of another one's.
pub(crate) fn can_follow(formats: &[Option<Format>], first: &[Option<Format>]) -> bool {
    match (pictures(formats), pictures(first)) {
        (Some((_, of)), Some((_, first))) => in_band::follows(of, first) && in_band::in_band(of).is_some(),
        _ => false,
    }
}

/// The pictures that viewers begin with.
fn pictures(formats: &[Option<Format>]) -> Option<(u16, &Format)> {
    let track = Epoch::lead_of(formats)?;
    formats.get(usize::from(track))?.as_ref().filter(|format| format.is_video()).map(|format| (track, format))
}

impl Follower {
    /// Follows `streams` streams. The first stream begins with an epoch of the formats `first`. Frames may wait for `limit`.
    /// `None` if the formats have no pictures that other streams can continue.
    pub(crate) fn new(streams: usize, first: &[Option<Format>], limit: Duration) -> Option<Self> {
        let (track, format) = pictures(first)?;
        let (format, _) = in_band::in_band(format)?;
        let lead = (track, format.track.timescale);
        Some(Self {
            streams: (0..streams).map(|_| Followed::new()).collect(),
            climber: Climber::new(streams, limit),
            format,
            lead,
            epoch: None,
            passed: Vec::new(),
            current: 0,
            wanted: 0,
            hold: None,
            tries: 0,
            shown: i64::MIN,
            changes: 0,
        })
    }

    /// Number of changes from one stream to another.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// The stream whose pictures the viewer gets.
    pub(crate) fn current(&self) -> usize {
        self.current
    }

    /// Whether the first stream has pictures that can't follow those before.
    pub(crate) fn is_over(&self) -> bool {
        self.epoch.is_some() && self.streams.first().is_some_and(|first| !first.is_fit)
    }

    /// Looks at the strain of the viewer.
    pub(crate) fn look(&mut self, now: Duration, strain: &Strain) {
        let wish = self.climber.look(now, strain);
        let fit = |at: &usize| self.streams.get(*at).is_some_and(|stream| stream.is_fit && !stream.group().is_empty());
        let wanted = match wish {
            Wish::Down => (self.current + 1..self.streams.len()).find(fit),
            Wish::Up => (0..self.current).rfind(fit),
            // The way up is not begun under strain.
            Wish::Stay if self.wanted < self.current && !self.climber.is_calm() => None,
            Wish::Stay => return,
        };
        let wanted = wanted.unwrap_or(self.current);
        if wanted != self.wanted {
            (self.wanted, self.tries) = (wanted, 0);
        }
    }

    /// Takes a frame of a stream, in the order of their arrival. `epoch` is the frame's epoch, if it is known.
    pub(crate) fn take(
        &mut self,
        from: usize,
        frame: &Frame,
        epoch: impl FnOnce() -> Option<Epoch>,
        now: Duration,
        out: &mut Vec<Given>,
    ) {
        let Some(stream) = self.streams.get_mut(from) else { return };
        if stream.is_new(frame.epoch) {
            let Some(epoch) = epoch() else { return };
            stream.enter(&epoch, &self.format);
            self.entered(from, epoch, out);
        }
        let is_picture = self.streams.get(from).is_some_and(|stream| stream.is_fit && stream.track == frame.track);
        if is_picture {
            self.picture(from, frame, now, out);
        } else if from == 0 && frame.track != self.lead.0 {
            self.sound(frame, out);
        }
    }

    /// Notes that a stream has ended. The best one never does before its viewer.
    pub(crate) fn end(&mut self, of: usize) {
        if let Some(stream) = self.streams.get_mut(of) {
            *stream = Followed::new();
        }
        if self.wanted == of {
            self.wanted = 0;
        }
        if self.current == of {
            (self.wanted, self.tries) = (0, TRIES);
        }
    }

    /// Begins an epoch of the viewer with one of the first stream. Times of the others go on by the wall clock.
    fn entered(&mut self, from: usize, epoch: Epoch, out: &mut Vec<Given>) {
        if from == self.current {
            self.hold = None;
        }
        if from == 0 {
            let number = self.epoch.map_or(0, |last| last.wrapping_add(1));
            self.epoch = Some(number);
            let of = |format: &Option<Format>| {
                let format = format.as_ref()?;
                if format.is_video() { Some(in_band::in_band(format)?.0) } else { Some(format.clone()) }
            };
            let formats: Arc<[_]> = epoch.formats.iter().map(of).collect();
            out.push(Given::Epoch(Epoch { number, formats, ..epoch }));
        } else if from == self.current
            && let [first, ..] = &self.streams[..]
        {
            let shift = self.streams[from].shift_by_wall(first);
            self.streams[from].shift = shift;
            if !self.streams[from].is_fit {
                (self.wanted, self.tries) = (0, TRIES);
            }
        }
    }

    fn sound(&mut self, frame: &Frame, out: &mut Vec<Given>) {
        let Some(epoch) = self.epoch else { return };
        let frame = Frame { epoch, ..frame.clone() };
        out.extend(self.passed(frame.track).take(frame, false, None).map(Given::Frame));
    }

    fn picture(&mut self, from: usize, frame: &Frame, now: Duration, out: &mut Vec<Given>) {
        let is_current = from == self.current;
        if self.hold.is_some_and(|until| now >= until || (is_current && frame.is_sync)) {
            self.release(out);
        }
        self.streams[from].keep(frame);
        if frame.is_sync && self.wanted != self.current && (is_current || from == self.wanted) {
            if self.change(is_current, now, out) {
                return;
            }
            if is_current && self.tries < TRIES {
                self.hold = Some(now + HOLD);
                self.tries += 1;
            }
        }
        if is_current && self.hold.is_none() {
            self.give(from, frame, out);
        }
    }

    /// Changes to the wanted stream, where its last key frame can take the place of the current stream's. Returns whether it did.
    fn change(&mut self, is_current: bool, now: Duration, out: &mut Vec<Given>) -> bool {
        let [Some(current), Some(wanted)] = [self.current, self.wanted].map(|at| self.streams.get(at)) else {
            return false;
        };
        let Some(key) = wanted.group().first().filter(|_| wanted.is_fit).map(|key| key.pts) else { return false };
        let place = current.group().first().filter(|_| is_current || self.hold.is_some()).map(|key| key.pts);
        let most = current.length().map_or(SAME, |length| SAME.min(length / 2)).unsigned_abs();
        let same = place.filter(|place| current.wall(*place).abs_diff(wanted.wall(key)) <= most);
        let shift = match (same, self.wanted) {
            // It has the times of the sound.
            (Some(_), 0) => 0,
            (Some(place), _) => current.time(place).saturating_add(current.shift).saturating_sub(wanted.time(key)),
            (None, _) if self.tries < TRIES => return false,
            (None, 0) => 0,
            (None, _) => self.streams.first().map_or(0, |first| wanted.shift_by_wall(first)),
        };
        if same.is_none() && wanted.time(key).saturating_add(shift) <= self.shown {
            return false;
        }
        let to = self.wanted;
        self.streams[to].shift = shift;
        (self.current, self.hold, self.tries) = (to, None, 0);
        self.changes += 1;
        self.climber.changed(to, now);
        self.give_group(to, out);
        true
    }

    /// Gives the pictures that were held back.
    fn release(&mut self, out: &mut Vec<Given>) {
        self.hold = None;
        self.give_group(self.current, out);
    }

    fn give_group(&mut self, of: usize, out: &mut Vec<Given>) {
        let group = self.streams.get(of).map_or_else(Vec::new, |stream| stream.group().to_vec());
        for frame in &group {
            self.give(of, frame, out);
        }
    }

    fn give(&mut self, of: usize, frame: &Frame, out: &mut Vec<Given>) {
        let (Some(epoch), Some(stream)) = (self.epoch, self.streams.get(of)) else { return };
        let (track, scale) = self.lead;
        let moved = stream.moved(frame, (track, scale, epoch));
        self.shown = self.shown.max(stream.time(frame.pts).saturating_add(stream.shift));
        out.extend(self.passed(track).take(moved, true, Some(scale)).map(Given::Frame));
    }

    fn passed(&mut self, track: u16) -> &mut Passed {
        let place = usize::from(track);
        if self.passed.len() <= place {
            self.passed.resize(place + 1, Passed::default());
        }
        &mut self.passed[place]
    }
}
