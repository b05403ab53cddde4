//! Channels, as a session watches them: by itself, or through the group that all receive.

use super::{CannotPlay, Played, Session, Source, State};
use crate::rtsp::channels::{Channels, Group, Program};
use millpond_graph::Gone;
use std::sync::Arc;

impl Session {
    /// The group that the session's channel is received from, where it can be, and the session receives nothing otherwise. `number`
    /// is that of a new one.
    pub(in crate::rtsp) fn group(&mut self, channels: &Channels, number: u64) -> Option<Arc<Group>> {
        if self.group.is_none() && self.tracks.is_empty() {
            self.group = channels.group(self.program.as_ref()?, &self.asset, (number, &self.transmitter));
        }
        self.group.clone()
    }

    /// Begins to show a channel, from its last key frame on.
    pub(super) async fn tune(
        &mut self,
        program: &Program,
        source: &Source<'_>,
        start: impl FnOnce(&Played),
    ) -> Result<(), CannotPlay> {
        if let Some(group) = &self.group {
            group.play(source).await?;
            self.state = State::Grouped;
            start(&Played { part: None, scale: 1.0, speed: 1.0, tracks: Vec::new() });
            return Ok(());
        }
        if self.share.is_none() {
            self.take_share(source, None)?;
        }
        let channel = source.channels.tune(&source.supplies(), program, &self.asset);
        let sending = source.graph.add("transmission", self.label());
        let joined = channel.join(sending.id(), &mut self.tracks).await;
        let (frames, position) = joined.map_err(|Gone| CannotPlay::Ended)?;
        let from = self.tracks.first().map_or(0.0, |sent| sent.start as f64 / f64::from(sent.timescale.max(1)));
        start(&Played { part: None, scale: 1.0, speed: 1.0, tracks: self.beginnings(from) });
        self.transmitter.play(self.stream(frames, position, sending));
        self.state = State::Tuned(channel);
        Ok(())
    }
}
