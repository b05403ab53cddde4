//! Presentations of files of which only the beginning is known.
//!
//! Boundaries are chosen from the beginning on, so that further samples change the last boundaries only. Earlier segments have the same
//! samples, times and names in the presentation of the whole file.

use crate::presentation::{
    Presentation,
    track::{MediaKind, PresentedTrack},
};

/// Boundaries of the first track that further key frames may change: its last segment's begin, and its end.
const OPEN: usize = 2;
/// Seconds by which rounding may differ between the clocks of tracks.
const ROUNDED: f64 = 0.001;

/// Number of final segments of each track, in the order of the tracks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SoFar(Vec<u32>);

impl Presentation {
    /// Returns the presentation of the beginning of a file, whose playlists list final segments only. `None` if a track has no such
    /// segment yet, and if the beginning has several periods or several videos, whose order and common boundaries depend on the whole.
    /// Subtitles without such a segment are left out.
    #[must_use]
    pub fn so_far(self) -> Option<Self> {
        if !self.periods.is_empty() || self.of_kind(MediaKind::Video).count() > 1 {
            return None;
        }
        let until = self.final_until()?;
        let counts = self.tracks.iter().map(|track| finals(track, until)).collect::<Vec<_>>();
        let mut listed: Vec<_> = self.tracks.into_iter().zip(counts).collect();
        listed.retain(|(track, count)| *count > 0 || track.kind != MediaKind::Text);
        let has_all = listed.iter().all(|(_, count)| *count > 0);
        let (tracks, counts) = listed.into_iter().unzip();
        has_all.then(|| Self { tracks, so_far: Some(SoFar(counts)), ..self })
    }

    /// Whether only the beginning of the file is known.
    #[must_use]
    pub const fn is_so_far(&self) -> bool {
        self.so_far.is_some()
    }

    /// Whether segment `number` of the track of a name is final. All segments of whole files are final.
    #[must_use]
    pub fn is_final(&self, track: &str, number: u32) -> bool {
        let place = self.tracks.iter().position(|known| known.name == track);
        self.so_far.as_ref().is_none_or(|SoFar(counts)| {
            place.and_then(|place| counts.get(place)).is_some_and(|count| (1..=*count).contains(&number))
        })
    }

    /// Returns the number of segments that a playlist of a track lists, if only the beginning of the file is known.
    pub(crate) fn listed_so_far(&self, track: &PresentedTrack) -> Option<u32> {
        let SoFar(counts) = self.so_far.as_ref()?;
        let place = self.tracks.iter().position(|known| known.name == track.name)?;
        counts.get(place).copied()
    }

    /// Returns the time in seconds up to which segments are final: a boundary of the first track that no other media ends before.
    fn final_until(&self) -> Option<f64> {
        let first = self.tracks.first().filter(|first| first.kind != MediaKind::Text)?;
        let media = self.tracks.iter().filter(|track| track.kind != MediaKind::Text);
        let known = media.map(last_start).fold(f64::INFINITY, f64::min);
        let times = first.segments.times();
        let fixed = times.len().checked_sub(OPEN).and_then(|count| times.get(..count))?;
        let seconds = |time: &i64| first.segments.timescale().seconds(*time);
        fixed.iter().skip(1).rev().map(seconds).find(|time| *time <= known)
    }
}

/// Returns the time in seconds at which the last sample of a track is presented, or a time before it.
fn last_start(track: &PresentedTrack) -> f64 {
    let last = track.sample_count().checked_sub(1);
    let Some((last, media)) = last.zip(track.media()) else { return 0.0 };
    let sample = media.timeline.at(&media.track().samples, last);
    sample.map_or(0.0, |sample| media.track().timescale.seconds(sample.dts.min(sample.pts)))
}

/// Returns the time in seconds at which the last text of a track ends: later texts are not known yet. Files beside the film are whole.
fn texts_end(track: &PresentedTrack) -> f64 {
    let last = track.sample_count().checked_sub(1);
    let sample = last.zip(track.media()).and_then(|(last, media)| {
        let sample = media.timeline.at(&media.track().samples, last)?;
        let end = sample.pts.saturating_add(i64::from(sample.sample.duration));
        Some(media.track().timescale.seconds(end))
    });
    sample.unwrap_or(f64::INFINITY)
}

