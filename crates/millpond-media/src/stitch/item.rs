//! One item: the spans of its tracks that it shows, and clips made of them.

use super::{
    CLOCK, StitchError, StitchItem,
    clock::{origin, spans_of_stretch},
};
use crate::{
    Movie, Work,
    codec::TrackKind,
    movie::{
        Edit, SkippedTrack, Track,
        edits::{Span, spans, spans_of},
        sample_table::SampleTable,
        stitched::Stitched,
    },
    units::Timescale,
};
use std::{ops::Range, time::Duration};

/// Shortest time that an item shows: sound and pictures of a joint lie up to half a second apart.
const SHORTEST: i64 = 1_000_000_000;
/// Time by which a range may end after its file, because people round.
const ROUNDING: i64 = 1_000_000;
/// Heap bytes of a track and its clip without samples.
const TRACK_BYTES: u64 = 8192;

/// Place of a track in the title: video, then sound by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lane {
    Video,
    Audio(usize),
}

/// Returns the video of a file that is stitched: its first enabled one.
pub(super) fn video(movie: &Movie) -> Option<&Track> {
    let videos = || movie.tracks.iter().filter(|track| matches!(track.kind, TrackKind::Video { .. }));
    videos().find(|track| track.enabled).or_else(|| videos().next())
}

/// Returns an upper bound of the heap bytes of the clips of an item, and of their copies in the tracks.
pub(super) fn bytes(item: &StitchItem) -> u64 {
    let of_track = |track: &Track| {
        let seconds = track.timescale.seconds(track.samples.end_dts().saturating_sub(track.samples.start_dts()));
        let end = item.clip.to.map_or(seconds, |to| to.as_secs_f64());
        // A clip begins with the group of pictures that it cuts.
        let shown = (end - item.clip.from.as_secs_f64() + 30.0) / seconds.max(1.0);
        (track.samples.heap_bytes() as f64 * shown.clamp(0.0, 1.0)) as u64
    };
    let of_track = |track: &Track| of_track(track).saturating_mul(3).saturating_add(TRACK_BYTES);
    item.movie.tracks.iter().map(of_track).fold(0, u64::saturating_add)
}

/// Returns the error of an item without video beside one with it.
pub(super) fn without_video(items: &[StitchItem], place: usize, other: usize) -> StitchError {
    let other =
        items.get(other).map_or(String::new(), |item| format!("video, as item {} ({}) has", other + 1, item.label));
    let label = items.get(place).map_or(String::new(), |item| item.label.clone());
    StitchError::Unfit { item: place + 1, label, found: "no video".to_owned(), expected: other }
}

/// The tracks of an item, and the time that it shows of them.
pub(super) struct Shown<'a> {
    item: &'a StitchItem,
    place: usize,
    tracks: Vec<(Lane, &'a Track, Vec<Span>)>,
    /// Time of the file that is shown, in nanoseconds.
    range: Range<i64>,
    /// Time at which the file's clock begins, in nanoseconds.
    origin: i64,
}

impl<'a> Shown<'a> {
    pub(super) fn of(item: &'a StitchItem, place: usize, work: &Work) -> Result<Self, StitchError> {
        let movie = &*item.movie;
        let unfit = |found: &str, expected: &str| unfit(item, place, found, expected);
        if movie.outline.is_some() {
            return Err(unfit("the samples of its first fragment only", "an index of all samples"));
        }
        if movie.stitched.is_some() {
            return Err(unfit("a stitched title", "a media file"));
        }
        let mut tracks = Vec::new();
        for (lane, track) in chosen(movie) {
            if track.protection.is_some() {
                return Err(unfit("encrypted media", "clear media: one title has one set of keys"));
            }
            if movie.extraction.is_none() && movie.clips_of(track.id).next().is_some() {
                return Err(unfit("clips of several codecs in the file", "files with one codec in each track"));
            }
            work.spend((1 + track.edits.len() as u64) * 64 + 4 * u64::from(track.samples.len()))?;
            let spans = if item.is_stretch { spans_of_stretch(track, movie) } else { spans(track, movie.timescale) };
            if !spans.is_empty() {
                tracks.push((lane, track, spans));
            }
        }
        let begin_of =
            |(_, track, spans): &(Lane, &Track, Vec<Span>)| Some(track.timescale.convert(spans.first()?.start, CLOCK));
        let begins = tracks.iter().filter_map(begin_of).min().filter(|_| item.is_stretch);
        let origin = begins.unwrap_or_else(|| origin(movie));
        let end_of = |(_, track, spans): &(Lane, &Track, Vec<Span>)| {
            let end = spans.last().map_or(0, |span| span.end);
            track.timescale.convert(end, CLOCK).saturating_sub(origin)
        };
        // An item lasts as long as its pictures.
        let pictures = tracks.iter().find(|(lane, ..)| *lane == Lane::Video).map(end_of);
        let Some(end) = pictures.or_else(|| tracks.iter().map(end_of).max()) else {
            return Err(unfit("no video and no sound", "a file with either"));
        };
        let range = range(item, place, end)?;
        Ok(Self { item, place, tracks, range, origin })
    }

    pub(super) fn has_video(&self) -> bool {
        self.tracks.iter().any(|(lane, ..)| *lane == Lane::Video)
    }

    /// Nanoseconds that the item shows.
    pub(super) fn length(&self) -> i64 {
        self.range.end - self.range.start
    }

