//! Gives a stored title of an RTSP server to one viewer.

use super::loader::OnFirst;
use crate::{
    graph::{Inputs, Module, ModuleError, Output},
    kind::ModuleKind,
    remote::TitleReader,
};
use futures_util::future::BoxFuture;

pub(super) const KIND: ModuleKind = ModuleKind {
    name: "title",
    about: "reads the frames of a stored title of an RTSP server for one viewer",
    inputs: 0,
    outputs: 1,
};

/// Reads the frames of a title ahead of their due times.
pub(crate) struct TitleLoader {
    reader: TitleReader,
    on_first: Option<OnFirst>,
}

impl TitleLoader {
    /// Gives the frames of a reader. `on_first` is called when the first ones are in the pipe.
    pub(crate) fn new(reader: TitleReader, on_first: OnFirst) -> Self {
        Self { reader, on_first: Some(on_first) }
    }
}

impl Module for TitleLoader {
    fn kind(&self) -> &'static str {
        KIND.name
    }

    fn run(mut self: Box<Self>, _: Inputs, output: Output) -> BoxFuture<'static, Result<(), ModuleError>> {
        Box::pin(async move {
            while output.ready().await.is_ok() {
                let Some(run) = self.reader.next().await? else { break };
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
