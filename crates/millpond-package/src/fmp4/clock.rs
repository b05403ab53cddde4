//! Clock of a track's fragments: the track's clock, or a finer clock if preroll is squeezed.
//!
//! Players show what they get. So squeezed samples are a nanosecond apart, where a track's own ticks would be visible.
//! Their times differ nevertheless, because players find samples by time.

use crate::{presentation::track::MediaTrack, timeline::Squeezed};
use millpond_media::units::Timescale;

/// Ticks a second of the finer clock, at most.
const FINE: u32 = 1_000_000_000;

/// Conversion of timeline times to fragment times.
pub(super) struct Clock<'a> {
    media: &'a MediaTrack,
    /// Ticks of the fragments in a tick of the track.
    factor: i64,
    /// Squeezed samples, by time.
    squeezed: Vec<Squeezed>,
}

impl<'a> Clock<'a> {
    pub(super) fn of(media: &'a MediaTrack) -> Self {
        let mut squeezed: Vec<Squeezed> = media.timeline.squeezed().collect();
        // Edits shorter than the gap before their first picture may begin in any order.
        if squeezed.windows(2).any(|pair| pair[0].window.1 >= pair[1].window.0) {
            squeezed.clear();
        }
        // Decode times of an edit may run ahead into the window of the next one, a tick apart.
        if !media.timeline.is_of_one_edit() {
            squeezed.iter_mut().for_each(|squeezed| squeezed.step = 1);
        }
        let factor = if squeezed.is_empty() { 1 } else { factor(media, &squeezed) };
        Self { media, factor, squeezed }
    }

    pub(super) fn timescale(&self) -> Timescale {
        let timescale = self.media.track().timescale;
        let ticks = u32::try_from(self.factor).ok().and_then(|factor| timescale.get().checked_mul(factor));
        ticks.and_then(Timescale::new).unwrap_or(timescale)
    }

    /// Returns a time in ticks of the fragments.
    pub(super) fn at(&self, time: i64) -> i64 {
        let place = self.squeezed.partition_point(|squeezed| squeezed.window.0 <= time);
        let squeezed = place.checked_sub(1).and_then(|place| self.squeezed.get(place));
        match squeezed.filter(|squeezed| self.factor > 1 && time <= squeezed.window.1) {
            Some(Squeezed { window: (start, _), step, .. }) => {
                let count = time.saturating_sub(*start) / step;
                start.saturating_mul(self.factor).saturating_add(count)
            }
            None => time.saturating_mul(self.factor),
        }
    }

    /// Most ticks by which a sample is presented before it is decoded. Squeezed samples are presented earlier than in the
    /// timeline, by the length of the window at most.
    ///
    /// It is 0 where composition offsets may be below 0.
    pub(super) fn reorder(&self) -> i64 {
        if self.media.facts.has_signed_offsets {
            return 0;
        }
        match self.media.facts.reorder {
            0 => 0,
            reorder => reorder.saturating_add(longest(&self.squeezed)).saturating_mul(self.factor),
        }
    }

    /// Ticks by which the first samples are decoded or presented before time 0.
    pub(super) fn early(&self) -> i64 {
        let facts = &self.media.facts;
        if facts.has_signed_offsets {
            // As long as the first sample is decoded, or the earliest one presented, before time 0.
            let early = facts.early.saturating_sub(facts.reorder).max(facts.start.saturating_neg());
            return early.max(0).saturating_mul(self.factor);
        }
        self.reorder().saturating_add(facts.early.saturating_sub(facts.reorder).saturating_mul(self.factor)).max(0)
    }
}

/// Length of the longest window.
fn longest(squeezed: &[Squeezed]) -> i64 {
    squeezed.iter().map(|squeezed| squeezed.window.1.saturating_sub(squeezed.window.0)).max().unwrap_or(0)
}

/// Returns the number of ticks of the finer clock in a tick of the track. The limit is fields of 32 bits, which some players read
/// with a sign.
fn factor(media: &MediaTrack, squeezed: &[Squeezed]) -> i64 {
    let by_rate = i64::from(FINE / media.track().timescale.get());
    let largest = media.facts.largest_field().saturating_add(longest(squeezed)).max(1);
    // Offsets are sums of two such fields.
    by_rate.min(i64::from(i32::MAX / 2) / largest).max(1)
}
