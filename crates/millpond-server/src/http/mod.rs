//! The HTTP front end, from a client's bytes to the bytes of the reply.
//!
//! | folder | does |
//! |---|---|
//! | `wire` | accepts connections, reads heads and sends replies: HTTP/1.1, HTTP/2, TLS |
//! | `answer` | turns a request into a reply: kinds of request, preconditions, header fields, viewers |
//! | `render` | turns a resource of an asset into a body: manifests, segments, texts, and their caches |
//! | `body` | turns plans, files and object ranges into chunks that a connection pulls |
//! | [`request`] | parses heads, targets, ranges and preconditions; pure |
//!
//! Imports run down this table only: `wire`, `answer`, `render`, `body`, `request`. A unit test enforces that order.
//! All of them may use the settings and the metrics of HTTP.

mod answer;
mod body;
mod cmcd_metrics;
mod histogram;
mod lifetimes;
mod metrics;
mod render;
pub mod request;
mod settings;
#[cfg(test)]
mod tests;
mod wire;

pub(crate) use answer::{
    AssetFilter, Explanation, Front, FrontOptions, Served, Target, asset_key, assets_of, demand_of, explanation_of,
    objects_at, opening_at,
};
pub use lifetimes::Lifetimes;
pub(crate) use metrics::Unfinished;
pub use metrics::{Held, HttpMetrics, Kind, Transport};
pub(crate) use render::{AnswerError, compress};
pub use settings::{HttpSettings, Thumbnails};
#[cfg(feature = "intercept")]
pub(crate) use wire::{Intercepted, answer_intercepted, closed};
pub(crate) use wire::{Service, accept_plain, accept_tls};
