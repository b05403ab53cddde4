//! Replies, as they are written.

use millpond_rtp::message::{
    HeaderName, Method, Request, Response, StatusCode, Version,
    headers::{CSEQ, SERVER},
};

/// What is sent back.
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) headers: Vec<(HeaderName, String)>,
    pub(super) body: Vec<u8>,
}

impl Reply {
    pub(super) fn new(status: StatusCode) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new() }
    }

    pub(super) fn ok() -> Self {
        Self::new(StatusCode::Ok)
    }

    pub(super) fn with(mut self, name: HeaderName, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// As bytes, in answer to a request.
    pub(super) fn to_bytes(&self, request: &Request<Vec<u8>>) -> Vec<u8> {
        let mut builder = Response::builder(Version::V1_0, self.status).header(SERVER, "millpond");
        if let Some(number) = request.header(&CSEQ) {
            builder = builder.header(CSEQ, number.as_str());
        }
        for (name, value) in &self.headers {
            builder = builder.header(name.clone(), value.as_str());
        }
        let response = builder.build(self.body.as_slice());
        let mut bytes = Vec::with_capacity(512 + self.body.len());
        // Into memory: nothing that can fail.
        let _ = response.write(&mut bytes);
        bytes
    }
}

/// The methods that there are.
pub(super) const PUBLIC: &str = "OPTIONS, DESCRIBE, SETUP, PLAY, PAUSE, TEARDOWN, GET_PARAMETER, SET_PARAMETER";

/// What a request's method is called in the log.
pub(super) fn name(method: &Method) -> &str {
    match method {
        Method::Describe => "DESCRIBE",
        Method::GetParameter => "GET_PARAMETER",
        Method::Options => "OPTIONS",
        Method::Pause => "PAUSE",
        Method::Play => "PLAY",
        Method::SetParameter => "SET_PARAMETER",
        Method::Setup => "SETUP",
        Method::Teardown => "TEARDOWN",
        _ => "other",
    }
}
