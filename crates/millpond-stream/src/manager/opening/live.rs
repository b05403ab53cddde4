//! Opens a channel or live stream, and a multicast group of one.

use super::Opening;
use crate::{
    cannot_open::CannotOpen,
    graph::{Closed, Joined},
    live::Program,
    manager::{
        Group, Subscriber,
        opened::{Opened, Played, PlayedPart, Playing, Source},
    },
    transmission::{self, Arrival, Epochs, Lateness, TrackSender, Transmission},
};
use std::{sync::Arc, time::Duration};

impl Opening<'_> {
    /// Opens a group for one more receiver.
    pub(in crate::manager) async fn open_group(self, group: &Arc<Group>) -> Result<Opened, CannotOpen> {
        group.play(self.admission, self.registry, self.options.viewer_limits()).await?;
        let played = Played { part: PlayedPart::Now, scale: 1.0, speed: 1.0, tracks: Vec::new() };
        let (id, transmitter) = (group.id(), group.transmitter().clone());
        let playing = Playing { id, transmitter, source: Some(Source::Group(group.clone())) };
        Ok(Opened { played, transmission: None, playing })
    }

    /// Adds a branch to the fork of a channel or live stream.
    pub(super) async fn open_channel(
        self,
        subscriber: &mut Subscriber,
        program: &Program,
    ) -> Result<Opened, CannotOpen> {
        if subscriber.booking.is_none() {
            let rate = program.feed.rate(subscriber.tracks.iter().map(|sender| sender.track));
            subscriber.booking = Some(self.admission.book(rate, None)?);
        }
        let shared = program.shared.clone();
        let (id, transmitter) = (subscriber.id, subscriber.transmitter.clone());
        let node = self.registry.add(transmission::KIND.name, format!("{} {id:x}", program.feed.path()));
        let listener = transmitter.listener();
        let way = (node.id(), Some(&listener), self.options.viewer_limits());
        subscriber.tracks.iter_mut().for_each(|sender| sender.passed = None);
        let joined = shared.join(way, &program.feed).await.map_err(|Closed| CannotOpen::Ended)?;
        for sender in &mut subscriber.tracks {
            sender.begin(joined.first_of(sender.track), joined.from);
        }
        let Joined { frames, begins, span, feed, .. } = joined;
        let from = |sender: &TrackSender| {
            let name = program.feed.format(sender.track).map(|format| format.name.clone()).unwrap_or_default();
            (name, sender.sequence, sender.timestamp(sender.start))
        };
        let tracks = subscriber.tracks.iter().map(from).collect();
        let transmission = Transmission {
            id,
            tracks: subscriber.tracks.clone(),
            pace: subscriber.pace(),
            frames,
            position: begins,
            to: Duration::MAX,
            speed: 1.0,
            catch_up: None,
            lateness: Lateness::All,
            origin: None,
            arrival: Some(Arrival::new(shared.id(), span)),
            epochs: Some(Epochs::new(feed.clone())),
            progress: subscriber.progress.clone(),
            _node: node,
        };
        let played = Played { part: PlayedPart::Now, scale: 1.0, speed: 1.0, tracks };
        let live = Some((feed.clone(), self.windows.clone()));
        let playing = Playing { id, transmitter, source: Some(Source::Shared { shared, live }) };
        Ok(Opened { played, transmission: Some(transmission), playing })
    }
}
