//! From a path to an asset: which objects it is made of, their indexes, and the presentation over them.

mod asset;
mod error;
mod flights;
mod grouping;
mod index;
mod index_files;
mod names;
mod places;
mod route;

pub use error::IndexError;

pub(crate) use asset::{Asset, Lazy, Library, LibraryOptions, folder_path};
pub(crate) use error::LibraryError;
pub(crate) use flights::Flights;
pub(crate) use index::fingerprint;
pub(crate) use names::{content_type, is_manifest, is_media};
pub(crate) use places::Places;
pub use route::{Container, Resource, Route};
