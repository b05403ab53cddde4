//! The HTTP front end, from a request to the body of its reply. `millpond_http` has connections, requests and bodies.
//!
//! | folder | does |
//! |---|---|
//! | `answer` | turns a request into a reply: kinds of request, preconditions, header fields, viewers |
//! | `render` | turns a resource of an asset into a body: manifests, segments, texts, and their caches |
//!
//! Imports run down this table only: `answer`, `render`. A unit test enforces that order.
//! Both may use the settings and the metrics of HTTP.

mod answer;
mod cmcd_metrics;
mod histogram;
mod lifetimes;
mod manifests;
mod metrics;
mod render;
mod settings;
#[cfg(test)]
mod tests;

pub(crate) use answer::{
    AssetFilter, Explanation, Front, FrontOptions, Served, Target, asset_key, assets_of, demand_of, explanation_of,
    objects_at, opening_at, remote_title_at,
};
#[cfg(feature = "intercept")]
pub(crate) use answer::{Intercepted, TranslatedMedia, answer_intercepted};
pub use lifetimes::Lifetimes;
pub use manifests::ManifestSettings;
pub(crate) use metrics::Unfinished;
pub use metrics::{HttpMetrics, Kind};
pub(crate) use render::{AnswerError, compress};
pub use settings::{HttpSettings, Thumbnails};
