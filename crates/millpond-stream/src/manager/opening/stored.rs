//! Opens a part of a stored title.

use super::{
    DEPTH, Opening,
    seek::{beginnings, cursors, first_due, seek},
};
use crate::{
    cannot_open::CannotOpen,
    graph::{Module, Output, pipe, start},
    manager::{
        Phases, Start, Subscriber,
        opened::{Opened, Played, PlayedPart, Playing, Source},
    },
    modules::{KeyFrameLoader, KeyFrames, Loader},
    stored::StoredMedia,
    transmission::{self, Transmission},
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

impl Opening<'_> {
    /// Begins to load a title from a start, up to a time in seconds. With `phases` it is sent at `speed` only until the viewer has
    /// joined one of them.
    pub(super) fn open_stored(
        self,
        subscriber: &mut Subscriber,
        media: Arc<StoredMedia>,
        (begin, to): (Start, Option<f64>),
        (scale, speed): (f64, f64),
        phases: Option<Arc<Phases>>,
    ) -> Result<Opened, CannotOpen> {
        let duration = media.duration();
        let at = match begin {
            Start::At(at) => at,
            Start::Next(due) => due.as_secs_f64(),
        };
        let end = match to {
            Some(to) => to.min(duration),
            None if scale < 0.0 => 0.0,
            None => duration,
        };
        if at > duration || (scale > 0.0 && at >= end) || (scale < 0.0 && at <= end) {
            return Err(CannotOpen::OutOfRange);
        }
        let tracks = cursors(&subscriber.tracks).0;
        self.book(subscriber, &media, self.read_from(&media, &tracks, at))?;
        let keys = (scale != 1.0).then_some(KeyFrames { from: at, to: end, scale });
        let (from, position) = match (keys, begin) {
            (Some(_), _) => {
                // Key frames have numbers of their own.
                subscriber.tracks.iter_mut().for_each(|sender| sender.begin(0, at));
                (at, Duration::ZERO)
            }
            (None, Start::Next(due)) => (at, due),
            (None, Start::At(at)) => (seek(&media, &mut subscriber.tracks, at), first_due(&media, &subscriber.tracks)),
        };
        let catch_up = phases.as_ref().filter(|_| speed > 1.0);
        let catch_up = catch_up.and_then(|phases| phases.broadcast.catch_up(position, Instant::now()));
        // A viewer that has joined plays at the pace of the phase.
        let speed = if phases.is_some() && catch_up.is_none() { 1.0 } else { speed };
        let until = to.filter(|_| keys.is_none()).map_or(Duration::MAX, Duration::from_secs_f64);
        let (id, transmitter) = (subscriber.id, subscriber.transmitter.clone());
        let look = {
            let transmitter = transmitter.clone();
            Box::new(move || transmitter.look(id))
        };
        let module: Box<dyn Module> = match (keys, subscriber.video(&media)) {
            (Some(keys), Some(track)) => {
                Box::new(KeyFrameLoader::new(self.resources, media.clone(), (track, keys), look))
            }
            _ => {
                let (cursors, part) = (cursors(&subscriber.tracks), (position, until));
                let loader = Loader::new(self.resources, media.clone(), cursors, part, Some(look));
                Box::new(loader.waits(self.options.start_wait, speed))
            }
        };
        let label = format!("{} {id:x}", media.path());
        let (loading, sending) =
            (self.registry.add(module.kind(), &label), self.registry.add(transmission::KIND.name, &label));
        let (writer, frames) = pipe(self.registry, loading.id(), sending.id(), DEPTH);
        let module = start(module, loading, (Vec::new(), Output::Pipe(writer)), media.path());
        let transmission = Transmission {
            id,
            tracks: subscriber.tracks.clone(),
            pace: subscriber.pace(),
            frames,
            position,
            to: until,
            speed,
            catch_up,
            lateness: self.options.lateness,
            origin: self.origin_of(&media),
            arrival: None,
            epochs: None,
            progress: subscriber.progress.clone(),
            _node: sending,
        };
        let tracks = beginnings(&media, &subscriber.tracks, from);
        let played = Played { part: PlayedPart::Title(from, end), scale, speed, tracks };
        let source = Source::Loader { _module: module, keys, end: Duration::from_secs_f64(duration), _phases: phases };
        let playing = Playing { id, transmitter, source: Some(source) };
        Ok(Opened { played, transmission: Some(transmission), playing })
    }
}
