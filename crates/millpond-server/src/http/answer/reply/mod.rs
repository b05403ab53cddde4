//! Replies, and the facts about them that logs and metrics need.

mod caching;
mod dates;
mod failure;
mod html;
mod plain;
mod representation;

pub(super) use caching::CacheControl;
pub(super) use dates::utc;
pub(crate) use failure::refusal;
pub(super) use failure::{failure, problem};
pub(super) use html::{escaped, source};
pub(super) use plain::put_page;
pub(super) use representation::{Negotiation, SelectedRepresentation, etag};

use super::viewers::Receipt;
use crate::{http::Kind, problem::Problem, storage::PlaceBytes};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use millpond_access::{ClientHold, Pass};
use millpond_http::{
    body::Body,
    wire::{self, Held},
};
use millpond_logging::RequestId;
use std::time::{Duration, SystemTime};

/// A reply: head and body.
pub(crate) struct Reply {
    /// Status code.
    pub(crate) status: StatusCode,
    /// Header fields, except those of the connection and its framing.
    pub(crate) headers: HeaderMap,
    /// Body, empty for replies without one.
    pub(crate) body: Body,
    /// Whether the connection takes no request after it, so that another process of the server accepts the next one.
    pub(crate) is_last: bool,
    /// The failure that the body describes; `None` for all other replies.
    pub(super) problem: Option<Box<Problem>>,
}

impl Reply {
    /// Creates a reply.
    pub(super) fn new(status: StatusCode, headers: HeaderMap, body: Body) -> Self {
        Self { status, headers, body, is_last: false, problem: None }
    }

    /// Creates a reply with an empty body.
    pub(super) fn without_body(status: StatusCode, headers: HeaderMap) -> Self {
        Self::new(status, headers, Body::empty())
    }
}

impl From<Reply> for wire::Reply {
    fn from(Reply { status, headers, body, is_last, .. }: Reply) -> Self {
        Self { status, headers, body, is_last }
    }
}

/// Facts about a reply for logs and metrics.
#[derive(Debug)]
pub(crate) struct ReplyInfo {
    /// Identity of the request, in the log and in a header field.
    pub(crate) id: RequestId,
    /// Label in metrics.
    pub(crate) kind: Kind,
    /// Counter of the place that the body comes from.
    pub(crate) place: Option<PlaceBytes>,
    /// Time from the request's head to the first byte of the body, once that is there.
    pub(crate) first_byte: Option<Duration>,
    /// Time for which the reply was held until a live stream had what was asked for.
    pub(crate) waited: Duration,
    /// Whether the body counts its bytes while it is sent.
    pub(crate) counts_itself: bool,
    /// Counts the response as in progress, if it is one of those that count.
    pub(crate) in_flight: Option<Held>,
    /// Reports the end of a segment to the prefetcher when it is dropped.
    pub(crate) receipt: Option<Receipt>,
    /// Whether another node of the cluster asks, and has proved that.
    pub(crate) is_of_node: bool,
    /// The admission of the request, which may end before the reply does.
    pub(crate) pass: Pass,
    /// Counts the response among those of its client and token.
    pub(crate) hold: ClientHold,
}

/// Adds the fields that every reply has.
pub(super) fn add_common_fields(headers: &mut HeaderMap, id: RequestId) {
    headers.insert(RequestId::HEADER, id.header_value());
    if let Some(now) = dates::field(SystemTime::now()) {
        headers.insert(header::DATE, now);
    }
    headers.insert(header::SERVER, HeaderValue::from_static("millpond"));
}
