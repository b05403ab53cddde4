//! The module trait, and the start of modules.

use super::{Closed, Fork, PipeReader, PipeWriter};
use crate::{Feed, Run, registry::NodeGuard, strain::Strain};
use futures_util::future::BoxFuture;
use std::{error::Error, sync::Arc};
use tokio::task::AbortHandle;

/// Why a module ended before its input did.
pub type ModuleError = Box<dyn Error + Send + Sync>;

/// The pipes that a module takes frames from.
pub type Inputs = Vec<PipeReader>;

/// Moves frames from its inputs to its output. Only the [`Manager`](crate::Manager) connects, starts and stops modules.
pub trait Module: Send + 'static {
    /// Its kind: a name in [`KINDS`](crate::modules::KINDS).
    fn kind(&self) -> &'static str;

    /// The formats and epochs of its output, where they are not those of the stream that its input comes from.
    fn output_feed(&self) -> Option<Arc<dyn Feed>> {
        None
    }

    /// Runs until its inputs end, nobody takes its output any more, or there is nothing left to do. Dropping the future stops the
    /// module.
    fn run(self: Box<Self>, inputs: Inputs, output: Output) -> BoxFuture<'static, Result<(), ModuleError>>;
}

/// Where a module's frames go.
#[derive(Debug)]
pub enum Output {
    /// To one module, which is waited for.
    Pipe(PipeWriter),
    /// To all branches of a fork, none of which is waited for.
    Fork(Arc<Fork>),
    /// The module has no output.
    None,
}

impl Output {
    /// Waits until there is room for a run. A fork always has room.
    ///
    /// # Errors
    /// Nobody takes frames any more.
    pub async fn ready(&self) -> Result<(), Closed> {
        match self {
            Self::Pipe(pipe) => pipe.reserve().await.map(drop),
            Self::Fork(fork) if fork.is_closed() => Err(Closed),
            Self::Fork(_) => Ok(()),
            Self::None => Err(Closed),
        }
    }

    /// How hard it is for the branches of a fork to take the frames.
    pub(crate) fn strain(&self) -> Strain {
        match self {
            Self::Fork(fork) => fork.strain(),
            Self::Pipe(_) | Self::None => Strain::default(),
        }
    }

    /// Sends a run. Waits for room in a pipe. Returns the number of frames that full branches of a fork lost.
    ///
    /// # Errors
    /// Nobody takes frames any more.
    pub async fn send(&self, run: Run) -> Result<usize, Closed> {
        match self {
            Self::Pipe(pipe) => {
                pipe.reserve().await?.send(run);
                Ok(0)
            }
            Self::Fork(fork) if fork.is_closed() => Err(Closed),
            Self::Fork(fork) => Ok(fork.put(&run)),
            Self::None => Err(Closed),
        }
    }
}

/// A module that runs. It stops when this is dropped.
#[derive(Debug)]
pub(crate) struct Running(AbortHandle);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Starts a module in a task of its own. `path` names its asset in the log.
pub(crate) fn start(
    module: Box<dyn Module>,
    node: NodeGuard,
    (inputs, output): (Inputs, Output),
    path: &str,
) -> Running {
    let (kind, path) = (module.kind(), path.to_owned());
    let run = module.run(inputs, output);
    let task = tokio::spawn(async move {
        if let Err(error) = run.await {
            tracing::error!(asset = %path, module = kind, %error, "stream ends early");
        }
        drop(node);
    });
    Running(task.abort_handle())
}
