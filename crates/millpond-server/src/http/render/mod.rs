//! From a resource of an asset to its body: texts and plans, made, compressed and cached.
//!
//! [`Renderer`] makes a resource, [`CodedTexts`] compresses texts for clients that accept it. Light work runs on the
//! serving threads, heavy work on the worker pool, once for all requests that wait for it.

mod clip_response;
mod coded_texts;
mod compress;
mod error;
mod long_response;
mod packed;
#[cfg(not(feature = "pictures"))]
#[path = "no_pictures.rs"]
mod pictures;
#[cfg(feature = "pictures")]
mod pictures;
mod recent;
mod renderer;
mod resource;
mod segment_stream;
mod snapshot_image;
mod title_stream;

pub(crate) use clip_response::ClipResponse;
pub(crate) use coded_texts::{CodedTexts, TextId};
pub(crate) use compress::encode as compress;
pub(crate) use error::AnswerError;
pub(crate) use long_response::{LongResponse, Muxer, Sent};
pub(crate) use renderer::Renderer;
pub(crate) use resource::{ResourceProfile, Role, profile};
pub(crate) use segment_stream::{SegmentStream, is_begun};
pub(crate) use snapshot_image::SnapshotImage;
pub(crate) use title_stream::TitleStream;
