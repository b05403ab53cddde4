//! Opens the past of a live stream for a subscriber.

use super::{DEPTH, Opening};
use crate::{
    Feed,
    cannot_open::CannotOpen,
    graph::{Module as _, Output, pipe, start},
    live::{Begun, PastFeed, PastReader, PastStart, Program},
    manager::{
        Subscriber,
        opened::{Opened, Played, PlayedPart, Playing, Source},
    },
    modules::PastLoader,
    transmission::{self, Epochs, Lateness, TrackSender, Transmission},
};
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;

/// Longest wait for the first frame.
const PATIENCE: Duration = Duration::from_secs(10);

impl Opening<'_> {
    /// Opens the past of a live stream, up to a wall time.
    pub(super) async fn open_past(
        self,
        subscriber: &mut Subscriber,
        program: &Program,
        (from, to): (PastStart, Option<Duration>),
        speed: f64,
    ) -> Result<Opened, CannotOpen> {
        let feed = Arc::new(PastFeed::new(program.feed.clone()));
        let (reader, begun) = self.read_past(subscriber, &feed, (&from, to)).await?;
        let (id, transmitter) = (subscriber.id, subscriber.transmitter.clone());
        let look = {
            let transmitter = transmitter.clone();
            Box::new(move || transmitter.look(id))
        };
        let module = Box::new(PastLoader::new(reader, look));
        let label = format!("{} {id:x}", program.path());
        let (reading, sending) =
            (self.registry.add(module.kind(), &label), self.registry.add(transmission::KIND.name, &label));
        let (writer, frames) = pipe(self.registry, reading.id(), sending.id(), DEPTH);
        let module = start(module, reading, (Vec::new(), Output::Pipe(writer)), program.path());
        let beginning = |sender: &TrackSender| {
            let name = program.feed.format(sender.track).map(|format| format.name.clone()).unwrap_or_default();
            (name, sender.sequence, sender.timestamp(begun.ticks(sender.timescale)))
        };
        let tracks = subscriber.tracks.iter().map(beginning).collect();
        let played = Played { part: PlayedPart::Wall(begun.wall, to), scale: 1.0, speed, tracks };
        let transmission = Transmission {
            id,
            tracks: subscriber.tracks.clone(),
            pace: subscriber.pace(),
            frames,
            position: begun.due,
            to: Duration::MAX,
            speed,
            catch_up: None,
            lateness: Lateness::All,
            origin: None,
            arrival: None,
            epochs: Some(Epochs::new(feed.clone())),
            progress: subscriber.progress.clone(),
            _node: sending,
        };
        let begins = match from {
            PastStart::At(_) => PastStart::At(begun.wall),
            next @ PastStart::Next(_) => next,
        };
        let source = Source::Past { _module: module, feed, begins };
        let playing = Playing { id, transmitter, source: Some(source) };
        Ok(Opened { played, transmission: Some(transmission), playing })
    }

    /// Books bandwidth, reads up to the first frame, and sets the tracks to it.
    async fn read_past(
        self,
        subscriber: &mut Subscriber,
        feed: &Arc<PastFeed>,
        (from, to): (&PastStart, Option<Duration>),
    ) -> Result<(PastReader, Begun), CannotOpen> {
        let window = self.windows.with_past(feed.path()).ok_or(CannotOpen::Ended)?;
        if subscriber.booking.is_none() {
            let rate = (&**feed as &dyn Feed).rate(subscriber.tracks.iter().map(|sender| sender.track));
            subscriber.booking = Some(self.admission.book(rate, None)?);
        }
        let (windows, holds) = (self.windows.clone(), self.resources.reader.holds.clone());
        let tracks = subscriber.tracks.iter().map(|sender| (sender.track, sender.next));
        let mut reader = PastReader::new((windows, window), feed.clone(), holds, tracks, to);
        let begun = timeout(PATIENCE, reader.begin(from)).await.unwrap_or(Err(CannotOpen::Ended))?;
        for sender in &mut subscriber.tracks {
            sender.passed = None;
            if begun.is_new {
                sender.begin(sender.next, begun.at.as_secs_f64());
            }
        }
        Ok((reader, begun))
    }
}
