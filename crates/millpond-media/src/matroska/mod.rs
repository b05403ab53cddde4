//! Matroska and WebM (RFC 9559), on EBML (RFC 8794): tracks, cues and blocks become the index of an object.
//!
//! [`indexer`] reads an object, [`block_loader`] the samples of some of its fragments. Both drive [`clusters`], which names the bytes
//! that it needs next. A fragment begins with a key frame that the cues name, and ends where the next fragment begins; [`borders`]
//! assigns sound to fragments. Texts are named by cues of their own, each with its time and place; [`TextBlock`] reads them. Frames
//! that lack their common beginning get it back in an [extracted object](crate::Extraction).

mod attachments;
mod block;
mod block_loader;
mod borders;
mod chapters;
mod clusters;
mod codecs;
mod cues;
mod ebml;
mod extracting;
mod fragments;
mod head;
mod ids;
mod indexer;
mod lane;
mod light;
mod outliner;
mod samples;
mod segment;
mod stretch;
mod tags;
mod text_block;
mod texts;
mod track_entry;

pub(crate) use block_loader::BlockLoader;
pub(crate) use ebml::MAGIC;
pub(crate) use indexer::{MatroskaIndexer, MatroskaStep};
pub use text_block::TextBlock;
