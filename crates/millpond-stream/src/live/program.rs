//! Channels and live streams as viewers ask for them.

use super::LiveFeed;
use crate::{
    Feed, Format,
    fragmenter::{FragmentLimits, Fragmenter},
    graph::{LiveMemory, Shared},
    transport_stream::TransportStream,
};
use std::{sync::Arc, time::Duration};

/// A channel as it is asked for, whether it runs or not.
#[derive(Clone, Debug)]
pub struct Program {
    pub(crate) feed: Arc<dyn Feed>,
    pub(crate) tracks: Arc<[u16]>,
    /// The graph.
    pub(crate) shared: Arc<Shared>,
}

impl Program {
    /// All tracks of a live feed. The stream stays open while this exists.
    #[must_use]
    pub fn live(feed: &Arc<LiveFeed>) -> Self {
        let tracks = (0..).zip(feed.formats()).filter(|(_, format)| format.is_some()).map(|(track, _)| track).collect();
        Self { feed: feed.clone(), tracks, shared: feed.shared().clone() }
    }

    /// Whether a track of the feed is one of it.
    pub fn has(&self, track: usize) -> bool {
        self.tracks.iter().any(|known| usize::from(*known) == track)
    }

    /// Returns the feed that its frames come from.
    pub fn feed(&self) -> &dyn Feed {
        &*self.feed
    }

    /// Returns the same, for modules that keep it.
    #[must_use]
    pub fn shared_feed(&self) -> Arc<dyn Feed> {
        self.feed.clone()
    }

    /// Path of its asset.
    pub fn path(&self) -> &str {
        self.feed.path()
    }

    /// Its tracks, by their indexes in the feed.
    pub fn formats(&self) -> impl Iterator<Item = (u16, &Format)> {
        self.tracks.iter().filter_map(|track| Some((*track, self.feed.format(*track)?)))
    }

    /// The memory of its live stream; `None` for a channel.
    pub(crate) fn memory(&self) -> Option<&LiveMemory> {
        self.shared.memory()
    }

    /// The track with whose key frames viewers begin: the first video track, else the first track.
    pub fn lead(&self) -> u16 {
        let video = self.formats().find(|(_, format)| format.is_video()).map(|(track, _)| track);
        video.or(self.tracks.first().copied()).unwrap_or(0)
    }

    /// Makes a fragmenter of its frames. `None` where fragmented MP4 can't carry the leading track.
    #[must_use]
    pub fn fragmenter(&self, limits: FragmentLimits) -> Option<Fragmenter> {
        Some(Fragmenter::new(self.formats(), self.lead(), limits)?.with_clean_holes())
    }

    /// Makes a transport stream of its frames. `None` where it can't carry the leading track.
    #[must_use]
    pub fn transport_stream(&self) -> Option<TransportStream> {
        TransportStream::new(self.formats(), self.lead())
    }

    /// Tells whether frames of an epoch fit the sample entries and timescales of its formats.
    #[must_use]
    pub fn fits(&self, epoch: u32) -> bool {
        let Some(epoch) = self.feed.epoch(epoch) else { return true };
        let of = |track: u16| epoch.formats.get(usize::from(track))?.as_ref();
        // Subtitles come and go.
        self.formats().filter(|(_, known)| !known.is_private_text()).all(|(track, known)| {
            let is_same = |new: &Format| {
                new.track.sample_entry == known.track.sample_entry && new.timescale() == known.timescale()
            };
            of(track).is_some_and(is_same)
        })
    }

    /// The formats of its tracks in an epoch, without those that have no frames there and subtitles as they are; `None` where the epoch is
    /// unknown.
    pub(crate) fn formats_of(&self, epoch: u32) -> Option<Vec<(u16, Format)>> {
        let epoch = self.feed.epoch(epoch)?;
        let of = |(track, _): (u16, &Format)| Some((track, epoch.formats.get(usize::from(track))?.clone()?));
        Some(self.formats().filter(|(_, format)| !format.is_private_text()).filter_map(of).collect())
    }

    /// Bits a second of its tracks.
    pub(crate) fn rate(&self) -> u64 {
        self.feed.rate(self.tracks.iter().copied())
    }

    /// Differs from that of any program with other frames. All programs of a run have the same.
    pub(crate) fn key(&self) -> u64 {
        self.feed.id()
    }

    /// Time that its graph is kept for after its last viewer.
    pub(crate) fn linger(&self) -> Duration {
        self.shared.linger()
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.feed.id() == other.feed.id() && self.tracks == other.tracks
    }
}
