//! The modules of a clip in a live stream.

use super::Means;
use crate::{
    graph::{Fork, Module as _, Output, Running, pipe, start},
    modules::{ClipLoader, Loader, Splice},
    splice::Insertion,
    stored::StoredMedia,
};
use std::{sync::Arc, time::Duration};

/// Blocks of a clip that are loaded before its turn, beside the one that is being given.
const DEPTH: usize = 2;

/// The modules of an insertion. They stop when this is dropped.
#[derive(Debug)]
pub(super) struct SplicePart(#[expect(dead_code, reason = "keeps the module")] Running);

impl SplicePart {
    /// Starts the modules that give a clip to a stream when its turn comes. The loader ends with the splice.
    pub(super) fn start(means: &Means, insertion: &Arc<Insertion>, media: &Arc<StoredMedia>, fork: &Arc<Fork>) -> Self {
        let Means { registry, resources, .. } = means;
        let tracks = insertion.plan().tracks();
        let next = vec![0; tracks.len()];
        let all = (Duration::ZERO, Duration::MAX);
        let loader = Loader::new(resources, media.clone(), (tracks, next), all, None);
        let (loader, loaded) = ClipLoader::new(loader);
        let label = format!("{} {} {}", insertion.path(), media.path(), insertion.id());
        let (from, to) = (registry.add(loader.kind(), &label), registry.add(Splice::KIND.name, &label));
        let edge = registry.connect(to.id(), fork.id(), 0, Arc::default());
        let (writer, reader) = pipe(registry, from.id(), to.id(), DEPTH);
        let loader = start(Box::new(loader), from, (Vec::new(), Output::Pipe(writer)), media.path());
        let splice = Splice::new(insertion.clone(), loaded, (loader, edge));
        Self(start(Box::new(splice), to, (vec![reader], Output::Fork(fork.clone())), insertion.path()))
    }
}
