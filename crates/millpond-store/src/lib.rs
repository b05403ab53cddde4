//! Origins of media bytes, and the slice cache in front of them.
//!
//! An [`Origin`] is one place that holds objects: a folder, an HTTP server, a bucket, or memory. A [`Store`] has origins by name,
//! and a slice cache in front of remote origins. Each byte of an object is fetched from its origin once, for all readers, and
//! each reader gets it when it arrives. Local files are handed out as open files instead, for the kernel to send.
//!
//! The most important types are [`Store`], [`Object`], [`Reader`] and the trait [`Origin`]. What this crate does not
//! know: media formats, HTTP towards clients, and configuration files. Ranges are plain [`std::ops::Range<u64>`] of
//! byte offsets inside one object, the end exclusive.
//!
//! ```
//! # use std::sync::Arc;
//! # use millpond_store::{MemoryOrigin, ObjectPath, Store, StoreOptions};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let origin = MemoryOrigin::new("sample");
//! origin.put("hello.txt", "good morning");
//!
//! let store = Store::new(&StoreOptions::default())?;
//! store.add_place("films", Arc::new(origin));
//!
//! let object = store.open("films", &ObjectPath::parse("hello.txt")?).await?;
//! assert_eq!(object.meta().len, 12);
//! assert_eq!(store.read_all(&object, 5..12).await?, "morning");
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod build;
mod contents;
mod derived;
mod disk;
mod due;
mod error;
mod freshness;
mod glob;
#[cfg_attr(not(test), forbid(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]
pub mod intervals;
mod joined;
mod layout;
mod location;
mod lookups;
mod memory;
mod named_origin;
mod origin;
mod path;
#[cfg_attr(not(test), forbid(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]
pub mod policy;
mod purge_log;
mod reading;
mod scattered;
#[cfg_attr(not(test), forbid(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]
pub mod schedule;
mod scheduler;
mod selection;
mod single_flight;
mod slice;
mod slices;
mod speculation;
mod stats;
mod store;
#[cfg(feature = "stripe")]
mod stripe;
mod striping;
mod tags;
pub mod trace;
mod uploading;
mod url_text;
mod version;
mod waits;
#[cfg(test)]
mod walls;

pub use build::{OriginOptions, build, build_with_homes, credentials, faults};
pub use contents::{CachedObject, OriginLink, Whence};
pub use derived::{Derivation, Making};
pub use disk::chunk::Chunk;
pub use disk::disk_tier::{DiskStats, Pin};
pub use disk::ring;
pub use disk::slab::{ObjectName, SlabError, held_lock};
pub use error::{At, ErrorKind, OriginError, Phase};
pub use freshness::{Freshness, Permission, Storage};
pub use glob::{Glob, GlobError};
pub use joined::{JoinedRanges, JoinedSource};
pub use layout::{Layout, LayoutError, Piece, StoreRate, Striping};
pub use location::{BucketPrefix, Cloud, OriginLocation};
pub use lookups::LookupTimes;
pub use memory::cache::Cache;
pub use memory::hold::{Hold, Holds};
pub use memory::{CacheCounters, Memory};
pub use origin::bare::LocationError;
pub use origin::cloud::CloudOrigin;
pub use origin::disk::DiskOrigin;
pub use origin::homes::{HOME_HEADER, HomeAddress, HomeStep, Homes, PURGED_HEADER};
pub use origin::http::index_page::entries as index_page_entries;
pub use origin::http::{HttpOrigin, loop_id};
pub use origin::memory::MemoryOrigin;
pub use origin::odd_keys::without_odd_keys;
pub use origin::retry::{RetryOrigin, RetryPolicy};
pub use origin::{
    BoxFuture, BucketOptions, Entry, Fetched, Lanes, Listing, NeighbourStats, ObjectMeta, OpenFile, OptionFault,
    Origin, OriginBody, OriginCounts, OriginFacts, RemoteOptions, SentBy, StripeStoreStats, Timeouts,
};
pub use path::{ObjectPath, PathError};
pub use reading::object::Object;
pub use reading::prefetch::Watch;
pub use reading::reader::Reader;
pub use scattered::Scattered;
pub use selection::{Purge, Selection};
pub use single_flight::SingleFlight;
pub use stats::{PlaceStats, ReadCounts, Stats};
pub use store::{DiskOptions, Store, StoreError, StoreOptions};
#[cfg(feature = "stripe")]
pub use stripe::{
    BadBlock, MapError, MapTarget, ScrubFault, ScrubOutcome, Scrubbed, StripeError, StripeMap, StripePlan,
    StripeSource, Striped, SumError, SumHead, SumPage, SumTable, SumWriter, UnitSums, remove, remove_striped, scrub,
    stripe, unstripe,
};
pub use striping::{MAP_SUFFIX, StripeStore, StripingOptions};
pub use tags::{ObjectTags, PurgeTag, PurgeTagError, StatedTags};
pub use uploading::BucketWriter;
pub use url_text::{shown_without_secrets, without_secrets};
pub use version::Version;
pub use waits::{BOUNDS as WAIT_BOUNDS, LOOKUP_BOUNDS, WaitCounts};
