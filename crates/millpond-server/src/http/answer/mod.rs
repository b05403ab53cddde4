//! From a request to its reply.
//!
//! [`Target`] is what a request is about, found once from its path. [`Context`] is a request with all that its handlers need.
//! [`handle`] leads it through limits and rules of access to the handler of its target:
//!
//! | folder | answers |
//! |---|---|
//! | `page` | the web page, its files and its data |
//! | `steering` | steering manifests; lists the nodes of a cluster in manifests, and sends requests to them |
//! | `live` | running streams |
//! | `asset` | resources of assets |
//! | `file` | files, as they are |
//! | `publish` | streams that publishers push |
//! | `webrtc` | sessions of peers by WebRTC |
//! | `operator` | questions of the admin API |
//! | `client` | nothing: it has the rights of clients and their places in the list of viewers |
//! | `reply` | nothing: it turns what handlers select into replies |
//!
//! A handler selects a [`SelectedRepresentation`](reply::SelectedRepresentation), which becomes a [`Reply`] with a body that the
//! connection pulls. [`Front`] has what all requests share.

mod asset;
mod client;
mod context;
mod exchange;
mod file;
mod front;
mod front_end;
mod handle;
mod health;
#[cfg(feature = "intercept")]
mod intercepted;
mod lasting;
mod live;
mod method;
mod node_api;
mod operator;
mod page;
#[cfg(test)]
pub(in crate::http) mod parses;
mod publish;
mod registry;
mod reply;
mod steering;
mod target;
mod viewers;
mod webrtc;

pub(crate) use context::Context;
pub(crate) use front::{Front, FrontOptions};
#[cfg(feature = "intercept")]
pub(crate) use intercepted::{Intercepted, answer_intercepted};
#[cfg(feature = "intercept")]
pub(crate) use live::TranslatedMedia;
pub(crate) use operator::{
    AssetFilter, Explanation, assets_of, explanation_of, objects_at, opening_at, remote_title_at,
};
pub(crate) use page::Served;
pub(crate) use reply::{Reply, ReplyInfo};
pub(crate) use steering::{asset_key, demand_of};
pub(crate) use target::Target;
pub(crate) use viewers::ConnectionViewers;
