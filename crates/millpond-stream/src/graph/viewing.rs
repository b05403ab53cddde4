//! Viewers that take the frames of a channel or live stream themselves, without a transmission.

use super::{Closed, Manager, PipeReader, Program, session::SessionFeed};
use crate::{Run, cannot_open::CannotOpen, lead::Tempo, registry::NodeGuard};
use std::{sync::Arc, time::Instant};

/// Kind of the readers in the registry.
pub(crate) const KIND: &str = "viewing";

/// The frames of a channel or live stream for one reader. The graph runs at least as long as this lives.
#[derive(Debug)]
pub struct Viewing {
    reader: PipeReader,
    program: Program,
    tempo: Option<Tempo>,
    _node: NodeGuard,
}

impl Viewing {
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

    /// Waits for the next frames. A reader that is slow, as [`hold`](Self::hold) tells, loses frames: those that are
    /// needed least first. Cancel safe.
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

impl Manager {
    /// Returns the frames of a channel or live stream from the last key frame on: another branch of its fork. The channel
    /// runs on. `label` names the reader among others.
    ///
    /// # Errors
    /// The channel has ended, or has no key frame for 10 s.
    pub async fn branch(&self, program: &Program, label: &str) -> Result<Viewing, CannotOpen> {
        let node = self.registry().add(KIND, format!("{} {label}", program.path()));
        let branch = program.shared.branch(node.id(), None, self.viewer_limits()).await;
        let branch = branch.map_err(|Closed| CannotOpen::Ended)?;
        let feed = Arc::new(SessionFeed { feed: program.feed.clone(), splicer: branch.splicer });
        let program = Program { feed, ..program.clone() };
        Ok(Viewing { reader: branch.reader, program, tempo: branch.tempo, _node: node })
    }
}
