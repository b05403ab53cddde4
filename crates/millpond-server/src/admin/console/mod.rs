//! The console: pages for operators at `/` of the admin address, their files below `/console/`.
//!
//! The files are parts of the program and load nothing from elsewhere. They contain no data: scripts fetch it from
//! `/api/v1`, with the operator's token where one is needed. The files themselves need no token.

mod files;

use super::{Reply, refuse, reply};
use crate::{http::compress, library::fingerprint, problem::Problem};
use bytes::Bytes;
use files::{FILES, File};
use http::{
    HeaderMap, HeaderName, Method, StatusCode,
    header::{self, HeaderValue},
};
use millpond_http::request::{
    Request,
    coding::Coding,
    conditional::{Precondition, Validators, evaluate},
};
use std::sync::OnceLock;

/// Bodies of the files in each coding, made at the first request for them.
static CODED: [[OnceLock<Option<Bytes>>; Coding::ALL.len()]; FILES.len()] =
    [const { [const { OnceLock::new() }; Coding::ALL.len()] }; FILES.len()];

/// Header fields of all replies. Scripts, styles and data come from this address alone, and no other page shows these in a frame.
const FIELDS: [(HeaderName, &str); 7] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=()"),
];

/// Answers a request for the console; `None` where the path is another one.
pub(super) fn answer(method: &Method, path: &str, headers: &HeaderMap) -> Option<Reply> {
    match path {
        "/console" => return Some(moved("./")),
        "/console/" => return Some(moved("../")),
        _ => {}
    }
    let index = FILES.iter().position(|file| file.path == path)?;
    if !matches!(*method, Method::GET | Method::HEAD) {
        let problem = Problem::new(StatusCode::METHOD_NOT_ALLOWED).detail("only GET and HEAD are answered here");
        let mut reply = refuse(problem);
        reply.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
        return Some(reply);
    }
    Some(file(index, &Request::new(method.clone(), path.to_owned(), headers.clone())))
}

/// The reply with a file, or without a body where the client has it.
fn file(index: usize, request: &Request) -> Reply {
    let file = &FILES[index];
    let coded = Coding::preferred(request).and_then(|coding| Some((coding, coded(index, coding)?)));
    let tag = entity_tag(file, coded.as_ref().map(|(coding, _)| *coding));
    let coding = coded.as_ref().map(|(coding, _)| coding.name());
    let (status, body) = match evaluate(request, &Validators { etag: &tag, modified: None }) {
        Precondition::Met => (StatusCode::OK, coded.map_or(Bytes::from_static(file.content), |(_, body)| body)),
        Precondition::NotModified => (StatusCode::NOT_MODIFIED, Bytes::new()),
        Precondition::Failed => (StatusCode::PRECONDITION_FAILED, Bytes::new()),
    };
    let mut reply = reply(file.kind, body);
    *reply.status_mut() = status;
    let headers = reply.headers_mut();
    // Another version of the program has other files: browsers compare each file at each load.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if let Ok(tag) = HeaderValue::try_from(tag) {
        headers.insert(header::ETAG, tag);
    }
    if let Some(coding) = coding {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding));
    }
    for (name, value) in FIELDS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    reply
}

/// A file in a coding, compressed once. The files are small: this takes a few milliseconds of the admin thread.
fn coded(index: usize, coding: Coding) -> Option<Bytes> {
    let coded =
        CODED[index][coding as usize].get_or_init(|| compress(coding, FILES[index].content).ok().map(Bytes::from));
    coded.clone()
}

/// The entity tag of a file. Each coding of it has its own (RFC 9110 section 8.8.3.3).
fn entity_tag(file: &File, coding: Option<Coding>) -> String {
    let hash = fingerprint(file.content);
    match coding {
        None => format!("\"{hash:016x}\""),
        Some(coding) => format!("\"{hash:016x}-{}\"", coding.name()),
    }
}

/// A redirect to the root: the pages' relative addresses hold there. It is relative, so that it holds below the prefix of a proxy.
fn moved(root: &'static str) -> Reply {
    let mut reply = reply("text/plain; charset=utf-8", "the console is at /\n");
    *reply.status_mut() = StatusCode::PERMANENT_REDIRECT;
    reply.headers_mut().insert(header::LOCATION, HeaderValue::from_static(root));
    reply
}

#[cfg(test)]
mod tests;
