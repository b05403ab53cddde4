//! From a path to an asset: which objects it is made of, their indexes, and the presentation over them.

mod asset;
mod copying;
mod error;
mod flights;
mod folder;
#[cfg(feature = "fuzz")]
mod fuzzing;
mod grouping;
mod index;
mod index_files;
mod names;
mod places;
mod recipes;
mod route;
mod survey;
mod titles;
mod version;

pub use error::IndexError;
pub use folder::{FolderContent, LeftOut, Title};
pub use survey::Survey;

pub(crate) use asset::{Asset, Lazy, Library, LibraryOptions, folder_path};
pub(crate) use error::LibraryError;
pub(crate) use flights::Flights;
#[cfg(feature = "fuzz")]
pub(crate) use fuzzing::manifest_asset;
pub(crate) use index::fingerprint;
pub(crate) use names::{content_type, is_manifest, is_media};
pub(crate) use places::Places;
pub use route::{Container, Resource, Route};
pub use version::Version;
