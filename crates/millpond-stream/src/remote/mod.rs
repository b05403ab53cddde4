//! Stored titles of RTSP servers: cut into segments that the store keeps.
//!
//! A server tells a stored title by its length. [`RemoteTitles`] asks it once for each path. A [`RemoteTitle`] has nominal segments, which
//! its [`TitleListing`] lists before any is fetched. A segment is an object of the store; reading it from its origin plays that stretch of the
//! title. So viewers share segments, memory, disk and eviction with those of other objects, and nobody starts in the middle.

mod cutter;
mod end;
mod error;
mod fetching;
mod fragment;
mod grid;
mod listing;
mod measured;
mod origin;
mod queue;
mod reader;
mod seeking;
mod segment;
#[cfg(test)]
mod tests;
mod title;
mod titles;

pub use listing::TitleListing;
pub(crate) use origin::TitleOrigin;
pub(crate) use reader::TitleReader;
pub use segment::TitleSegment;
pub use title::RemoteTitle;
pub use titles::RemoteTitles;
