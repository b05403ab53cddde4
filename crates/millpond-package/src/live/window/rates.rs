//! Bit rates of a window's tracks.

use super::Window;
use crate::{
    live::boundary::time,
    timeline::bandwidth::{Bandwidth, Load},
    writing::digits,
};
use std::time::Duration;

/// Time over which bit rates are measured.
const MEASURED: Duration = Duration::from_secs(60);

impl Window {
    /// Measures the bit rates of a track whose last segment was closed.
    pub(super) fn measure(&mut self, track: usize) {
        let Some(scale) = self.tracks.get(track).map(|track| track.timescale) else { return };
        let mut loads = Vec::new();
        let mut measured = Duration::ZERO;
        for segment in self.segments.iter().rev().filter_map(|segment| segment.track(track)) {
            let Some((_, duration)) = segment.closed.filter(|_| !segment.is_gap()) else { continue };
            loads.push(Load { micros: digits::micros(duration, scale.get()), bytes: segment.bytes });
            measured = measured.saturating_add(time(duration, scale));
            if measured >= MEASURED {
                break;
            }
        }
        loads.reverse();
        let found = Bandwidth::of(&loads);
        if let Some(rate) = self.rates.get_mut(track) {
            *rate = Bandwidth {
                peak: steady(rate.peak, found.peak),
                average: steady(rate.average, found.average),
                sustained: steady(rate.sustained, found.sustained),
            };
        }
    }
}

/// Returns a rate that players may be told: `found` rounded up to two digits, unless `told` still fits.
pub(in crate::live) fn steady(told: u64, found: u64) -> u64 {
    if found <= told && found >= told / 2 {
        return told;
    }
    let mut unit = 1;
    while found / unit >= 100 {
        unit *= 10;
    }
    found.div_ceil(unit).saturating_mul(unit)
}
