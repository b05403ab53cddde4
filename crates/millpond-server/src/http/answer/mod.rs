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
mod context;
mod dates;
mod explain;
mod failure;
mod file;
mod front;
mod handle;
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
#[cfg(test)]
pub(in crate::http) mod parses;
mod past;
mod pathways;
mod plain;
mod publish;
mod reply;
mod representation;
mod split;
mod steer;
mod target;
mod translated;
mod upload;
mod viewers;

pub(crate) use assets::{AssetFilter, assets_of};
pub(crate) use audience::AnsweredRequest;
pub(crate) use context::Context;
pub(crate) use explain::{Explanation, demand_of, explanation_of, objects_at};
pub(crate) use failure::refusal;
pub(crate) use front::{Front, FrontOptions};
pub(crate) use handle::{begin, handle};
pub(crate) use opening::opening_at;
pub(crate) use page_network::Served;
pub(crate) use publish::{publish, takes_body};
pub(crate) use reply::{Reply, ReplyInfo};
pub(crate) use steer::asset_key;
pub(crate) use target::Target;
pub(crate) use translated::answer_translated;
pub(crate) use upload::{Upload, UploadError};
pub(crate) use viewers::ConnectionViewers;
