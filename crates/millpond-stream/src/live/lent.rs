//! Modules that take the frames of a channel for the time of a lease.

use super::Program;
use crate::{
    graph::{Branch, Module, ModuleError, Output, QueueLimits},
    registry::Registry,
};
use std::{future::Future, pin::pin};
use tokio::runtime::Handle;

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
}
