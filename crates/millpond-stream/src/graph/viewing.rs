//! Viewers that take the frames of a channel or live stream themselves, without a transmission.

use super::{CannotOpen, Closed, Manager, NodeGuard, PipeReader, Program, shared::Shared};
use crate::Run;
use std::sync::Arc;

/// Kind of the readers in the registry.
pub(crate) const KIND: &str = "viewing";

/// The frames of a channel or live stream for one reader. The graph runs at least as long as this lives.
#[derive(Debug)]
pub struct Viewing {
    reader: PipeReader,
    _shared: Arc<Shared>,
    _node: NodeGuard,
}

impl Viewing {
    /// Waits for the next frames. A reader that is slow loses frames: disposable ones first, then all of a track
    /// up to the next one that can be decoded by itself. Cancel safe.
    ///
    /// # Errors
    /// The channel has ended.
    pub async fn next(&mut self) -> Result<Run, Closed> {
        self.reader.next().await
    }
}

impl Manager {
    /// Returns the frames of a channel or live stream from the last key frame on: another branch of its fork. The channel
    /// starts, unless it runs. `label` names the reader among others.
    ///
    /// # Errors
    /// The channel has ended, or has no key frame for 10 s.
    pub async fn branch(&self, program: &Program, label: &str) -> Result<Viewing, CannotOpen> {
        let shared = self.shared(program);
        let node = self.registry().add(KIND, format!("{} {label}", program.path()));
        let branch = shared.branch(node.id(), None).await.map_err(|Closed| CannotOpen::Ended)?;
        Ok(Viewing { reader: branch.reader, _shared: shared, _node: node })
    }
}