    /// Returns the tracks that are not stitched, each with the reason.
    pub(super) fn left_out(&self) -> Vec<SkippedTrack> {
        let is_chosen = |track: &&Track| self.tracks.iter().any(|(_, chosen, _)| chosen.id == track.id);
        let movie = &self.item.movie;
        let named = |track: &Track, what: &str| {
            let reason = format!("item {} ({}): {what} not stitched", self.place + 1, self.item.label);
            SkippedTrack::new(track.id, reason)
        };
        let others = movie.tracks.iter().filter(|track| !is_chosen(track)).map(|track| {
            named(track, if track.kind == TrackKind::Text { "subtitles are" } else { "a second video is" })
        });
        // Where the stream of a recording changed, the track has the frames that one decoder plays.
        let changed = movie.tracks.iter().filter(|track| is_chosen(track) && movie.clips_of(track.id).next().is_some());
        let changed = changed.map(|track| named(track, "clips that need another decoder are"));
        others.chain(changed).collect()
    }

    /// Returns the clips of the item, which begins at `start` nanoseconds of the title.
    pub(super) fn clips(&self, start: i64) -> Result<Vec<(Lane, Track)>, StitchError> {
        let mut clips = Vec::with_capacity(self.tracks.len());
        for (lane, track, spans) in &self.tracks {
            let edits = self.edits(track.timescale, spans, start);
            if edits.iter().any(|edit| edit.media_time.is_some()) {
                clips.push((*lane, self.clip(track, edits)?));
            }
        }
        match clips.is_empty() {
            true => Err(unfit(self.item, self.place, "nothing to show in the range", "video or sound")),
            false => Ok(clips),
        }
    }

    /// Returns the edits that show the range at `start`. Times of edits are nanoseconds.
    fn edits(&self, timescale: Timescale, spans: &[Span], start: i64) -> Vec<Edit> {
        let (mut edits, mut elapsed) = (Vec::new(), 0_i64);
        for span in spans {
            let nanos = |ticks: i64| timescale.convert(ticks, CLOCK).saturating_sub(self.origin);
            let (first, end) = (nanos(span.start), nanos(span.end));
            let (from, to) = (first.max(self.range.start), end.min(self.range.end));
            if CLOCK.convert(to.saturating_sub(from), timescale) < 1 {
                continue;
            }
            let at = start.saturating_add(from - self.range.start);
            if at > elapsed {
                edits.push(Edit { duration: at.abs_diff(elapsed), media_time: None });
            }
            let inside = CLOCK.convert(from - first, timescale);
            let media_time = span.start.saturating_sub(span.shift).saturating_add(inside);
            edits.push(Edit { duration: to.abs_diff(from), media_time: Some(media_time) });
            elapsed = at.saturating_add(to - from);
        }
        edits
    }

    /// Returns the samples of a track that edits show, with those that a decoder needs before.
    fn clip(&self, track: &Track, edits: Vec<Edit>) -> Result<Track, StitchError> {
        let shown = spans_of(track, &edits, CLOCK);
        let first = shown.iter().map(|span| span.samples.start).min().unwrap_or(0);
        let end = shown.iter().map(|span| span.samples.end).max().unwrap_or(0);
        let Some(samples) = part(&track.samples, first..end, self.item.object) else {
            return Err(unfit(self.item, self.place, "samples beyond 16 TiB", "a smaller file"));
        };
        let descriptions = track.descriptions.as_ref().map(|all| Box::new(all.part(first..end)));
        Ok(Track {
            id: track.id,
            kind: track.kind,
            timescale: track.timescale,
            language: track.language.clone(),
            name: track.name.clone(),
            enabled: true,
            alternate_group: 0,
            purposes: track.purposes,
            captions: track.captions,
            codec: track.codec.clone(),
            sample_entry: track.sample_entry.clone(),
            edits,
            samples,
            descriptions,
            protection: None,
        })
    }
}

/// Returns the tracks of a file that are stitched: its video, and all sound.
fn chosen(movie: &Movie) -> impl Iterator<Item = (Lane, &Track)> {
    let sounds = movie.tracks.iter().filter(|track| matches!(track.kind, TrackKind::Audio { .. }));
    let sounds = sounds.enumerate().map(|(number, track)| (Lane::Audio(number), track));
    video(movie).map(|track| (Lane::Video, track)).into_iter().chain(sounds)
}

/// Returns the part of a file that an item shows, in nanoseconds. The file ends at `end`.
fn range(item: &StitchItem, place: usize, end: i64) -> Result<Range<i64>, StitchError> {
    let nanos = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
    let (from, to) = (nanos(item.clip.from), item.clip.to.map_or(end, nanos));
    if from >= to || to.saturating_sub(end) > ROUNDING {
        let (label, clip, end) = (item.label.clone(), item.clip, format!("{:.3}", end as f64 / 1e9));
        return Err(StitchError::Range { item: place + 1, label, clip, end });
    }
    let to = to.min(end);
    if to.saturating_sub(from) < SHORTEST {
        let found = format!("{:.3} s to show", to.saturating_sub(from) as f64 / 1e9);
        return Err(unfit(item, place, &found, "at least 1 s"));
    }
    Ok(from..to)
}

fn unfit(item: &StitchItem, place: usize, found: &str, expected: &str) -> StitchError {
    let (label, found, expected) = (item.label.clone(), found.to_owned(), expected.to_owned());
    StitchError::Unfit { item: place + 1, label, found, expected }
}

/// Returns some samples of a table, whose offsets name their object. `None` beyond the largest offset.
fn part(table: &SampleTable, samples: Range<u32>, object: u16) -> Option<SampleTable> {
    let mut builder = SampleTable::builder();
    for sample in table.range(samples) {
        builder.set_start_dts(sample.dts);
        let offset = Stitched::offset(object, sample.range.start)?;
        let size = u32::try_from(sample.range.len()).unwrap_or(u32::MAX);
        builder.push(offset, size, sample.duration, sample.composition, sample.sync);
    }
    Some(builder.finish())
}
