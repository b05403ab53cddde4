//! Streams whose tracks are pushed each on its own (DASH-IF live media ingest 6, CMAF).

use millpond_stream::{LiveRequest, Publication, PublishRefused};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

/// Most tracks of a stream.
const MOST_TRACKS: usize = 8;
/// Component before the name of a track, which follows in parentheses.
const STREAMS: &str = "/Streams(";

/// A path that names a track of a stream: `STREAM/Streams(TRACK)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SplitName<'a> {
    pub(super) stream: &'a str,
    pub(super) track: &'a str,
}

impl<'a> SplitName<'a> {
    /// Reads a path; `None` where it names no track.
    pub(super) fn parse(path: &'a str) -> Option<Self> {
        let (stream, track) = path.trim_end_matches('/').strip_suffix(')')?.split_once(STREAMS)?;
        (!track.is_empty() && !track.contains('/')).then_some(Self { stream, track })
    }
}

/// Streams whose tracks are being pushed, by their paths.
#[derive(Debug, Default)]
pub(in crate::http::answer) struct Splits {
    /// A lock: taken when a request begins, and while a stream is opened for its first track.
    by_path: Mutex<HashMap<Arc<str>, Weak<Split>>>,
}

#[derive(Debug)]
struct Split {
    publication: Publication,
    /// The names of its tracks, and whether a request pushes them. Their places are the channels.
    /// A lock: taken for a look-up.
    tracks: Mutex<Vec<(String, bool)>>,
}

/// A request to push a track.
#[derive(Debug)]
pub(super) enum Joined {
    Slot(Slot),
    /// Another request pushes the track.
    Taken,
    /// There are so many tracks already.
    TooMany(usize),
}

/// A track that a request pushes. It is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    split: Arc<Split>,
    place: usize,
}

impl Splits {
    /// Joins the stream of a track. `publish` begins it, where no other track has, or its publication has ended.
    pub(super) fn join(
        &self,
        stream: LiveRequest,
        track: &str,
        publish: impl FnOnce(LiveRequest) -> Result<Publication, PublishRefused>,
    ) -> Result<Joined, PublishRefused> {
        let mut by_path = self.by_path.lock().unwrap_or_else(PoisonError::into_inner);
        let known = by_path.get(&stream.path).and_then(Weak::upgrade);
        let split = match known.filter(|split| split.publication.ended().is_none()) {
            Some(split) => split,
            None => {
                by_path.retain(|_, split| split.strong_count() > 0);
                let path = stream.path.clone();
                let split = Arc::new(Split { publication: publish(stream)?, tracks: Mutex::default() });
                by_path.insert(path, Arc::downgrade(&split));
                split
            }
        };
        drop(by_path);
        Ok(split.join(track))
    }
}

impl Split {
    fn tracks(&self) -> MutexGuard<'_, Vec<(String, bool)>> {
        self.tracks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn join(self: Arc<Self>, track: &str) -> Joined {
        let mut tracks = self.tracks();
        let place = match tracks.iter().position(|(name, _)| name == track) {
            Some(place) if tracks[place].1 => return Joined::Taken,
            Some(place) => place,
            None if tracks.len() == MOST_TRACKS => return Joined::TooMany(MOST_TRACKS),
            None => {
                tracks.push((track.to_owned(), false));
                tracks.len() - 1
            }
        };
        tracks[place].1 = true;
        drop(tracks);
        Joined::Slot(Slot { split: self, place })
    }
}

impl Slot {
    pub(super) fn publication(&self) -> &Publication {
        &self.split.publication
    }

    pub(super) fn channel(&self) -> u8 {
        self.place as u8
    }

    /// Frees the track, and keeps the stream for the next request for so long.
    pub(super) fn leave(self, patience: Duration) {
        let split = self.split.clone();
        drop(self);
        tokio::spawn(async move {
            tokio::time::sleep(patience).await;
            drop(split);
        });
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some((_, is_taken)) = self.split.tracks().get_mut(self.place) {
            *is_taken = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_tracks() {
        let parsed = |path| SplitName::parse(path).map(|name| (name.stream, name.track));
        assert_eq!(parsed("/live/cam/Streams(video.cmfv)"), Some(("/live/cam", "video.cmfv")));
        assert_eq!(parsed("/live/cam/Streams(a)/"), Some(("/live/cam", "a")));
        for path in ["/live/cam", "/live/cam/Streams()", "/live/cam/Streams(a", "/live/cam/Streams(a/b)", "/live/(a)"] {
            assert_eq!(parsed(path), None, "{path}");
        }
    }
}
