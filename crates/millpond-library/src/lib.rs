//! Assets: from a place and a path to indexed media that can be packaged or streamed.
//!
//! A [`Library`] opens an asset: it finds the files that belong to it (one file, a folder of renditions, a server manifest,
//! an HLS playlist or a list in the URL), indexes them, and builds one presentation over them. Assets and indexes stay in memory within the
//! store's budget, and indexes on disk across restarts. An [`Asset`] is one version of one title; a [`Route`] is a path
//! below an asset that names something made of it. Heavy work runs in [`work`], on a pool that others may share.
//!
//! The crate does not answer requests, choose status codes, make playlists or segments, or read configuration
//! files. It knows no protocol of viewers.
//!
//! ```
//! # use std::{collections::HashMap, sync::Arc, time::Duration};
//! # use millpond_library::{Library, LibraryOptions, work::{PoolOptions, WorkPool}};
//! # use millpond_store::{MemoryOrigin, Store, StoreOptions};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let origin = MemoryOrigin::new("sample");
//! origin.put("film.mp4", include_bytes!("../../../assets/sample/180p.mp4").to_vec());
//! let store = Store::new(&StoreOptions::default())?;
//! store.add_place("films", Arc::new(origin));
//!
//! let pool = Arc::new(WorkPool::new(PoolOptions { threads: 2 }, store.memory())?);
//! let options = LibraryOptions {
//!     segment_duration: Duration::from_secs(4),
//!     index_folder: None,
//!     cache_size: 0,
//!     lists_thumbnails: false,
//!     places: HashMap::new(),
//! };
//! let library = Arc::new(Library::new(store, pool, options));
//! let asset = library.open(&"films".into(), "film.mp4").await?;
//! assert!(asset.presentation.track("v1").is_some());
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod asset;
mod catalogue;
mod copying;
mod counters;
mod durations;
mod error;
mod folder;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzzing;
mod index_files;
mod library;
mod names;
mod options;
mod places;
mod recipes;
mod route;
mod survey;
pub mod uri;
mod url_list;
mod version;
#[cfg(test)]
mod walls;
pub mod work;

pub use asset::{Asset, Detail, Lazy};
pub use catalogue::{
    Catalogue, FolderPicture, Found, NameRow, Names, PlayableTitle, PlayableTitles, Query, playable_titles, search,
};
pub use counters::LibraryStats;
pub use durations::{DURATION_BOUNDS, DurationCounts};
pub use error::{IndexError, LibraryError, Unplayable};
pub use folder::{
    FolderContent, LeftOut, Title,
    listed::{ListedArtwork, ListedFolder, ListedRow, RowKind},
};
pub use library::{Library, Purpose, folder_path, index::fingerprint};
pub use names::{content_type, is_manifest, is_media, is_playlist, programme_of};
pub use options::{AssetOptions, LibraryOptions, Titles};
pub use places::{PlacePath, Places};
pub use route::{
    Resource, Route,
    live::{GuideFormat, LiveMedia, LiveResource, LiveRoute, WebRtcUse},
    live_name::live_name,
};
pub use survey::Survey;
pub use url_list::decode_path;
pub use version::AssetVersion;
