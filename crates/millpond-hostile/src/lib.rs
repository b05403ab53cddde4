//! Movies that cost as much as a file can, for tests and fuzzing. The server does not depend on this crate.
//!
//! [`matroska`] has elements of Matroska, and [`avi`] chunks of AVI.
//!
//! A [`MovieRecipe`] describes an MP4 file, progressive or fragmented, whose tables make absurd claims: huge counts,
//! zero sizes, loops, contradictions. [`MovieRecipe::object`] writes the file. [`outputs::run`] drives a
//! [`SparseObject`] through the indexer, a presentation and every output. [`outputs::justified_steps`] bounds the steps
//! that this may take.
#![cfg_attr(not(test), deny(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

pub mod avi;
mod boxes;
pub mod catalogue;
pub mod fragments;
pub mod matroska;
pub mod movie;
pub mod outputs;
pub mod tables;

pub use fragments::{Fragments, HostileFragment, SegmentIndex};
pub use movie::{MovieRecipe, SparseObject, TrackMedia, TrackRecipe};
pub use outputs::OutputError;
pub use tables::{Sizes, TableRecipe};
