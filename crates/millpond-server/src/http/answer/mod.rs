//! From a request to its reply: one function per kind of request, preconditions, ranges and header fields.
//!
//! [`Front`] answers requests, whichever version of HTTP carried them. A reply begins as a
//! [`SelectedRepresentation`](representation::SelectedRepresentation) and becomes a [`Reply`] with a body that the
//! connection pulls.

mod admission;
mod asset;
mod assets;
mod audience;
mod caching;
mod clip;
mod dates;
mod explain;
mod failure;
mod file;
mod front;
mod ladder;
mod live;
mod live_playlist;
mod live_segment;
mod long;
mod method;
mod opening;
mod page;
mod page_asset;
mod page_files;
mod page_listing;
mod page_network;
mod page_search;
mod page_streams;
mod past;
mod pathways;
mod plain;
mod publish;
mod reply;
mod representation;
mod split;
mod steer;
mod translated;
mod upload;
mod viewers;

pub(crate) use assets::AssetFilter;
pub(crate) use explain::Explanation;
pub(crate) use front::{Front, FrontOptions};
pub(crate) use page_network::Served;
pub(crate) use reply::{Reply, ReplyInfo};
pub(crate) use upload::{Upload, UploadError};
pub(crate) use viewers::ConnectionViewers;
