//! Sync samples as single pictures, for trick play.

use crate::{
    timeline::{
        Timeline,
        bandwidth::{Bandwidth, Load},
        loads::{self, Added, added_by_encryption, written},
    },
    writing::digits,
};
use millpond_media::movie::Track;

/// Pictures for trick play. Numbers start at 1.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct IFrames {
    /// Ordinal and presentation time in ticks of each picture.
    frames: Box<[(u32, i64)]>,
    end: i64,
    pub(crate) bandwidth: Bandwidth,
}

impl IFrames {
    /// Selects the sync samples that are at least half a second after the last selected one, at most `most`. A track
    /// whose samples are all sync samples thus gets no entry per frame.
    pub(crate) fn of(track: &Track, timeline: &Timeline, end: i64, most: usize) -> Self {
        let scale = track.timescale.get();
        let spacing = i64::from(scale / 2);
        let mut frames: Vec<(u32, i64)> = Vec::new();
        let mut sizes = Vec::new();
        for timed in timeline.sync_samples(&track.samples) {
            if frames.len() >= most {
                break;
            }
            let spaced = frames.last().is_none_or(|(_, time)| timed.pts >= time.saturating_add(spacing));
            if spaced && timed.pts < end {
                frames.push((timed.ordinal, timed.pts));
                sizes.push(written(track, &timed.sample));
            }
        }
        let Added { fragment, row } = added_by_encryption(track.protection.as_deref());
        let overhead = loads::FRAGMENT + fragment + row;
        let mut iframes = Self { frames: frames.into(), end, bandwidth: Bandwidth::default() };
        let loads: Vec<Load> = iframes
            .durations()
            .zip(sizes)
            .map(|(ticks, bytes)| Load { micros: digits::micros(ticks, scale), bytes: bytes.saturating_add(overhead) })
            .collect();
        iframes.bandwidth = Bandwidth::of(&loads);
        iframes
    }

    /// Returns how long each picture is shown, in ticks: until the next one.
    pub(crate) fn durations(&self) -> impl ExactSizeIterator<Item = i64> + '_ {
        (0..self.frames.len()).map(|place| self.duration(place))
    }

    fn duration(&self, place: usize) -> i64 {
        let next = self.frames.get(place + 1).map_or(self.end, |f| f.1);
        next.saturating_sub(self.frames.get(place).map_or(0, |f| f.1.max(0)))
    }

    /// Returns the ordinal of picture `number`, and how long it is shown.
    pub(crate) fn get(&self, number: u32) -> Option<(u32, i64)> {
        let place = usize::try_from(number).ok()?.checked_sub(1)?;
        Some((self.frames.get(place)?.0, self.duration(place)))
    }

    /// Returns the number of the last picture that is presented no later than `ticks`, or 1.
    pub(crate) fn at(&self, ticks: i64) -> u32 {
        let place = self.frames.partition_point(|(_, time)| *time <= ticks);
        u32::try_from(place.max(1)).unwrap_or(u32::MAX)
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.frames.len() * size_of::<(u32, i64)>()
    }
}
