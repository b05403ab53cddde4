//! From a request to a reply: routing, conditional and range requests, headers, and the log line at the end.

mod answer;
mod api;
mod caching;
mod coding;
mod conditional;
mod dates;
mod encodings;
mod exchange;
mod found;
mod packed;
mod range;
mod recent;
mod render;
mod renderer;
mod request;
mod steer;
mod viewers;

pub(crate) use answer::{Front, FrontOptions};
pub use api::encode;
#[cfg(feature = "fuzz")]
pub(crate) use coding::Coding;
#[cfg(feature = "fuzz")]
pub(crate) use conditional::{Validators, evaluate, range_applies};
pub(crate) use exchange::{Exchange, Note};
#[cfg(feature = "fuzz")]
pub(crate) use range::{Asked, parse as parse_range};
pub(crate) use request::{Reply, Request, Single};
pub(crate) use viewers::Visit;
