//! Drops waiting frames from a queue. Frames that are needed least leave first; among equals, the newest leaves first.

use super::{
    key_interval::KeyInterval,
    losses::Losses,
    queue::{Waiting, Weight},
    queue_limits::Pressure,
};
use crate::{Frame, Run};

/// Bytes of a run that are dropped for each byte that arrives while too many wait.
const TIMES: usize = 2;

/// Gives a run to a queue under pressure, or only the frames of the run that can be decoded. Then drops the frames that are
/// needed least. Returns whether frames were given, and the number of lost frames. Waiting frames can be decoded as before, and
/// `losses` tells which frames that arrive later can't.
pub(super) fn give(
    waiting: &mut Waiting,
    (run, weight): (&Run, Weight),
    (pressure, keys): (Pressure, &KeyInterval),
    losses: &mut Losses,
) -> (bool, usize) {
    let mut rest = Vec::new();
    for frame in run.iter() {
        if pressure == Pressure::Full {
            lose(frame, keys, losses);
        } else if losses.admits(frame) {
            rest.push(frame.clone());
        }
    }
    let lost = run.len() - rest.len();
    if rest.is_empty() {
        return (false, lost);
    }
    let bytes = rest.iter().map(|frame| frame.data.len()).sum();
    let has_key = rest.iter().any(|frame| frame.is_sync && frame.importance.is_picture);
    waiting.push((rest.into(), weight.with_bytes(bytes)));
    let shed = match pressure {
        Pressure::None | Pressure::Full => 0,
        Pressure::Late if has_key => before_key(waiting, losses),
        Pressure::Layers => least_needed(waiting, (1, bytes), keys, losses),
        Pressure::Group | Pressure::Late => least_needed(waiting, (0, bytes), keys, losses),
    };
    (true, lost + shed)
}

/// Drops pictures that layers from `lowest` on need, because `bytes` have arrived. Returns their number.
fn least_needed(waiting: &mut Waiting, (lowest, bytes): (u8, usize), keys: &KeyInterval, losses: &mut Losses) -> usize {
    let (mut lost, mut left) = (0, bytes.saturating_mul(TIMES));
    let mut rank = greatest(waiting, lowest, None);
    while let Some(of) = rank.filter(|_| left > 0) {
        lost += newest(waiting, (of, &mut left), keys, losses);
        rank = greatest(waiting, lowest, Some(of));
    }
    lost
}

/// Notes what later frames of the newest group miss without one of its frames.
fn lose(frame: &Frame, keys: &KeyInterval, losses: &mut Losses) {
    if !keys.is_led_by(frame) {
        losses.lose(frame);
    }
}

/// Whether a frame is dropped before the key frames.
fn is_spare(frame: &Frame) -> bool {
    frame.importance.is_picture && !frame.is_sync
}

/// The greatest layer that needs a picture which waits, from `lowest` on and below `under`.
fn greatest(waiting: &Waiting, lowest: u8, under: Option<u8>) -> Option<u8> {
    let spare = waiting.runs().flat_map(|run| run.iter()).filter(|frame| is_spare(frame));
    let ranks = spare.map(|frame| frame.importance.needed_by);
    ranks.filter(|rank| *rank >= lowest && under.is_none_or(|under| *rank < under)).max()
}

/// Drops pictures that layer `rank` needs, the newest first, until `left` bytes were dropped.
fn newest(waiting: &mut Waiting, (rank, left): (u8, &mut usize), keys: &KeyInterval, losses: &mut Losses) -> usize {
    let (mut passed, mut lost) = (Keys::default(), 0);
    waiting.retain_newest_first(|frame| {
        let drops = *left > 0 && is_spare(frame) && frame.importance.needed_by == rank;
        if drops {
            *left = left.saturating_sub(frame.data.len().max(1));
            lost += 1;
            match passed.newest(frame.track) {
                None => lose(frame, keys, losses),
                Some(key) => losses.lose_before(frame, key),
            }
        }
        passed.pass(frame);
        !drops
    });
    lost
}

/// Drops all pictures before the newest key frame of their track.
fn before_key(waiting: &mut Waiting, losses: &mut Losses) -> usize {
    let (mut all, mut passed, mut lost) = (Keys::default(), Keys::default(), 0);
    waiting.runs().rev().flat_map(|run| run.iter().rev()).for_each(|frame| all.pass(frame));
    waiting.retain_newest_first(|frame| {
        let leads = is_spare(frame) && all.newest(frame.track).is_some_and(|key| frame.pts < key);
        let is_before = frame.importance.is_picture && passed.newest(frame.track).is_some();
        if let Some(key) = passed.newest(frame.track).filter(|_| is_before) {
            losses.lose_before(frame, key);
        }
        passed.pass(frame);
        lost += usize::from(leads || is_before);
        !leads && !is_before
    });
    lost
}

/// The newest key frame of each track of pictures, seen from the end of a queue.
#[derive(Default)]
struct Keys(Vec<(u16, i64)>);

impl Keys {
    fn newest(&self, track: u16) -> Option<i64> {
        self.0.iter().find(|(of, _)| *of == track).map(|(_, pts)| *pts)
    }

    fn pass(&mut self, frame: &Frame) {
        if frame.is_sync && frame.importance.is_picture && self.newest(frame.track).is_none() {
            self.0.push((frame.track, frame.pts));
        }
    }
}

#[cfg(test)]
mod tests;
