//! Sends the frames of a channel or live stream to another server: a module for each destination.
//!
//! A module connects before it is attached, and ends with an error when the connection ends. Whoever attached it begins it again,
//! from the last key frame on. It takes frames from a branch of its own, so a slow destination loses frames and delays nobody.

mod counts;
mod datagrams;
mod destination;
mod pace;
mod pushing;
mod rtp_track;
mod rtsp;
mod srt;
mod whip;

pub use counts::PushCounts;
pub use destination::{DestinationError, PushDestination};

use super::attachable::{AttachableKind, MadeModule, ModuleDeclaration, ModuleInput, ModuleOption, ModuleOptions};
use crate::{Counters, graph::ModuleError, kind::ModuleKind, live::Program, reception::Upstream};
use futures_util::future::BoxFuture;
use millpond_settings::value::{BadValue, Form};
use pushing::{Pushing, Way};
use std::{sync::Arc, time::Duration};

pub(super) const KIND: ModuleKind = ModuleKind {
    name: "push",
    about: "sends the frames of a channel or live stream to another server",
    inputs: 1,
    outputs: 0,
};

/// Name of the option with the destination.
pub const URL: &str = "url";

/// Time limit of a connection, with all that comes before the first frame.
const CONNECTION: Duration = Duration::from_secs(10);

const OPTIONS: &[ModuleOption] = &[ModuleOption {
    name: URL,
    form: Form::Text,
    default: "",
    help: "PushDestination: rtmp://HOST/APPLICATION/KEY, rtsp://HOST/PATH, srt://HOST:PORT?streamid=..., https://TOKEN@HOST/PATH (WHIP), udp://ADDRESS:PORT or rtp://ADDRESS:PORT",
    is_required: true,
    check: |text| PushDestination::parse(text).map(drop).map_err(|error| bad(&error)),
}];

/// The words of what is expected, without the word itself: errors of options have it.
fn bad(error: &DestinationError) -> BadValue {
    let words = error.to_string();
    BadValue::new(words.strip_prefix("expected ").unwrap_or(&words))
}

/// The kind of modules that push a stream.
pub const PUSH: ModuleDeclaration =
    ModuleDeclaration { kind: KIND, input: ModuleInput::Any, options: OPTIONS, is_kept: true };

/// A destination that can't be reached, or refuses.
#[derive(Debug, thiserror::Error)]
#[error("{destination}: {error}")]
pub struct CannotPush {
    /// Its URL, without secrets.
    destination: String,
    #[source]
    error: ModuleError,
}

/// Makes modules that push.
pub(crate) struct Push {
    upstream: Upstream,
    counters: Arc<Counters>,
}

impl Push {
    pub(crate) fn new(upstream: Upstream, counters: Arc<Counters>) -> Self {
        Self { upstream, counters }
    }
}

impl AttachableKind for Push {
    fn declaration(&self) -> &'static ModuleDeclaration {
        &PUSH
    }

    fn make<'a>(
        &'a self,
        program: &'a Program,
        options: &'a ModuleOptions,
        _: u64,
    ) -> BoxFuture<'a, Result<MadeModule, ModuleError>> {
        Box::pin(async move {
            let destination = PushDestination::parse(options.get(URL).unwrap_or_default())?;
            let label = destination.to_string();
            let way = tokio::time::timeout(CONNECTION, Way::open(&destination, &self.upstream, program)).await;
            let way = way.unwrap_or_else(|_| Err(format!("no connection within {} s", CONNECTION.as_secs()).into()));
            let way = way.map_err(|error| CannotPush { destination: label.clone(), error })?;
            let counts = Arc::new(PushCounts::default());
            let module = Pushing::new(program.clone(), way, (label.clone(), counts.clone(), self.counters.clone()));
            Ok(MadeModule { module: Box::new(module), label, results: Some(counts) })
        })
    }
}
