//! Replies, and their bytes.

use millpond_rtp::message::{
    HeaderName, Method, Request, Response, StatusCode, Version,
    headers::{CONTENT_TYPE, CSEQ, SERVER, WWW_AUTHENTICATE},
};
use std::fmt::Display;

/// A reply to an RTSP request.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) headers: Vec<(HeaderName, String)>,
    /// Values of `WWW-Authenticate`, each written as a header of its own: few clients find the second one in a common
    /// header.
    pub(super) challenges: Vec<String>,
    pub(super) body: Vec<u8>,
    /// Reason of a refusal, for the log.
    pub(super) why: Option<String>,
    /// Reason of a refusal, for the client.
    told: Option<Box<str>>,
}

impl Reply {
    pub(super) fn new(status: StatusCode) -> Self {
        Self { status, headers: Vec::new(), challenges: Vec::new(), body: Vec::new(), why: None, told: None }
    }

    pub(super) fn ok() -> Self {
        Self::new(StatusCode::Ok)
    }

    /// Creates a reply that asks for credentials.
    pub(super) fn challenge(challenges: Vec<String>) -> Self {
        Self { challenges, ..Self::new(StatusCode::Unauthorized) }
    }

    /// Creates a reply that refuses a request, with the reason for the log and the client.
    pub(super) fn refusal(status: StatusCode, why: impl Display) -> Self {
        let why = why.to_string();
        Self { told: Some(why.clone().into()), why: Some(why), ..Self::new(status) }
    }

    /// Sets words for the client that differ from the log's.
    pub(super) fn telling(self, words: impl Into<Box<str>>) -> Self {
        Self { told: Some(words.into()), ..self }
    }

    pub(super) fn with(mut self, name: HeaderName, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Returns the bytes of the reply to a request.
    pub(super) fn to_bytes(&self, request: &Request<Vec<u8>>) -> Vec<u8> {
        let mut builder = Response::builder(Version::V1_0, self.status).header(SERVER, "millpond");
        if self.status == StatusCode::Ok {
            // The reason phrase of RFC 2326 7.1.1.
            builder = builder.reason_phrase("OK");
        }
        // A CSeq that is no number is not returned.
        if let Some(number) = request.header(&CSEQ).filter(|number| number.as_str().parse::<u64>().is_ok()) {
            builder = builder.header(CSEQ, number.as_str());
        }
        for (name, value) in &self.headers {
            builder = builder.header(name.clone(), value.as_str());
        }
        // The status line has the standard's reason phrase. As in HTTP, a body explains an error (RFC 2326 11.3, RFC 7826 17.4).
        let told = self.told.as_ref().map(|told| format!("{told}\r\n"));
        if told.is_some() {
            builder = builder.header(CONTENT_TYPE, "text/plain; charset=utf-8");
        }
        let body = told.as_ref().map_or(self.body.as_slice(), String::as_bytes);
        let response = builder.build(body);
        let mut bytes = Vec::with_capacity(512 + body.len());
        // A write into memory cannot fail.
        let _ = response.write(&mut bytes);
        let first = bytes.windows(2).position(|two| two == b"\r\n").map_or(bytes.len(), |at| at + 2);
        let line = |challenge: &String| format!("{WWW_AUTHENTICATE}: {challenge}\r\n").into_bytes();
        bytes.splice(first..first, self.challenges.iter().flat_map(line));
        bytes
    }
}

/// The supported methods.
pub(super) const PUBLIC: &str = "OPTIONS, DESCRIBE, SETUP, PLAY, PAUSE, TEARDOWN, GET_PARAMETER, SET_PARAMETER";

/// The supported methods of a server that takes publications.
pub(super) const PUBLIC_TO_PUBLISHERS: &str =
    "OPTIONS, DESCRIBE, SETUP, PLAY, PAUSE, TEARDOWN, GET_PARAMETER, SET_PARAMETER, ANNOUNCE, RECORD";

/// Returns the name of a request's method for the log.
pub(super) fn name(method: &Method) -> &str {
    match method {
        Method::Announce => "ANNOUNCE",
        Method::Describe => "DESCRIBE",
        Method::GetParameter => "GET_PARAMETER",
        Method::Options => "OPTIONS",
        Method::Pause => "PAUSE",
        Method::Play => "PLAY",
        Method::Record => "RECORD",
        Method::SetParameter => "SET_PARAMETER",
        Method::Setup => "SETUP",
        Method::Teardown => "TEARDOWN",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_stand_in_lines_of_their_own() {
        let request = Request::builder(Method::Describe, Version::V1_0).header(CSEQ, "3").build(Vec::new());
        let bytes = Reply::challenge(vec!["Digest a=1".into(), "Digest b=2".into()]).to_bytes(&request);
        let text = String::from_utf8(bytes).unwrap();
        let start = "RTSP/1.0 401 Unauthorized\r\nWWW-Authenticate: Digest a=1\r\nWWW-Authenticate: Digest b=2\r\n";
        assert!(text.starts_with(start) && text.contains("CSeq: 3\r\n") && text.ends_with("\r\n\r\n"), "{text}");
        assert!(!String::from_utf8(Reply::ok().to_bytes(&request)).unwrap().contains("WWW"));
    }

    #[test]
    fn a_refusal_tells_its_reason_in_a_body() {
        let request = Request::builder(Method::Setup, Version::V1_0).header(CSEQ, "4").build(Vec::new());
        let text = |reply: &Reply| String::from_utf8(reply.to_bytes(&request)).unwrap();
        let reply = Reply::refusal(StatusCode::NotFound, "no track \"é1\"");
        let told = text(&reply);
        assert!(told.starts_with("RTSP/1.0 404 Not Found\r\n"), "{told}");
        assert!(told.contains("Content-Type: text/plain; charset=utf-8\r\n"), "{told}");
        assert!(told.contains("Content-Length: 16\r\n") && told.ends_with("\r\n\r\nno track \"é1\"\r\n"), "{told}");
        let reply = Reply::refusal(StatusCode::BadGateway, "http://origin/ failed").telling("the storage failed");
        assert_eq!(reply.why.as_deref(), Some("http://origin/ failed"));
        assert!(!text(&reply).contains("origin") && text(&reply).ends_with("\r\n\r\nthe storage failed\r\n"));
    }
}
