//! Loads the frames of a session: reads ahead of what is due through the store, a block at a time.

use super::{
    block::{Gathered, Lanes, LoadError},
    intervals::Seat,
    keys::Keys,
    media::Media,
};
use crate::library::Asset;
use millpond_graph::Inlet;
use millpond_media::Work;
use millpond_store::{Store, Watch, schedule::Course};
use std::{sync::Arc, time::Duration};

/// Where a session's frames come from.
pub(super) struct Loader {
    pub(super) media: Media,
    pub(super) asset: Arc<Asset>,
    /// Its tracks in the presentation, and the next sample of each.
    pub(super) tracks: Arc<[u16]>,
    pub(super) next: Vec<u32>,
    /// What is due later is not loaded.
    pub(super) to: Duration,
    pub(super) seat: Seat,
}

impl Loader {
    /// Puts frames into a pipe in the order in which they are due, up to the end. Ends where the pipe is given up. `first`
    /// is called when the first ones are in it.
    ///
    /// # Errors
    /// What the origin says; frames that can't be sent, however it is tried.
    pub(super) async fn run(self, inlet: &Inlet, first: impl FnOnce()) -> Result<(), LoadError> {
        let Self { media, asset, tracks, mut next, to, mut seat } = self;
        for object in &asset.objects {
            media.store.prepare(object).await?;
        }
        let cut = seat.cut();
        let mut lanes = Lanes::new(&asset, cut, &tracks, &next);
        let mut watches = Vec::new();
        let mut first = Some(first);
        let mut following = lanes.following();
        // Blocks are the same for all from where the first one ends, or from the very beginning.
        let mut is_shared = next.iter().all(|next| *next == 0);
        while let Some(number) = following.filter(|number| cut.begin_of(*number) < to) {
            let Ok(room) = inlet.room().await else { return Ok(()) };
            let mut read = async |lanes: &mut Lanes<'_>| {
                let gathered = lanes.gather(number)?;
                follow(&media.store, &asset, &gathered, &mut watches);
                Ok::<_, LoadError>(gathered.read(&media, &asset).await?)
            };
            let block = if is_shared {
                let load = async || {
                    if lanes.next() != next {
                        lanes = Lanes::new(&asset, cut, &tracks, &next);
                    }
                    read(&mut lanes).await
                };
                seat.take(number, load).await?
            } else {
                Arc::new(read(&mut lanes).await?)
            };
            is_shared = true;
            next.clone_from(&block.next);
            following = block.following;
            room.put(block.frames.clone());
            if let Some(first) = first.take() {
                first();
            }
        }
        Ok(())
    }
}

/// Loads key frames on a way through them, one by one.
pub(super) async fn load_keys(
    media: &Media,
    asset: &Arc<Asset>,
    (track, keys): (u16, Keys),
    inlet: &Inlet,
    first: impl FnOnce(),
) -> Result<(), LoadError> {
    let Some(presented) = asset.presentation.tracks().get(usize::from(track)) else { return Ok(()) };
    let (Some(source), Some(object)) = (presented.source_track(), presented.object()) else { return Ok(()) };
    let list = {
        let asset = asset.clone();
        move || asset.presentation.tracks().get(usize::from(track)).map(|track| keys.of(track)).unwrap_or_default()
    };
    let listed = media.pool.run(&Work::unlimited(), list).await?;
    let mut first = Some(first);
    for (number, key) in (0..).zip(listed) {
        let Ok(room) = inlet.room().await else { return Ok(()) };
        let shown = keys.shown(key.due, source.timescale.get());
        let gathered = Gathered::key(track, number, shown, &key, object);
        room.put(gathered.read(media, asset).await?.frames);
        if let Some(first) = first.take() {
            first();
        }
    }
    Ok(())
}

/// Tells the scheduler where the session is in each object, that what follows comes in time.
fn follow(store: &Store, asset: &Asset, gathered: &Gathered, watches: &mut Vec<Watch>) {
    for (place, span) in &gathered.spans {
        let Some(object) = asset.objects.get(usize::from(place.0)).filter(|object| object.file().is_none()) else {
            continue;
        };
        let rate = object.meta().len as f64 / asset.presentation.duration().max(0.001);
        let course = Course::constant(span.start, object.meta().len, rate);
        match watches.iter().find(|watch| Arc::ptr_eq(watch.object(), object)) {
            Some(watch) => watch.moves(course, span.end),
            None => {
                let watch = store.watch(object);
                watch.moves(course, span.end);
                watches.push(watch);
            }
        }
    }
}
