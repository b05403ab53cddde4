//! Opens a part of a stored title of an RTSP server.

use super::{DEPTH, Opening};
use crate::{
    Feed,
    cannot_open::CannotOpen,
    graph::{Module as _, Output, pipe, start},
    manager::{
        Start, Subscriber,
        opened::{Opened, Played, PlayedPart, Playing, Source},
    },
    modules::TitleLoader,
    remote::{RemoteTitle, TitleReader},
    transmission::{self, Lateness, TrackSender, Transmission},
};
use std::{sync::Arc, time::Duration};

impl Opening<'_> {
    /// Begins to read a title from a start, up to a time in seconds.
    pub(super) async fn open_remote(
        self,
        subscriber: &mut Subscriber,
        title: Arc<RemoteTitle>,
        (begin, to): (Start, Option<f64>),
        speed: f64,
    ) -> Result<Opened, CannotOpen> {
        let length = title.length();
        let seconds = |seconds: f64| Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
        let at = match begin {
            Start::At(at) => seconds(at),
            Start::Next(due) => due,
        };
        let end = to.map_or(length, |to| seconds(to).min(length));
        if at > length || at >= end {
            return Err(CannotOpen::OutOfRange);
        }
        if subscriber.booking.is_none() {
            let feed: &dyn Feed = &*title;
            let rate = feed.rate(subscriber.tracks.iter().map(|sender| sender.track));
            subscriber.booking = Some(self.admission.book(rate, None)?);
        }
        let tracks: Vec<_> = subscriber.tracks.iter().map(|sender| (sender.track, sender.next)).collect();
        let mut reader = TitleReader::new(title.clone(), self.resources.reader.store.clone(), tracks);
        let (from, position) = match begin {
            Start::Next(due) => {
                reader.go_on(due);
                (due, due)
            }
            Start::At(_) => {
                let begins = reader.seek(at).await.map_err(|error| {
                    tracing::warn!(title = title.path(), %error, "a stored title can't be played");
                    // It may have been found to be shorter than its description says.
                    if at >= title.length() { CannotOpen::OutOfRange } else { CannotOpen::Ended }
                })?;
                let begin = |sender: &mut TrackSender| sender.begin(sender.next, begins.at.as_secs_f64());
                subscriber.tracks.iter_mut().for_each(begin);
                (begins.at, begins.due)
            }
        };
        let (id, transmitter) = (subscriber.id, subscriber.transmitter.clone());
        let look = {
            let transmitter = transmitter.clone();
            Box::new(move || transmitter.look(id))
        };
        let module = Box::new(TitleLoader::new(reader, look));
        let label = format!("{} {id:x}", title.path());
        let (loading, sending) =
            (self.registry.add(module.kind(), &label), self.registry.add(transmission::KIND.name, &label));
        let (writer, frames) = pipe(self.registry, loading.id(), sending.id(), DEPTH);
        let module = start(module, loading, (Vec::new(), Output::Pipe(writer)), title.path());
        let beginning = |sender: &TrackSender| {
            let feed: &dyn Feed = &*title;
            let name = feed.format(sender.track).map(|format| format.name.clone()).unwrap_or_default();
            let ticks = crate::frame::ticks(from, sender.timescale);
            (name, sender.sequence, sender.timestamp(ticks))
        };
        let tracks = subscriber.tracks.iter().map(beginning).collect();
        let part = PlayedPart::Title(from.as_secs_f64(), end.as_secs_f64());
        let transmission = Transmission {
            id,
            tracks: subscriber.tracks.clone(),
            pace: subscriber.pace(),
            frames,
            position,
            to: to.map_or(Duration::MAX, |_| end),
            speed,
            catch_up: None,
            lateness: Lateness::All,
            origin: None,
            arrival: None,
            epochs: None,
            progress: subscriber.progress.clone(),
            _node: sending,
        };
        let source = Source::Loader { _module: module, keys: None, end: length, _phases: None };
        let playing = Playing { id, transmitter, source: Some(source) };
        let played = Played { part, scale: 1.0, speed, tracks };
        Ok(Opened { played, transmission: Some(transmission), playing })
    }
}
