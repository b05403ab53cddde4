//! Gives the past of a live stream to one viewer.

use super::loader::OnFirst;
use crate::{
    graph::{Inputs, Module, ModuleError, Output},
    kind::ModuleKind,
    live::PastReader,
};
use futures_util::future::BoxFuture;

pub(super) const KIND: ModuleKind =
    ModuleKind { name: "past", about: "reads the past of a live stream for one viewer", inputs: 0, outputs: 1 };

/// Reads the frames of a stream's past ahead of their due times.
pub(crate) struct PastLoader {
    reader: PastReader,
    on_first: Option<OnFirst>,
}

impl PastLoader {
    /// Gives the frames of a reader. `on_first` is called when the first ones are in the pipe.
    pub(crate) fn new(reader: PastReader, on_first: OnFirst) -> Self {
        Self { reader, on_first: Some(on_first) }
    }
}

impl Module for PastLoader {
    fn kind(&self) -> &'static str {
        KIND.name
    }

    fn run(mut self: Box<Self>, _: Inputs, output: Output) -> BoxFuture<'static, Result<(), ModuleError>> {
        Box::pin(async move {
            while output.ready().await.is_ok() {
                let Some(run) = self.reader.next().await else { break };
                if output.send(run).await.is_err() {
                    break;
                }
                if let Some(on_first) = self.on_first.take() {
                    on_first();
                }
            }
            Ok(())
        })
    }
}
