//! Modules that take the frames of a channel beside its viewers.

use super::Program;
use crate::{
    cannot_open::CannotOpen,
    graph::{Branch, Closed, Inputs, Module, ModuleError, Output, QueueLimits, Running, Shared, start},
    registry::Registry,
};
use futures_util::future::BoxFuture;
use std::{future::Future, pin::pin, sync::Arc};
use tokio::runtime::Handle;

/// A module that is attached to a channel. It is detached when this is dropped.
#[derive(Debug)]
pub struct Attached(#[expect(dead_code, reason = "keeps the module")] Running);

/// A module, and the channel that it keeps running until it ends.
struct Attachment {
    module: Box<dyn Module>,
    shared: Arc<Shared>,
}

impl Module for Attachment {
    fn kind(&self) -> &'static str {
        self.module.kind()
    }

    fn run(self: Box<Self>, inputs: Inputs, output: Output) -> BoxFuture<'static, Result<(), ModuleError>> {
        let Self { module, shared } = *self;
        Box::pin(async move {
            let ended = module.run(inputs, output).await;
            drop(shared);
            ended
        })
    }
}

impl Program {
    /// Lends the frames of a channel to a module with one input and no output, from the last key frame on. The channel starts,
    /// unless it runs. The module ends with `lease`, which is dropped where the channel or the module ends before.
    pub(crate) fn lend(
        &self,
        (registry, runtime): (&Registry, &Handle),
        module: Box<dyn Module>,
        lease: impl Future<Output = ()> + Send + 'static,
    ) {
        let shared = self.shared.clone();
        let (kind, path) = (module.kind(), self.path().to_owned());
        let node = registry.add(kind, &path);
        runtime.spawn(async move {
            {
                let run = pin!(async {
                    let Branch { reader, .. } = shared.branch(node.id(), None, QueueLimits::MODULE).await?;
                    module.run(vec![reader], Output::None).await
                });
                let lease = pin!(lease);
                tokio::select! {
                    ended = run => if let Err::<(), ModuleError>(error) = ended {
                        tracing::error!(asset = %path, module = kind, %error, "stream ends early");
                    },
                    () = lease => {}
                }
            }
            drop(node);
            shared.release();
        });
    }

    /// Attaches a module with one input and no output: another branch of the fork. The graph runs until the module ends. `label`
    /// names the module among others.
    ///
    /// # Errors
    /// The channel has ended, or has no key frame for long.
    pub(crate) async fn attach(
        &self,
        registry: &Registry,
        module: Box<dyn Module>,
        label: &str,
    ) -> Result<Attached, CannotOpen> {
        let shared = self.shared.clone();
        let node = registry.add(module.kind(), format!("{} {label}", self.path()));
        let branch = shared.branch(node.id(), None, QueueLimits::MODULE).await;
        let branch = branch.map_err(|Closed| CannotOpen::Ended)?;
        let module = Box::new(Attachment { module, shared });
        Ok(Attached(start(module, node, (vec![branch.reader], Output::None), self.path())))
    }
}
