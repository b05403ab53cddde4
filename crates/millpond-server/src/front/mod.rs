//! From a request to a reply: routing, conditional and range requests, headers, and the log line at the end.

mod answer;
mod api;
mod caching;
mod conditional;
mod exchange;
mod packed;
mod range;
mod render;
mod renderer;
mod request;
mod steer;
mod viewers;

pub(crate) use answer::{Front, FrontOptions};
pub(crate) use api::encode;
#[cfg(feature = "fuzz")]
pub(crate) use conditional::{Validators, evaluate, range_applies};
pub(crate) use exchange::{Exchange, Note};
#[cfg(feature = "fuzz")]
pub(crate) use range::{Asked, parse as parse_range};
pub(crate) use request::{Reply, Request, Single};
pub(crate) use viewers::Visit;
