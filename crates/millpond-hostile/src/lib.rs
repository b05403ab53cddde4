//! Movies made to cost as much as they can, for tests and fuzzing: nothing of the server depends on this crate.
//!
//! A [`MovieRecipe`] describes an MP4 file, progressive or fragmented, whose tables claim what nobody would write: huge
//! counts, zero sizes, loops, contradictions. [`MovieRecipe::object`] writes it. [`outputs::run`] drives an [`SparseObject`] through
//! the indexer, a presentation and every output, and [`outputs::justified_steps`] says how many steps that may take.
#![cfg_attr(not(test), deny(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

mod boxes;
pub mod catalogue;
pub mod fragments;
pub mod movie;
pub mod outputs;
pub mod tables;

pub use fragments::{Fragment, Fragments, SegmentIndex};
pub use movie::{MovieRecipe, SparseObject, TrackMedia, TrackRecipe};
pub use outputs::OutputError;
pub use tables::{Sizes, TableRecipe};
