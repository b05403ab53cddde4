//! Decides which videos are renditions of each other, so that players may switch between them, and which files are one
//! title.

use crate::presentation::track::display_size;
use millpond_media::movie::{Movie, Track, TrackKind};
use std::fmt;

/// Largest difference between the aspect ratios of two renditions: the sizes of small ones are rounded to whole blocks.
const ASPECT: f64 = 0.1;
/// Largest ratio of the frame rates of two renditions: 60 and 7.5 frames per second.
const RATE: f64 = 8.0;
/// Largest differences between the durations of two renditions: in seconds, and as a share of the longer one.
const PICTURE_DURATION: (f64, f64) = (2.0, 0.02);
/// The same differences between two tracks of one file.
const TRACK_DURATION: (f64, f64) = (0.25, 0.001);
/// Number of frames whose times are compared.
const COMPARED: u64 = 32;
/// The same differences between audio and its video: audio may begin late, or end with the credits.
const SOUND_DURATION: (f64, f64) = (10.0, 0.1);

/// Properties that all renditions of one video share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VideoShape {
    /// Presented duration in seconds.
    pub seconds: f64,
    /// Width divided by height as displayed, rotation applied.
    pub aspect: f64,
    /// Frames per second.
    pub rate: f64,
}

/// Properties of a file's content that decide to which title the file belongs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// A video, with or without other tracks.
    Video(VideoShape),
    /// Audio of this many seconds, without a video.
    Sound(f64),
    /// Only text.
    Text,
}

/// The property by which a file or track differs from a rendition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Difference {
    /// Duration of a video in seconds.
    Duration {
        /// Value of the file.
        found: f64,
        /// Value of the other file.
        expected: f64,
    },
    /// Width divided by height.
    Aspect {
        /// Value of the file.
        found: f64,
        /// Value of the other file.
        expected: f64,
    },
    /// Frames per second.
    Rate {
        /// Value of the file.
        found: f64,
        /// Value of the other file.
        expected: f64,
    },
    /// Duration of audio in seconds.
    Sound {
        /// Value of the file.
        found: f64,
        /// Value of the video, or of the other audio.
        expected: f64,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Duration { found, expected } => write!(f, "it lasts {found:.1} s, not {expected:.1} s"),
            Self::Aspect { found, expected } => write!(f, "its aspect is {found:.2}:1, not {expected:.2}:1"),
            Self::Rate { found, expected } => write!(f, "it has {found:.2} frames per second, not {expected:.2}"),
            Self::Sound { found, expected } => write!(f, "its sound lasts {found:.1} s, not {expected:.1} s"),
        }
    }
}

impl VideoShape {
    /// Returns the shape of a video track.
    #[must_use]
    pub fn of(track: &Track, movie: &Movie) -> Option<Self> {
        let TrackKind::Video { orientation, .. } = track.kind else { return None };
        let (width, height) = display_size(track)?;
        let aspect = width.max(1.0) / height.max(1.0);
        let aspect = if orientation.is_sideways() { 1.0 / aspect } else { aspect };
        let media = media_seconds(track);
        let rate = f64::from(track.samples.len()) / media.max(1e-3);
        Some(Self { seconds: seconds(track, movie), aspect, rate })
    }

    /// Returns the difference that makes this video no rendition of `other`; `None` where it may be one.
    #[must_use]
    pub fn unlike(&self, other: &Self) -> Option<Difference> {
        if !near(self.seconds, other.seconds, PICTURE_DURATION) {
            return Some(Difference::Duration { found: self.seconds, expected: other.seconds });
        }
        let (most, least) = (self.aspect.max(other.aspect), self.aspect.min(other.aspect));
        if most > least * (1.0 + ASPECT) {
            return Some(Difference::Aspect { found: self.aspect, expected: other.aspect });
        }
        if self.rate > other.rate * RATE || other.rate > self.rate * RATE {
            return Some(Difference::Rate { found: self.rate, expected: other.rate });
        }
        None
    }

    fn frames(&self) -> f64 {
        self.seconds * self.rate
    }
}

impl Shape {
    /// Returns the shape of a file: its video with most frames, else its longest audio.
    #[must_use]
    pub fn of(movie: &Movie) -> Self {
        let pictures = movie.tracks.iter().filter_map(|track| VideoShape::of(track, movie));
        if let Some(picture) = pictures.max_by(|a, b| a.frames().total_cmp(&b.frames())) {
            return Self::Video(picture);
        }
        let sounds = movie.tracks.iter().filter(|track| matches!(track.kind, TrackKind::Audio { .. }));
        match sounds.map(|track| seconds(track, movie)).max_by(f64::total_cmp) {
            Some(seconds) => Self::Sound(seconds),
            None => Self::Text,
        }
    }
}

