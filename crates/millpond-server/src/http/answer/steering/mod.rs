//! The other nodes of a cluster: in steering manifests, in manifests of assets, and as servers of a request.

mod elsewhere;
mod pathways;

pub(crate) use elsewhere::asset_key;
pub(super) use elsewhere::{pass, redirect};
pub(crate) use pathways::demand_of;
pub(super) use pathways::{Form, are_listed, book, hear, listed_in, listed_live, refuse};

use super::{
    Context,
    reply::{Negotiation, SelectedRepresentation, etag},
};
use crate::{
    cluster::Start,
    library::{PlacePath, fingerprint},
};
use bytes::Bytes;
use http::HeaderValue;
use millpond_cluster::ObjectKey;
use millpond_http::body::Body;
use serde_json::json;

/// Seconds after which players ask for a steering manifest again.
const ASK_AGAIN: u32 = 10;

/// Returns the steering manifest of an asset or live stream (draft-pantos-hls-rfc8216bis 7.2, ETSI TS 103 998 clause 6): the nodes, the best first.
pub(super) async fn manifest(context: &Context<'_>, asset: Option<&str>) -> Option<SelectedRepresentation> {
    let front = context.front;
    let cluster = front.cluster().filter(|cluster| cluster.steers())?;
    let PlacePath { name: place, inside, .. } = front.place(asset?)?;
    let of_stream = front.sources.copied_key(&front.sources.find(asset?)).map(|key| (key, Start::Live));
    let (key, start) = of_stream.unwrap_or_else(|| (ObjectKey::new(place, inside), Start::Stored));
    let order = cluster.listed((&key, start), None, context.is_secure()).await;
    let order: Vec<_> = order.iter().map(|(name, _)| name.as_str()).collect();
    let manifest = json!({ "VERSION": 1, "TTL": ASK_AGAIN, "PATHWAY-PRIORITY": order }).to_string();
    Some(SelectedRepresentation {
        content_type: HeaderValue::from_static("application/vnd.apple.steering-list"),
        cache_control: HeaderValue::from_static("no-store"),
        etag: etag(fingerprint(manifest.as_bytes())),
        modified: None,
        more: Vec::new(),
        negotiation: Negotiation::Fixed,
        body: Body::bytes(Bytes::from(manifest)),
    })
}
