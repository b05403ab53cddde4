//! The MPD of a ladder: one Period that begins with the Unix epoch, as the stream time of all rungs does.
//!
//! A rung whose source begins again continues in the same Period. Where its format changed, only segments of the new one are
//! listed.

use super::{ENTRY, ManifestView, Period, clock, head};
use crate::{
    dash::sets::{Templates, sets},
    live::{Extent, Rung, Segment, Tracks},
    manifest::{captions::CaptionListing, track_listing::TrackListing},
    writing::xml::Writer,
};
use std::time::Duration;

/// Time by which the beginnings of equal segments may differ where they count as aligned.
const SAME: Duration = Duration::from_millis(20);

/// Returns the MPD of a ladder, whose streams are renditions of one title. `None` until one of the streams has a complete segment
/// of all its tracks. The run of `view` is not used.
#[must_use]
pub fn ladder_mpd(rungs: &[Rung<'_>], view: &ManifestView<'_>) -> Option<String> {
    let tracks = Tracks::of(rungs);
    let ladder = Ladder::of(&tracks);
    let first = tracks.0.first()?;
    let entries: usize = ladder.periods.iter().flatten().map(|period| period.segments.len()).sum();
    let mut w = Writer::new(4096 + ENTRY * entries);
    head(&mut w, first.rung.window, view);
    w.start("Period").attribute("id", "0").attribute("start", "PT0S");
    if let Some(period) = ladder.periods.iter().flatten().next() {
        period.events(&mut w, None);
    }
    for (id, set) in (0..).zip(sets(&tracks.listings(), ladder.is_aligned())) {
        set.write(&mut w, id, &ladder);
    }
    w.end();
    clock(&mut w, view);
    Some(w.finish())
}

/// The segments of each listed track, in the order of the tracks; `None` where there are none.
struct Ladder<'a> {
    periods: Vec<Option<Period<'a>>>,
    tracks: &'a Tracks<'a>,
}

impl<'a> Ladder<'a> {
    fn of(tracks: &'a Tracks<'a>) -> Self {
        let periods = tracks.0.iter().map(|of| Period::of_rung(&of.rung, of.track.place)).collect();
        Self { periods, tracks }
    }

    /// Whether segments of one number begin at one time in all videos.
    fn is_aligned(&self) -> bool {
        let mut periods = self.periods.iter().flatten();
        let Some(first) = periods.next() else { return true };
        periods.all(|other| {
            let same = |segment: &Segment| {
                let place = segment.number.0.checked_sub(other.segments.first()?.number.0)?;
                other.segments.get(usize::try_from(place).ok()?).copied()
            };
            let pairs = first.segments.iter().filter_map(|segment| Some((segment.start, same(segment)?.start)));
            let mut pairs = pairs.peekable();
            pairs.peek().is_some() && pairs.all(|(a, b)| a.abs_diff(b) <= SAME)
        })
    }
}

impl<'a> Period<'a> {
    /// Returns the listed segments of a rung that have the newest format of a track.
    fn of_rung(rung: &Rung<'a>, track: usize) -> Option<Self> {
        let Rung { base, run, window } = *rung;
        let epoch = window.newest_epoch()?;
        let first = window.first_listed(Extent::Edge)?;
        let has_format = |segment: &&Segment| {
            segment.number >= first
                && window.init(track, segment.epoch).is_some_and(|init| Some(init) == epoch.init(track))
        };
        let mut segments: Vec<_> = window.segments().rev().take_while(has_format).collect();
        segments.reverse();
        let targets = window.targets()?;
        let (part, target) = (targets.longest_part(), targets.segment);
        let is_empty = segments.is_empty();
        (!is_empty).then_some(Self { window, epoch, began: Duration::ZERO, run, base, segments, part, target })
    }
}

impl Templates for Ladder<'_> {
    fn base(&self) -> &str {
        ""
    }

    fn same_times(&self, _: &TrackListing<'_>, _: &TrackListing<'_>) -> bool {
        false
    }

    fn captions(&self, tracks: &[TrackListing<'_>]) -> CaptionListing<'_> {
        self.tracks.caption_rule().map_or(CaptionListing::Unknown, |rule| CaptionListing::of(rule, tracks))
    }

    fn template(&self, w: &mut Writer, track: &TrackListing<'_>) {
        let period = self.periods.get(track.place).and_then(Option::as_ref);
        if let Some((period, of)) = period.zip(self.tracks.0.get(track.place)) {
            period.template(w, &of.track);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        hls::ladder_multivariant,
        live::testing::{LIMITS, cut, film, rules, window},
    };

    #[test]
    fn rungs_are_one_set_with_one_sound() {
        let (hi, lo) = (window(LIMITS, cut(rules(), film(5, 50))), window(LIMITS, cut(rules(), film(5, 50))));
        let rung = |base, run, window| Rung { base, run, window };
        let rungs = [rung("hi/", "0a", &hi), rung("../lo/", "0b", &lo)];
        let view = ManifestView {
            run: "",
            clock: "/time",
            published: Duration::from_secs(1_795_341_605),
            away: Duration::ZERO,
            extent: Extent::Edge,
        };
        let mpd = ladder_mpd(&rungs, &view).unwrap();
        assert_eq!(mpd.matches("<AdaptationSet").count(), 2, "{mpd}");
        assert_eq!(mpd.matches("contentType=\"video\" mimeType=\"video/mp4\" segmentAlignment=\"true\"").count(), 1);
        for id in ["hi/v1", "../lo/v1", "hi/a1"] {
            assert_eq!(mpd.matches(&format!("<Representation id=\"{id}\"")).count(), 1, "{id}: {mpd}");
        }
        assert!(mpd.contains("media=\"../lo/~0b/v1/t$Time$.m4s\""), "{mpd}");
        assert!(mpd.contains("presentationTimeOffset=\"0\" initialization=\"hi/~0a/v1/init-0.mp4\""), "{mpd}");
        let list = ladder_multivariant(&rungs).unwrap();
        assert_eq!(list.matches("#EXT-X-STREAM-INF").count(), 2, "{list}");
        assert!(list.contains("\n../lo/v1/index.m3u8\n") && list.contains("URI=\"hi/a1/index.m3u8\""), "{list}");
    }

    #[test]
    fn rungs_that_are_not_ready_are_left_out() {
        let (hi, lo) = (window(LIMITS, cut(rules(), film(5, 50))), window(LIMITS, Vec::new()));
        let rung = |base, window| Rung { base, run: "0a", window };
        let list = ladder_multivariant(&[rung("lo/", &lo), rung("hi/", &hi)]).unwrap();
        assert!(list.contains("\nhi/v1/index.m3u8\n") && !list.contains("lo/"), "{list}");
        assert!(ladder_multivariant(&[rung("lo/", &lo)]).is_none());
    }
}