/// The reason why files are not one title.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found}")]
pub struct NotOneTitle {
    /// Two of the files, and their difference.
    pub found: String,
}

/// Returns for each file of a folder whose names suggest one title: the reason why it belongs to another title, or
/// `None`.
///
/// The title is the video that most files contain, or without video the audio that most contain. Other audio belongs to
/// it where its duration is similar.
///
/// # Errors
/// No shape has a majority, so the files of the folder may as well be two titles.
pub fn title(files: &[(&str, Shape)]) -> Result<Vec<Option<Difference>>, NotOneTitle> {
    let pictures: Vec<usize> = places(files, |shape| matches!(shape, Shape::Video(_)));
    let sounds: Vec<usize> = places(files, |shape| matches!(shape, Shape::Sound(_)));
    let voters = if pictures.is_empty() { &sounds } else { &pictures };
    let Some(model) = model(files, voters)? else { return Ok(vec![None; files.len()]) };
    Ok(files.iter().map(|(_, shape)| apart(shape, model)).collect())
}

fn places(files: &[(&str, Shape)], is: impl Fn(&Shape) -> bool) -> Vec<usize> {
    (0..files.len()).filter(|place| files.get(*place).is_some_and(|(_, shape)| is(shape))).collect()
}

/// Returns the file that most of the `voters` resemble. Files are few: a folder of more than 256 is no title.
fn model<'a>(files: &'a [(&str, Shape)], voters: &[usize]) -> Result<Option<&'a Shape>, NotOneTitle> {
    let shape = |place: &usize| files.get(*place).map(|(_, shape)| shape);
    let alike = |a: &usize| {
        let like = |b: &&usize| shape(a).zip(shape(b)).is_some_and(|(a, b)| apart(b, a).is_none());
        voters.iter().filter(like).count()
    };
    let Some(best) = voters.iter().rev().max_by_key(|place| alike(place)) else { return Ok(None) };
    let Some(model) = shape(best) else { return Ok(None) };
    if alike(best) * 2 > voters.len() {
        return Ok(Some(model));
    }
    let other = voters.iter().find_map(|place| Some((place, apart(shape(place)?, model)?)));
    let name = |place: &usize| files.get(*place).map_or("", |(name, _)| *name);
    let found = other.map_or_else(String::new, |(place, why)| format!("{} beside {}: {why}", name(place), name(best)));
    Err(NotOneTitle { found })
}

/// Returns the reason why a file does not belong to the title of `model`.
fn apart(shape: &Shape, model: &Shape) -> Option<Difference> {
    let sound = |found: f64, expected: f64| {
        (!near(found, expected, SOUND_DURATION)).then_some(Difference::Sound { found, expected })
    };
    match (shape, model) {
        (Shape::Video(shape), Shape::Video(model)) => shape.unlike(model),
        (Shape::Sound(seconds), Shape::Video(VideoShape { seconds: title, .. }) | Shape::Sound(title)) => {
            sound(*seconds, *title)
        }
        _ => None,
    }
}

/// A picture track of a file with several.
#[derive(Clone, Copy)]
pub(crate) struct Picture<'a> {
    pub(crate) track: &'a Track,
    pub(crate) shape: Option<VideoShape>,
}

impl<'a> Picture<'a> {
    pub(crate) fn of(track: &'a Track, movie: &Movie) -> Self {
        Self { track, shape: VideoShape::of(track, movie) }
    }

    fn frames(&self) -> f64 {
        self.shape.map_or(0.0, |shape| shape.frames())
    }

    /// Whether this is the same film as `other` in another size. Two cameras have alike shapes too. So the header must state one
    /// group (ISO/IEC 14496-12 8.3.2). If it states no group, size and name must fit a rendition.
    fn is_rendition_of(&self, other: &Self) -> bool {
        let (Some(shape), Some(model)) = (self.shape, other.shape) else { return true };
        let times = || have_same_times(self.track, other.track);
        if shape.unlike(&model).is_some() || !near(shape.seconds, model.seconds, TRACK_DURATION) || !times() {
            return false;
        }
        match (self.track.alternate_group, other.track.alternate_group) {
            (0, 0) => {
                let (name, model) = (&self.track.name, &other.track.name);
                size(self.track) != size(other.track) && (name == model || name.is_none() || model.is_none())
            }
            (group, model) => group == model,
        }
    }
}

fn size(track: &Track) -> Option<(u16, u16)> {
    match track.kind {
        TrackKind::Video { width, height, .. } => Some((width, height)),
        _ => None,
    }
}

