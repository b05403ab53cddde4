//! Delivery directives of playlist requests (rfc8216bis 6.2.5).

use super::{
    part::SegmentNumber,
    window::{Edge, Window},
};
use std::time::Duration;

/// The delivery directives in a client's request for a media playlist (rfc8216bis 6.2.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Directives {
    /// The playlist must contain this segment (`_HLS_msn`).
    pub segment: Option<SegmentNumber>,
    /// The playlist must contain this part of the segment (`_HLS_part`).
    pub part: Option<u32>,
    /// Segments before the skip boundary may be left out (`_HLS_skip`).
    pub skip: bool,
}

/// Why directives are refused: with status 400.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadDirectives {
    /// A value is no decimal number.
    #[error("{0} is not a decimal number")]
    Number(&'static str),
    /// There is a part without a segment.
    #[error("_HLS_part needs _HLS_msn")]
    PartAlone,
    /// A directive appears twice.
    #[error("{0} appears twice")]
    Twice(&'static str),
}

/// When a playlist request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reload {
    /// Now.
    Now,
    /// When the window has changed, this is asked again.
    Wait,
    /// Never: the client is too far ahead, which is answered with status 400 at once.
    TooFar,
}

impl Directives {
    /// Parses the query of a request. Other parameters, and unknown values of `_HLS_skip`, are ignored.
    ///
    /// # Errors
    /// A number is invalid, a directive appears twice, or there is a part without a segment.
    pub fn parse(query: &str) -> Result<Self, BadDirectives> {
        let (mut segment, mut part, mut skip) = (None, None, None);
        for (name, value) in query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, ""))) {
            match name {
                "_HLS_msn" => set(&mut segment, "_HLS_msn", number("_HLS_msn", value)?)?,
                "_HLS_part" => set(&mut part, "_HLS_part", number("_HLS_part", value)?)?,
                // Without date ranges, both kinds of delta updates are the same.
                "_HLS_skip" => set(&mut skip, "_HLS_skip", matches!(value, "YES" | "v2"))?,
                _ => {}
            }
        }
        if part.is_some() && segment.is_none() {
            return Err(BadDirectives::PartAlone);
        }
        let part = part.map(|part: u64| u32::try_from(part).unwrap_or(u32::MAX));
        Ok(Self { segment: segment.map(SegmentNumber), part, skip: skip.unwrap_or(false) })
    }

    /// Decides when the playlist of a track is sent (rfc8216bis 6.2.5.2).
    ///
    /// A segment without a part means its first part: Safari waits for that one. A part after the last part of a complete segment
    /// means the first part of the next segment.
    #[must_use]
    pub fn decide(&self, window: &Window, track: usize) -> Reload {
        let Some(segment) = self.segment else { return Reload::Now };
        let Some((hint, targets)) = window.hint(track).zip(window.targets()) else { return Reload::Wait };
        let last = hint.segment.0.saturating_sub(1);
        if segment.0 > last.saturating_add(2) {
            return Reload::TooFar;
        }
        let Some(part_target) = targets.longest_part() else {
            return if segment.0 <= last { Reload::Now } else { Reload::Wait };
        };
        let asked = u64::from(self.part.unwrap_or(0));
        let known = if segment == hint.segment { u64::from(hint.part) } else { 0 };
        if segment.0 > last && asked > known.saturating_add(advance(part_target)) {
            return Reload::TooFar;
        }
        // A complete segment has fewer parts than were asked for: the next one's first is meant.
        let count = |segment| window.segment(segment).and_then(|s| s.track(track)).map(|s| s.parts().len() as u64);
        let is_past = segment.0 <= last && count(segment).is_some_and(|count| asked >= count.max(1));
        let (segment, part) = if is_past { (segment.next(), 0) } else { (segment, asked) };
        let next = Edge { segment, part: u16::try_from(part).unwrap_or(u16::MAX) };
        if next < hint { Reload::Now } else { Reload::Wait }
    }
}

/// Most parts by which a client may be ahead: three seconds, but at least three (rfc8216bis 6.2.5.2).
fn advance(part_target: Duration) -> u64 {
    let parts = Duration::from_secs(3).as_nanos().div_ceil(part_target.as_nanos().max(1));
    u64::try_from(parts).unwrap_or(u64::MAX).max(3)
}

fn number(name: &'static str, value: &str) -> Result<u64, BadDirectives> {
    let is_decimal = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    if is_decimal { value.parse().map_err(|_| BadDirectives::Number(name)) } else { Err(BadDirectives::Number(name)) }
}

fn set<T>(slot: &mut Option<T>, name: &'static str, value: T) -> Result<(), BadDirectives> {
    if slot.replace(value).is_some() { Err(BadDirectives::Twice(name)) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
