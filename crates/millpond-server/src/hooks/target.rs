//! The receiver of a hook's events: an endpoint by HTTP, or a program.

use super::{HookSettings, post, program, settings::without_secrets, signature::HookSecret};
use crate::events::Event;
use millpond_outbound::Client;
use std::{fmt, path::Path, sync::Arc, time::Duration};
use url::Url;

/// The receiver of a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// A URL that gets events by POST.
    Endpoint(Url),
    /// A program and its arguments.
    Program(Arc<[String]>),
}

/// Settings of deliveries, which a reload may change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DeliveryOptions {
    pub(super) secret: Option<HookSecret>,
    pub(super) timeout: Duration,
    pub(super) patience: Duration,
}

/// Result of an attempt to deliver an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The receiver has it.
    Delivered,
    /// The receiver takes it at no time.
    Refused(String),
    /// It may be taken later.
    Failed(String),
    /// The receiver takes no events any more.
    Gone,
}

impl Target {
    /// The targets of a configuration.
    pub(super) fn all(settings: &HookSettings) -> Vec<Self> {
        let program = (!settings.run.is_empty()).then(|| Self::Program(settings.run.as_slice().into()));
        settings.endpoints.iter().cloned().map(Self::Endpoint).chain(program).collect()
    }

    /// Value of the label `hook` in metrics: host and port of an endpoint, or the file name of a program.
    pub(super) fn label(&self) -> String {
        match self {
            Self::Endpoint(url) => {
                let host = url.host_str().unwrap_or_default();
                url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
            }
            Self::Program(words) => {
                let name = words.first().and_then(|program| Path::new(program).file_name());
                name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
            }
        }
    }

    /// Delivers an event. Cancel safe, but for a program, which runs on.
    pub(super) async fn deliver(&self, client: &Client, options: &DeliveryOptions, event: &Arc<Event>) -> Outcome {
        let DeliveryOptions { secret, timeout, .. } = options;
        match self {
            Self::Endpoint(url) => post::post(client, url, (secret.as_ref(), *timeout), event).await,
            Self::Program(words) => {
                let (words, limit, of) = (words.clone(), *timeout, event.clone());
                let ran = tokio::task::spawn_blocking(move || program::run(&words, limit, &of)).await;
                let Ok((outcome, output)) = ran else { return Outcome::Refused("it was not started".to_owned()) };
                if !output.is_empty() {
                    tracing::info!(hook = %self, event = event.id(), output, "output of a hook");
                }
                outcome
            }
        }
    }
}

/// The target without secrets.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Endpoint(url) => f.write_str(&without_secrets(url)),
            Self::Program(words) => f.write_str(words.first().map_or("", String::as_str)),
        }
    }
}
