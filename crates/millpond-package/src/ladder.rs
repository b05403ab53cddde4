//! Decides which videos are renditions of each other, so that players may switch between them, and which files are one
//! title.

use crate::track::display_size;
use millpond_media::movie::{Movie, Track, TrackKind};
use std::fmt;

/// Largest difference between the aspect ratios of two renditions: the sizes of small ones are rounded to whole blocks.
const ASPECT: f64 = 0.1;
/// Largest ratio of the frame rates of two renditions: 60 and 7.5 frames per second.
const RATE: f64 = 8.0;
/// Largest differences between the durations of two renditions: in seconds, and as a share of the longer one.
const PICTURE_DURATION: (f64, f64) = (2.0, 0.02);
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

/// Content of a file, as far as it decides to which title the file belongs.
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
        let TrackKind::Video { rotation, .. } = track.kind else { return None };
        let (width, height) = display_size(track)?;
        let aspect = width.max(1.0) / height.max(1.0);
        let aspect = if rotation % 180 == 90 { 1.0 / aspect } else { aspect };
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

/// Returns the ladder of each video track of one file: 0 for the main one, with the track of most frames, others for
/// alternatives.
pub(crate) fn ladders(pictures: &[Option<VideoShape>]) -> Vec<u16> {
    let frames = |place: &usize| pictures.get(*place).copied().flatten().map_or(0.0, |picture| picture.frames());
    let mut order: Vec<usize> = (0..pictures.len()).collect();
    order.sort_by(|a, b| frames(b).total_cmp(&frames(a)));
    let mut models: Vec<VideoShape> = Vec::new();
    let mut ladders = vec![0; pictures.len()];
    for place in order {
        let Some(picture) = pictures.get(place).copied().flatten() else { continue };
        let known = models.iter().position(|model| picture.unlike(model).is_none());
        let ladder = known.unwrap_or_else(|| {
            models.push(picture);
            models.len() - 1
        });
        if let Some(slot) = ladders.get_mut(place) {
            *slot = u16::try_from(ladder).unwrap_or(u16::MAX);
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
    let media = media_seconds(track);
    let shown = track.edits.iter().filter(|edit| edit.media_time.is_some()).map(|edit| {
        let ticks = i64::try_from(edit.duration).unwrap_or(i64::MAX);
        if ticks == 0 { media } else { movie.timescale.seconds(ticks).min(media) }
    });
    if track.edits.is_empty() { media } else { shown.sum() }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn the_main_ladder_has_most_frames() {
        let picture = |seconds, aspect, rate| Some(VideoShape { seconds, aspect, rate });
        let still = picture(3.5, 4.0 / 3.0, 0.56);
        let phone = [still, picture(3.6, 4.0 / 3.0, 30.0), picture(3.6, 4.0 / 3.0, 15.0), picture(3.6, 0.75, 30.0)];
        assert_eq!(ladders(&phone), [2, 0, 0, 1]);
        assert_eq!(ladders(&[still]), [0]);
        assert_eq!(ladders(&[None, still]), [0, 0]);
    }
}
