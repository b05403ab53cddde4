//! What a request asks for, before preconditions and ranges make a reply of it.

use super::{
    Reply, Request,
    coding::Coding,
    conditional::{self, Validators, Verdict},
    dates,
    range::{self, Asked},
};
use crate::delivery::Body;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use std::time::SystemTime;

/// Something that can be sent.
pub(super) struct Found {
    pub(super) content_type: HeaderValue,
    pub(super) cache_control: HeaderValue,
    /// Entity tag with its quotes, of the body without a coding.
    pub(super) etag: HeaderValue,
    pub(super) modified: Option<SystemTime>,
    /// What else the origin says of a file: its disposition, language and coding.
    pub(super) more: Vec<(HeaderName, HeaderValue)>,
    /// The body's coding, where clients choose it.
    pub(super) coded: Coded,
    pub(super) body: Body,
}

/// How the coding of a body was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coded {
    /// There is no choice.
    Never,
    /// Clients choose one; this one gets none.
    No,
    /// In the coding that the client prefers.
    As(Coding),
}

impl Found {
    /// Applies preconditions and ranges, and writes the header fields.
    pub(super) fn reply(self, request: &Request) -> Reply {
        let mut headers = HeaderMap::with_capacity(16);
        let etag = self.coded_etag();
        let now = Validators { etag: etag.to_str().unwrap_or_default(), modified: self.modified };
        let verdict = conditional::evaluate(request, &now);
        // Range is defined for GET alone (RFC 9110 14.2).
        let ranged = request.method == Method::GET && conditional::range_applies(request, &now);
        let range = request.single(header::RANGE).value().filter(|_| ranged);
        headers.insert(header::ETAG, etag);
        headers.insert(header::CACHE_CONTROL, self.cache_control);
        if self.coded != Coded::Never {
            headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        }
        if let Some(modified) = self.modified.and_then(dates::field) {
            headers.insert(header::LAST_MODIFIED, modified);
        }
        match verdict {
            Verdict::NotModified => return Reply { status: StatusCode::NOT_MODIFIED, headers, body: Body::empty() },
            Verdict::Failed => return Reply { status: StatusCode::PRECONDITION_FAILED, headers, body: Body::empty() },
            Verdict::Send => {}
        }
        headers.insert(header::CONTENT_TYPE, self.content_type);
        headers.extend(self.more);
        if let Coded::As(coding) = self.coded {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding.name()));
        }
        let Some(len) = self.body.len() else { return Reply { status: StatusCode::OK, headers, body: self.body } };
        headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        match range::parse(range, len) {
            Asked::Whole => Reply { status: StatusCode::OK, headers, body: self.body },
            Asked::Part(part) => {
                insert(&mut headers, header::CONTENT_RANGE, &format!("bytes {}-{}/{len}", part.start, part.end - 1));
                Reply { status: StatusCode::PARTIAL_CONTENT, headers, body: self.body.slice(part) }
            }
            Asked::Unsatisfiable => {
                insert(&mut headers, header::CONTENT_RANGE, &format!("bytes */{len}"));
                for name in [header::CONTENT_TYPE, header::CONTENT_ENCODING, header::CONTENT_DISPOSITION] {
                    headers.remove(name);
                }
                Reply { status: StatusCode::RANGE_NOT_SATISFIABLE, headers, body: Body::empty() }
            }
        }
    }

    /// The entity tag: each coding of a body has its own (RFC 9110 8.8.3.3).
    fn coded_etag(&self) -> HeaderValue {
        let Coded::As(coding) = self.coded else { return self.etag.clone() };
        let own = self.etag.to_str().ok().and_then(|etag| etag.strip_suffix('"'));
        let coded = own.and_then(|own| HeaderValue::from_str(&format!("{own}-{}\"", coding.name())).ok());
        coded.unwrap_or_else(|| self.etag.clone())
    }
}

/// The entity tag that a hash is.
pub(super) fn etag(hash: u64) -> HeaderValue {
    // Of digits and quotes only.
    HeaderValue::from_str(&format!("\"{hash:016x}\"")).unwrap_or(HeaderValue::from_static("\"\""))
}

/// Sets a field whose value is text; what can't be one is left out.
pub(super) fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}
