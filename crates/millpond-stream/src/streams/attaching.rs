//! Modules that are attached to streams. The output of one becomes a publication.

use super::{LiveRequest, PublishRefused, PublishRequest, Streams};
use crate::{
    cannot_open::CannotOpen,
    graph::{Closed, Inputs, Module, ModuleError, Output, QueueLimits, Running, Shared, pipe, start},
    live::Program,
    reception::{Conflict, ModuleFrames, Publication, PublishedMedia},
    registry::NodeId,
};
use futures_util::future::BoxFuture;
use std::sync::{Arc, PoisonError};
use tokio::sync::watch;

/// Most runs between a module and its publication. The module waits while there are as many.
const DEPTH: usize = 64;
/// Most streams that lead from one to another by modules.
const CHAIN: usize = 64;

/// Why a module can't be attached.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CannotAttach {
    /// The stream can't be joined.
    #[error(transparent)]
    Open(#[from] CannotOpen),
    /// Its output can't be published.
    #[error(transparent)]
    Publish(#[from] PublishRefused),
    /// The module takes its frames from this stream, directly or over others.
    #[error("the frames would come back to {0}, without an end")]
    Circle(String),
}

/// Why an attached module ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttachmentEnd {
    /// Its stream ended, or it had nothing left to do.
    Done,
    /// It failed.
    Failed(String),
    /// The publication of its output ended.
    Output(String),
}

/// A module that is attached to a channel or live stream. It is detached when this is dropped.
#[derive(Debug)]
pub struct Attached {
    _running: Running,
    node: NodeId,
    end: watch::Receiver<Option<AttachmentEnd>>,
}

impl Attached {
    /// Its name in the registry.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Turns to the reason of the end when the module ends by itself.
    pub fn end(&self) -> watch::Receiver<Option<AttachmentEnd>> {
        self.end.clone()
    }
}

impl Streams {
    /// Attaches a module: another branch of the stream's fork. With an `output`, its frames are published there. `label` names the
    /// module among others.
    ///
    /// # Errors
    /// The stream has ended, or has no key frame for long; the output can't be published.
    pub(crate) async fn attach(
        self: &Arc<Self>,
        program: &Program,
        module: Box<dyn Module>,
        (label, output): (&str, Option<(LiveRequest, Conflict)>),
    ) -> Result<Attached, CannotAttach> {
        let (registry, shared) = (&self.means.registry, program.shared.clone());
        let node = registry.add(module.kind(), format!("{} {label}", program.path()));
        let id = node.id();
        let limits = if output.is_some() { QueueLimits::PASSED } else { QueueLimits::MODULE };
        let branch = shared.branch(id, None, limits).await.map_err(|Closed| CannotOpen::Ended)?;
        let (output, publication) = match output {
            None => (Output::None, None),
            Some((stream, conflict)) => {
                let (writer, reader) = pipe(registry, id, id, DEPTH);
                let feed = module.output_feed().unwrap_or_else(|| program.shared_feed());
                let frames = ModuleFrames::new(reader, feed);
                (Output::Pipe(writer), Some(self.publish_output((stream, conflict), frames)?))
            }
        };
        let (ends, end) = watch::channel(None);
        let attachment = Box::new(Attachment { module, shared, publication, ends });
        let running = start(attachment, node, (vec![branch.reader], output), program.path());
        Ok(Attached { _running: running, node: id, end })
    }

    /// Publishes the output of a module.
    ///
    /// # Errors
    /// As [`publish`](Self::publish); also where the frames would come back to the module.
    fn publish_output(
        self: &Arc<Self>,
        (stream, conflict): (LiveRequest, Conflict),
        frames: ModuleFrames,
    ) -> Result<Publication, CannotAttach> {
        let _turn = self.outputs.lock().unwrap_or_else(PoisonError::into_inner);
        if self.leads_from(&stream.path, frames.stream()) {
            return Err(CannotAttach::Circle(frames.stream().to_owned()));
        }
        let media = PublishedMedia::Frames(Box::new(frames));
        Ok(self.publish(PublishRequest { stream, media, conflict })?)
    }

    /// Whether modules lead the frames of the stream `from` to the stream `to`, or both are one.
    fn leads_from(&self, from: &str, to: &str) -> bool {
        let mut at: Arc<str> = to.into();
        for _ in 0..CHAIN {
            if &*at == from {
                return true;
            }
            match self.get(&at).and_then(|stream| stream.fed_by()) {
                Some(before) => at = before,
                None => return false,
            }
        }
        true
    }
}

/// A module, and the stream that it keeps running until it ends.
struct Attachment {
    module: Box<dyn Module>,
    shared: Arc<Shared>,
    publication: Option<Publication>,
    ends: watch::Sender<Option<AttachmentEnd>>,
}

impl Module for Attachment {
    fn kind(&self) -> &'static str {
        self.module.kind()
    }

    fn run(self: Box<Self>, inputs: Inputs, output: Output) -> BoxFuture<'static, Result<(), ModuleError>> {
        let Self { module, shared, publication, ends } = *self;
        Box::pin(async move {
            let over = async {
                match &publication {
                    Some(publication) => publication.over().await,
                    None => std::future::pending().await,
                }
            };
            let (end, ended) = tokio::select! {
                ended = module.run(inputs, output) => match ended {
                    Ok(()) => (AttachmentEnd::Done, Ok(())),
                    Err(error) => (AttachmentEnd::Failed(error.to_string()), Err(error)),
                },
                why = over => (AttachmentEnd::Output(why.to_string()), Ok(())),
            };
            drop((publication, shared));
            ends.send_replace(Some(end));
            ended
        })
    }
}
