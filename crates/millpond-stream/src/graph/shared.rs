//! A graph that many subscribers share: a feed, a channel that paces it, and a fork.

use super::{
    Branch, Closed, Fork, NodeId, Output, PipeReader, Registry,
    module::{Running, start},
    pipe::pipe,
};
use crate::{Feed, modules::Channel, resources::Resources, transmission::TrackSender};
use std::{sync::Arc, time::Duration};

/// Blocks between the feed and the channel, beside the one that the channel holds until it is due.
const DEPTH: usize = 1;
/// Longest wait of a subscriber for a key frame to begin with.
const PATIENCE: Duration = Duration::from_secs(10);

/// A graph that runs as long as somebody holds this.
#[derive(Debug)]
pub(crate) struct Shared {
    feed: Arc<dyn Feed>,
    fork: Arc<Fork>,
    _modules: [Running; 2],
}

impl Shared {
    /// Begins to play tracks of a feed. Branches begin with a key frame of `lead`.
    pub(super) fn start(
        registry: &Registry,
        resources: &Resources,
        feed: Arc<dyn Feed>,
        tracks: Arc<[u16]>,
        lead: u16,
    ) -> Self {
        let path = feed.path();
        let channel = Box::new(Channel::new(resources.counters.clone()));
        let source = feed.clone().endless(tracks, resources);
        let (from, to) = (registry.add(source.kind(), path), registry.add("channel", path));
        let (writer, reader) = pipe(registry, from.id(), to.id(), DEPTH);
        let fork = Arc::new(Fork::new(registry, &to, lead));
        let modules = [
            start(source, from, (Vec::new(), Output::Pipe(writer)), path),
            start(channel, to, (vec![reader], Output::Fork(fork.clone())), path),
        ];
        Self { feed, fork, _modules: modules }
    }

    /// Whether no more frames will come.
    pub(super) fn is_over(&self) -> bool {
        self.fork.is_closed()
    }

    /// Adds a branch to a module. Waits until there is a key frame.
    ///
    /// # Errors
    /// The graph has ended, or there is no key frame for long.
    pub(super) async fn branch(&self, to: NodeId) -> Result<Branch, Closed> {
        tokio::time::timeout(PATIENCE, self.fork.join(to)).await.unwrap_or(Err(Closed))
    }

    /// Adds a branch for a subscriber's tracks, which are set to the key frame that it begins with. Returns the frames and the
    /// due time at which playing begins. Waits until there is a key frame.
    ///
    /// # Errors
    /// The graph has ended, or there is no key frame for long.
    pub(super) async fn join(&self, to: NodeId, tracks: &mut [TrackSender]) -> Result<(PipeReader, Duration), Closed> {
        let Branch { reader, first, runs } = self.branch(to).await?;
        let lead = self.fork.lead();
        let key = first.iter().find(|frame| frame.track == lead && frame.is_sync).ok_or(Closed)?;
        let timescale = self.feed.format(lead).map_or(1, |format| format.timescale().max(1));
        let from = key.pts as f64 / f64::from(timescale);
        for sender in tracks {
            let of_track = || first.iter().filter(|frame| frame.track == sender.track);
            let next = of_track().find(|frame| frame.due >= key.due).map(|frame| frame.number);
            let next = next.or_else(|| Some(of_track().last()?.number.wrapping_add(1)));
            sender.begin(next.unwrap_or(0), from);
        }
        // With no other run in the pipe it begins where the block does, not ahead of the next one.
        let begins = first.first().filter(|_| runs == 1).map_or(key.due, |frame| frame.due);
        Ok((reader, begins))
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.fork.close();
    }
}
