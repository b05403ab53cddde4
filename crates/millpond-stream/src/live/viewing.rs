//! Viewers that take the frames of a channel or live stream themselves, without a transmission.

use super::Program;
use crate::{
    Run,
    cannot_open::CannotOpen,
    graph::{Closed, PipeReader, QueueLimits, SessionFeed},
    kind::ModuleKind,
    lead::Tempo,
    registry::{NodeGuard, Registry},
};
use std::{sync::Arc, time::Instant};

/// How readers are told among modules.
pub(crate) const KIND: ModuleKind = ModuleKind {
    name: "viewing",
    about: "gives frames to a viewer that takes them as one long response",
    inputs: 1,
    outputs: 0,
};

/// The frames of a channel or live stream for one reader. The graph runs at least as long as this lives.
#[derive(Debug)]
pub struct Viewing {
    reader: PipeReader,
    program: Program,
    tempo: Option<Tempo>,
    _node: NodeGuard,
}

impl Viewing {
    /// Begins with the last key frame of a program: another branch of its fork. Frames wait within `limits`.
    ///
    /// # Errors
    /// The channel has ended, or has no key frame for 10 s.
    pub(crate) async fn begin(
        registry: &Registry,
        program: &Program,
        label: &str,
        limits: QueueLimits,
    ) -> Result<Self, CannotOpen> {
        let node = registry.add(KIND.name, format!("{} {label}", program.path()));
        let branch = program.shared.branch(node.id(), None, limits).await;
        let branch = branch.map_err(|Closed| CannotOpen::Ended)?;
        let feed = Arc::new(SessionFeed { feed: program.feed.clone(), splicer: branch.splicer });
        let program = Program { feed, ..program.clone() };
        Ok(Self { reader: branch.reader, program, tempo: branch.tempo, _node: node })
    }

    /// The channel or live stream, with the epochs of clips that this reader gets alone. The graph runs at least as long as this
    /// lives.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Frame interval and reordering of the stream when the reader joined; `None` where nothing told them yet.
    pub fn tempo(&self) -> Option<Tempo> {
        self.tempo
    }

    /// Whether all frames that have arrived were taken.
    pub fn is_drained(&self) -> bool {
        self.reader.is_drained()
    }

    /// Waits for the next frames. A slow reader, as reported by [`hold`](Self::hold), loses frames, beginning with the frames
    /// that are needed least. Cancel safe.
    ///
    /// # Errors
    /// The channel has ended.
    pub async fn next(&mut self) -> Result<Run, Closed> {
        self.reader.next_to_send().await
    }

    /// Notes that the reader's connection takes no bytes now. A reader is slow from then on, until all frames were taken.
    pub fn hold(&self) {
        self.reader.hold(Instant::now());
    }
}