/// Returns the number of segments of a track that end before a boundary. A segment of sound ends with its first frame behind it.
fn finals(track: &PresentedTrack, until: f64) -> u32 {
    let seconds = |time: i64| track.segments.timescale().seconds(time);
    let until = if track.kind == MediaKind::Text { until.min(texts_end(track)) } else { until };
    let is_final = |segment: &crate::SegmentInfo| match track.kind {
        MediaKind::Audio => seconds(segment.start) + ROUNDED < until && segment.number < track.segments.count(),
        MediaKind::Video | MediaKind::Text => {
            seconds(segment.start.saturating_add(segment.duration)) <= until + ROUNDED
        }
    };
    track.segments.iter().take_while(is_final).last().map_or(0, |segment| segment.number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ObjectRange, Plan, PlanItem, fmp4,
        hls::{self, Container},
        testing::{Made, audio, frames, movie, presentation, reordered, table, video},
        transport,
    };

    /// A film of the first samples of each track.
    fn film(pictures: &[Made], sound: &[Made]) -> Presentation {
        let tracks =
            vec![video(table(pictures, 48, 0), 12_800, Vec::new()), audio(table(sound, 1 << 30, 0), "eng", Vec::new())];
        presentation(vec![movie(tracks)])
    }

    /// Pictures whose groups have all sorts of lengths.
    fn groups() -> Vec<Made> {
        let lengths = [25, 25, 10, 120, 7, 60, 25, 25, 25, 200, 12, 12, 80, 25, 25, 25, 25, 50, 33];
        lengths.into_iter().flat_map(|length| reordered(length, length, 900)).collect()
    }

    fn fragment(film: &Presentation, track: &PresentedTrack, number: u32) -> Vec<PlanItem> {
        match fmp4::segment(film, track, number).unwrap() {
            Plan::Items(items) => items,
            Plan::Rewrite(_) => panic!("no plan of parts"),
        }
    }

    /// Length and ranges of a segment as a transport stream, with sound.
    fn transported(film: &Presentation, track: &PresentedTrack, number: u32) -> (Option<u64>, Vec<ObjectRange>) {
        match transport::segment(film, track, number).unwrap().unwrap() {
            Plan::Rewrite(made) => (made.len(), made.covering()),
            Plan::Items(_) => panic!("samples that are not rewritten"),
        }
    }

    #[test]
    fn each_beginning_lists_segments_of_the_whole() {
        let (pictures, sound) = (groups(), frames(1600));
        let whole = film(&pictures, &sound);
        let mut most = [0, 0];
        for count in (25..pictures.len()).step_by(3) {
            // Sound is a second behind the pictures, as multiplexers write it.
            let heard = (count.saturating_sub(25) * 48_000 / 25 / 1024).min(sound.len());
            let Some(begin) = film(&pictures[..count], &sound[..heard]).so_far() else { continue };
            for (place, (track, of_whole)) in begin.tracks.iter().zip(&whole.tracks).enumerate() {
                let listed = begin.listed_so_far(track).unwrap();
                assert!(listed >= most[place], "{count} pictures: {listed} segments after {}", most[place]);
                most[place] = listed;
                assert!(begin.is_final(&track.name, listed) && !begin.is_final(&track.name, listed + 1));
                for number in 1..=listed {
                    let what = format!("{count} pictures, {} {number} of {listed}", track.name);
                    assert_eq!(track.segment(number), of_whole.segment(number), "{what}");
                    let begins = (fragment(&begin, track, number), fragment(&whole, of_whole, number));
                    assert!(begins.0 == begins.1, "{what}");
                    if track.kind == MediaKind::Video {
                        let begins = (transported(&begin, track, number), transported(&whole, of_whole, number));
                        assert_eq!(begins.0, begins.1, "{what} as a transport stream");
                    }
                }
            }
        }
        assert!(most[0] >= 4 && most[1] >= 4, "{most:?} segments");
        assert!(whole.is_final("v1", 1) && whole.is_final("v1", 99) && !whole.is_so_far());
    }

    /// Replies with segments of a beginning must not live as long in caches as those with segments of a whole file.
    #[test]
    fn later_reordering_changes_earlier_segments_of_the_same_name() {
        let mut pictures = reordered(25 * 17, 25, 900);
        let sound = frames(1400);
        pictures.iter_mut().for_each(|picture| picture.composition = 0);
        let begin = film(&pictures, &sound[..800]).so_far().unwrap();
        // Some of these are presented a picture before they are decoded.
        let early = |picture: Made| Made { composition: picture.composition - 512, ..picture };
        pictures.extend(reordered(25 * 13, 25, 900).into_iter().map(early));
        let whole = film(&pictures, &sound);
        let of = |film: &Presentation| fragment(film, film.track("v1").unwrap(), 1);
        assert!(begin.is_final("v1", 1) && of(&begin) != of(&whole));
    }

    #[test]
    fn playlists_are_events_without_an_end() {
        let pictures = reordered(25 * 30, 25, 900);
        let whole = film(&pictures, &frames(1400));
        let begin = film(&pictures[..25 * 17], &frames(800)).so_far().unwrap();
        for container in [Container::Fmp4, Container::Ts] {
            let video = |film: &Presentation| hls::media(film, film.track("v1").unwrap(), container).unwrap();
            let (now, later) = (video(&begin), video(&whole));
            let count = now.matches("#EXTINF").count();
            assert!(count == 3 && later.matches("#EXTINF").count() > 6, "{now}");
            assert!(
                now.contains("#EXT-X-PLAYLIST-TYPE:EVENT\n") && now.contains("#EXT-X-START:TIME-OFFSET=0\n"),
                "{now}"
            );
            assert!(now.contains("#EXT-X-TARGETDURATION:4\n") && !now.contains("ENDLIST"), "{now}");
            assert!(later.contains("#EXT-X-PLAYLIST-TYPE:VOD\n") && later.ends_with("#EXT-X-ENDLIST\n"), "{later}");
            let entries = |text: &str| {
                text.lines()
                    .skip_while(|line| !line.starts_with("#EXTINF"))
                    .take(2 * count)
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            };
            assert_eq!(entries(&now), entries(&later));
            let master = hls::multivariant(&begin, container).unwrap();
            assert!(master.contains("CODECS=\"avc1.") && !master.contains("I-FRAME"), "{master}");
        }
    }

    #[test]
    fn what_depends_on_the_whole_is_not_presented() {
        let pictures = reordered(25 * 30, 25, 900);
        assert!(film(&pictures[..25 * 5], &frames(400)).so_far().is_none(), "the second boundary may change");
        assert!(film(&pictures, &frames(40)).so_far().is_none(), "the sound has not arrived");
        let two = [1, 2].map(|_| movie(vec![video(table(&pictures, 48, 0), 12_800, Vec::new())]));
        assert!(presentation(two.to_vec()).so_far().is_none(), "renditions");
    }
}