/// Whether the frames of one of two tracks have the times of frames of the other one, which may have several times as many.
/// Some are compared.
fn have_same_times(a: &Track, b: &Track) -> bool {
    let (few, many) = if a.samples.len() <= b.samples.len() { (a, b) } else { (b, a) };
    let (fewer, more) = (u64::from(few.samples.len()), u64::from(many.samples.len()));
    let ratio = (more + fewer / 2) / fewer.max(1);
    // A frame at the end may be missing.
    if fewer == 0 || (ratio * fewer).abs_diff(more) > 2 * ratio {
        return false;
    }
    let time = |track: &Track, index: u64| {
        let sample = track.samples.get(u32::try_from(index).ok()?)?;
        Some(track.timescale.seconds(sample.dts.saturating_sub(track.samples.start_dts())))
    };
    // Encoders differ in the order of frames.
    let frame = few.timescale.seconds(few.samples.end_dts().saturating_sub(few.samples.start_dts())) / fewer as f64;
    (0..COMPARED)
        .map(|place| place * (fewer - 1) / COMPARED)
        .all(|index| time(few, index).zip(time(many, index * ratio)).is_none_or(|(a, b)| (a - b).abs() <= 2.0 * frame))
}

/// Returns the ladder of each picture track of one file: 0 for the main ladder, other numbers for alternatives. `None` for tracks
/// that their header disables (ISO/IEC 14496-12 8.3.2). These are absent unless they are renditions of an enabled track.
///
/// The main picture is the enabled one of most frames. It is a disabled one where the enabled ones are mere stills.
pub(crate) fn ladders(pictures: &[Picture<'_>]) -> Vec<Option<u16>> {
    let most = |is: fn(&Picture<'_>) -> bool| {
        pictures.iter().filter(|picture| is(picture)).map(Picture::frames).fold(0.0, f64::max)
    };
    let most_enabled = most(|picture| picture.track.enabled);
    let is_first = |place: &usize| {
        pictures.get(*place).is_some_and(|picture| picture.track.enabled || picture.frames() > most_enabled * RATE)
    };
    let frames = |place: &usize| pictures.get(*place).map_or(0.0, Picture::frames);
    let mut order: Vec<usize> = (0..pictures.len()).collect();
    order.sort_by(|a, b| is_first(b).cmp(&is_first(a)).then(frames(b).total_cmp(&frames(a))));
    let mut models: Vec<&Picture<'_>> = Vec::new();
    let mut ladders = vec![None; pictures.len()];
    for place in order {
        let Some(picture) = pictures.get(place) else { continue };
        let known = models.iter().position(|model| picture.is_rendition_of(model));
        if known.is_none() && !models.is_empty() && !picture.track.enabled {
            continue;
        }
        let ladder = known.unwrap_or_else(|| {
            models.push(picture);
            models.len() - 1
        });
        if let Some(slot) = ladders.get_mut(place) {
            *slot = Some(u16::try_from(ladder).unwrap_or(u16::MAX));
        }
    }
    ladders
}

fn near(a: f64, b: f64, (seconds, share): (f64, f64)) -> bool {
    (a - b).abs() <= seconds.max(a.max(b) * share)
}

fn media_seconds(track: &Track) -> f64 {
    track.timescale.seconds(track.samples.end_dts().saturating_sub(track.samples.start_dts()))
}

/// Returns the duration that edits present, or that of all samples. An edit of length 0 lasts to the end.
fn seconds(track: &Track, movie: &Movie) -> f64 {
    let times = movie.times_of(track).and_then(|times| times.first().zip(times.last()));
    let media =
        times.map_or_else(|| media_seconds(track), |(start, end)| track.timescale.seconds(end.saturating_sub(*start)));
    let shown = track.edits.iter().filter(|edit| edit.media_time.is_some()).map(|edit| {
        let ticks = i64::try_from(edit.duration).unwrap_or(i64::MAX);
        if ticks == 0 { media } else { movie.timescale.seconds(ticks).min(media) }
    });
    if track.edits.is_empty() { media } else { shown.sum() }
}

#[cfg(test)]
mod tests {
    use super::*;

    use millpond_media::{Orientation, SampleTable};

    const fn film(seconds: f64, aspect: f64, rate: f64) -> Shape {
        Shape::Video(VideoShape { seconds, aspect, rate })
    }

    fn verdict(files: &[(&str, Shape)]) -> Result<Vec<bool>, String> {
        title(files).map(|verdicts| verdicts.iter().map(Option::is_none).collect()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_ladder_is_one_title_with_its_sounds() {
        let files = [
            ("240", film(600.0, 426.0 / 240.0, 25.0)),
            ("1080", film(600.04, 16.0 / 9.0, 50.0)),
            ("96", film(599.8, 160.0 / 96.0, 12.5)),
            ("de", Shape::Sound(598.0)),
            ("song", Shape::Sound(200.0)),
            ("text", Shape::Text),
        ];
        assert_eq!(verdict(&files).unwrap(), [true, true, true, true, false, true]);
        assert_eq!(title(&files).unwrap()[4].unwrap().to_string(), "its sound lasts 200.0 s, not 600.0 s");
    }

    #[test]
    fn the_odd_one_stands_alone_and_two_are_no_majority() {
        let (a, b) = (film(600.0, 1.78, 25.0), film(300.0, 1.78, 25.0));
        assert_eq!(verdict(&[("a", a), ("b", b), ("c", a)]).unwrap(), [true, false, true]);
        let error = verdict(&[("a", a), ("b", b)]).unwrap_err();
        assert_eq!(error, "b beside a: it lasts 300.0 s, not 600.0 s");
        assert!(verdict(&[("a", a), ("b", film(600.0, 0.5625, 25.0))]).unwrap_err().contains("aspect"));
        assert!(verdict(&[("a", a), ("b", film(600.0, 1.78, 0.56))]).unwrap_err().contains("frames per second"));
        assert!(verdict(&[("a", Shape::Sound(200.0)), ("b", Shape::Sound(300.0))]).is_err());
        assert_eq!(verdict(&[("a", Shape::Text)]).unwrap(), [true]);
        assert_eq!(verdict(&[]).unwrap(), [true; 0]);
    }

    /// A picture track of frames that last a number of ticks, at 1000 ticks a second.
    fn picture(frames: u32, ticks: u32, width: u16, height: u16) -> Track {
        let mut samples = SampleTable::builder();
        (0..frames).for_each(|frame| samples.push(u64::from(frame), 1, ticks, 0, frame % 25 == 0));
        let kind = TrackKind::Video { width, height, orientation: Orientation::UPRIGHT, pixel_aspect: (1, 1) };
        Track { kind, ..crate::testing::video(samples.finish(), 1000, Vec::new()) }
    }

    fn of(tracks: &[Track]) -> Vec<Option<u16>> {
        let movie = crate::testing::movie(tracks.to_vec());
        ladders(&tracks.iter().map(|track| Picture::of(track, &movie)).collect::<Vec<_>>())
    }

    fn disabled(track: Track) -> Track {
        Track { enabled: false, ..track }
    }

    #[test]
    fn the_main_ladder_has_most_frames() {
        let still = || picture(2, 1750, 800, 600);
        let phone = [still(), picture(108, 33, 640, 480), picture(54, 66, 320, 240), picture(108, 33, 480, 640)];
        assert_eq!(of(&phone), [Some(2), Some(0), Some(0), Some(1)]);
        assert_eq!(of(&[still()]), [Some(0)]);
        // As ffmpeg writes it: the first track alone is enabled.
        assert_eq!(of(&[still(), disabled(picture(108, 33, 640, 480))]), [Some(1), Some(0)]);
    }

    #[test]
    fn a_ladder_of_one_file_stays_one_and_two_cameras_are_none() {
        let (front, small) = (|| picture(500, 40, 1280, 720), || picture(500, 40, 640, 360));
        assert_eq!(of(&[front(), disabled(small())]), [Some(0), Some(0)], "as ffmpeg writes a ladder");
        assert_eq!(of(&[small(), front()]), [Some(0), Some(0)]);
        assert_eq!(of(&[front(), picture(250, 80, 640, 360)]), [Some(0), Some(0)], "half the rate");
        // The same size, other times, other lengths, other groups, other names.
        assert_eq!(of(&[front(), front()]), [Some(0), Some(1)]);
        assert_eq!(of(&[front(), picture(470, 42, 640, 360)]), [Some(0), Some(1)]);
        assert_eq!(of(&[front(), picture(485, 40, 640, 360)]), [Some(0), Some(1)]);
        let group = |alternate_group, track: Track| Track { alternate_group, ..track };
        assert_eq!(of(&[group(1, front()), group(2, small())]), [Some(0), Some(1)]);
        assert_eq!(of(&[group(1, front()), small()]), [Some(0), Some(1)]);
        assert_eq!(of(&[group(1, front()), group(1, front())]), [Some(0), Some(0)], "the header says so");
        let named = |name: &str, track: Track| Track { name: Some(name.into()), ..track };
        assert_eq!(of(&[named("Front", front()), named("Rear", small())]), [Some(0), Some(1)]);
    }

    #[test]
    fn a_disabled_picture_is_absent_unless_nothing_else_is_there() {
        let (front, rear) = (|| picture(500, 40, 1280, 720), || picture(520, 38, 1280, 720));
        assert_eq!(of(&[front(), disabled(rear())]), [Some(0), None]);
        assert_eq!(of(&[disabled(rear()), front()]), [None, Some(0)]);
        assert_eq!(of(&[disabled(front())]), [Some(0)]);
        assert_eq!(of(&[disabled(front()), disabled(picture(300, 40, 1280, 720))]), [Some(0), None]);
    }
}
