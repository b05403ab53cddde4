//! From a request to a reply: routing, conditional and range requests, headers, and the log line at the end.

mod answer;
mod api;
mod caching;
mod conditional;
mod exchange;
mod packed;
mod range;
mod render;
mod request;
mod steer;
mod viewers;

pub(crate) use answer::{Front, FrontOptions};
pub(crate) use api::encode;
pub(crate) use exchange::{Exchange, Note};
pub(crate) use request::{Reply, Request};
pub(crate) use viewers::Visit;
