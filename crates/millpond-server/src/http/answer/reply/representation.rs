//! The selected representation of a resource (RFC 9110 section 3.2), and the reply that it becomes.

use super::{Reply, dates};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use millpond_http::{
    body::Body,
    request::{
        Request,
        coding::Coding,
        conditional::{self, Precondition, Validators},
        range::{self, RequestedRange},
    },
};
use std::time::SystemTime;

/// Metadata and body of a resource, before preconditions and ranges apply.
pub(in crate::http::answer) struct SelectedRepresentation {
    /// Value of `Content-Type`.
    pub(in crate::http::answer) content_type: HeaderValue,
    /// Value of `Cache-Control`.
    pub(in crate::http::answer) cache_control: HeaderValue,
    /// Entity tag of the uncoded body, with its quotes.
    pub(in crate::http::answer) etag: HeaderValue,
    /// Time of the last modification, if it is known.
    pub(in crate::http::answer) modified: Option<SystemTime>,
    /// Further fields of the origin: disposition, language and coding of a file.
    pub(in crate::http::answer) more: Vec<(HeaderName, HeaderValue)>,
    /// Choice of the body's coding.
    pub(in crate::http::answer) negotiation: Negotiation,
    /// Whole body.
    pub(in crate::http::answer) body: Body,
}

/// Choice of a content coding (RFC 9110 section 12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http::answer) enum Negotiation {
    /// The coding does not depend on the request.
    Fixed,
    /// The coding depends on the request. This body has none.
    Uncoded,
    /// The body has the coding that the client prefers.
    Coded(Coding),
}

impl SelectedRepresentation {
    /// Applies preconditions and ranges, and adds the header fields.
    pub(in crate::http::answer) fn reply(self, request: &Request) -> Reply {
        let mut headers = HeaderMap::with_capacity(16);
        let etag = self.coded_etag();
        let now = Validators { etag: etag.to_str().unwrap_or_default(), modified: self.modified };
        let precondition = conditional::evaluate(request, &now);
        // Only GET has ranges (RFC 9110 section 14.2).
        let may_have_range = request.method == Method::GET && conditional::range_applies(request, &now);
        let range = request.single(header::RANGE).valid().filter(|_| may_have_range);
        headers.insert(header::ETAG, etag);
        headers.insert(header::CACHE_CONTROL, self.cache_control);
        if self.negotiation != Negotiation::Fixed {
            headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        }
        if let Some(modified) = self.modified.and_then(dates::field) {
            headers.insert(header::LAST_MODIFIED, modified);
        }
        match precondition {
            Precondition::NotModified => return Reply::without_body(StatusCode::NOT_MODIFIED, headers),
            Precondition::Failed => return Reply::without_body(StatusCode::PRECONDITION_FAILED, headers),
            Precondition::Met => {}
        }
        headers.insert(header::CONTENT_TYPE, self.content_type);
        headers.extend(self.more);
        if let Negotiation::Coded(coding) = self.negotiation {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding.name()));
        }
        let Some(len) = self.body.len() else { return Reply::new(StatusCode::OK, headers, self.body) };
        headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        match range::parse(range, len) {
            RequestedRange::Whole => Reply::new(StatusCode::OK, headers, self.body),
            RequestedRange::Bytes(range) => {
                insert(&mut headers, header::CONTENT_RANGE, &format!("bytes {}-{}/{len}", range.start, range.end - 1));
                Reply::new(StatusCode::PARTIAL_CONTENT, headers, self.body.slice(range))
            }
            RequestedRange::Unsatisfiable => {
                insert(&mut headers, header::CONTENT_RANGE, &format!("bytes */{len}"));
                for name in [header::CONTENT_TYPE, header::CONTENT_ENCODING, header::CONTENT_DISPOSITION] {
                    headers.remove(name);
                }
                Reply::without_body(StatusCode::RANGE_NOT_SATISFIABLE, headers)
            }
        }
    }

    /// Returns the entity tag. Each coding of a body has its own (RFC 9110 section 8.8.3.3).
    fn coded_etag(&self) -> HeaderValue {
        let Negotiation::Coded(coding) = self.negotiation else { return self.etag.clone() };
        let own = self.etag.to_str().ok().and_then(|etag| etag.strip_suffix('"'));
        let coded = own.and_then(|own| HeaderValue::from_str(&format!("{own}-{}\"", coding.name())).ok());
        coded.unwrap_or_else(|| self.etag.clone())
    }
}

/// Returns the entity tag of a hash.
pub(in crate::http::answer) fn etag(hash: u64) -> HeaderValue {
    // Digits and quotes are always valid.
    HeaderValue::from_str(&format!("\"{hash:016x}\"")).unwrap_or(HeaderValue::from_static("\"\""))
}

/// Sets a field. A text that is no valid value is left out.
fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}
