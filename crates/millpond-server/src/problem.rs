//! Errors as a client sees them: problem details in JSON (RFC 9457).

use bytes::Bytes;
use http::StatusCode;
use serde::Serialize;

use crate::library::{IndexError, LibraryError, Unplayable, work::PoolError};
use millpond_logging::RequestId;

/// Media type of a [`Problem`] (RFC 9457 section 3).
pub const CONTENT_TYPE: &str = "application/problem+json";

/// Description of a failed request for its client.
///
/// The log contains the whole error. A problem omits storage addresses, credentials and local paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Status code of the response, repeated in the body (RFC 9457 section 3.1.2).
    pub status: StatusCode,
    /// Short and the same for every occurrence of this kind of problem.
    pub title: String,
    /// About this occurrence.
    pub detail: Option<String>,
    /// The asset that was asked for, as the client named it.
    pub asset: Option<Box<str>>,
    /// Each fault of a configuration; empty otherwise.
    pub errors: Vec<String>,
    /// Why the title can't be played at all.
    pub unplayable: Option<Box<Unplayable>>,
    /// Finds the log lines of this request.
    pub request_id: Option<RequestId>,
}

#[derive(Serialize)]
struct Document<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    title: &'a str,
    status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    asset: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    errors: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    media: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'a str>,
    #[serde(rename = "request-id", skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
}

impl Problem {
    /// A problem whose title is the reason phrase of `status`, as RFC 9457 section 4.2.1 asks of `about:blank`.
    pub fn new(status: StatusCode) -> Self {
        Self {
            status,
            title: status.canonical_reason().unwrap_or("Error").to_owned(),
            detail: None,
            asset: None,
            errors: Vec::new(),
            unplayable: None,
            request_id: None,
        }
    }

    /// With words about this occurrence.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// With the asset that was asked for.
    #[must_use]
    pub fn asset(mut self, asset: impl Into<String>) -> Self {
        self.asset = Some(asset.into().into_boxed_str());
        self
    }

    /// With each fault of a configuration.
    #[must_use]
    pub fn errors(mut self, errors: Vec<String>) -> Self {
        self.errors = errors;
        self
    }

    /// With the reason why the title can't be played at all. Its members extend the document (RFC 9457 section 3.2).
    #[must_use]
    pub fn unplayable(mut self, unplayable: Option<Unplayable>) -> Self {
        self.unplayable = unplayable.map(Box::new);
        self
    }

    /// With the id under which the log knows this request.
    #[must_use]
    pub fn request_id(mut self, id: RequestId) -> Self {
        self.request_id = Some(id);
        self
    }

    /// The body of the response, in the media type [`CONTENT_TYPE`].
    pub fn to_json(&self) -> Bytes {
        let unplayable = self.unplayable.as_deref();
        let document = Document {
            kind: "about:blank",
            title: &self.title,
            status: self.status.as_u16(),
            detail: self.detail.as_deref(),
            asset: self.asset.as_deref(),
            errors: &self.errors,
            code: unplayable.map(|unplayable| unplayable.code),
            media: unplayable.map(|unplayable| unplayable.media.as_slice()).unwrap_or_default(),
            command: unplayable.and_then(|unplayable| unplayable.command.as_deref()),
            request_id: self.request_id.as_ref().map(RequestId::as_str),
        };
        // Strings and a number serialise without fail; an empty body would still be a valid response.
        serde_json::to_vec(&document).map(Bytes::from).unwrap_or_default()
    }
}

/// The status code for an asset that can't be opened or made.
pub(crate) fn status(error: &LibraryError) -> StatusCode {
    match error {
        LibraryError::Index(IndexError::Origin(error)) => {
            StatusCode::from_u16(error.status()).unwrap_or(StatusCode::BAD_GATEWAY)
        }
        // The request is right and the stored media is at fault. RFC 9110 15.5.21 is about requests, but fits best.
        LibraryError::Index(IndexError::Media { .. } | IndexError::Foreign { .. })
        | LibraryError::Package { .. }
        | LibraryError::Manifest { .. }
        | LibraryError::NotOneTitle { .. }
        | LibraryError::OnlyForeign { .. }
        | LibraryError::TooMany { .. } => StatusCode::UNPROCESSABLE_ENTITY,
        LibraryError::BeingCopied { .. } => StatusCode::SERVICE_UNAVAILABLE,
        LibraryError::Index(IndexError::Refused { error, .. }) | LibraryError::Refused { error, .. } => match error {
            // The server is at fault. Another attempt fails too: the status must not ask for one.
            PoolError::Failed | PoolError::TooLarge { .. } => StatusCode::INTERNAL_SERVER_ERROR,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        },
        LibraryError::NoAsset(_) | LibraryError::NoResource { .. } => StatusCode::NOT_FOUND,
        LibraryError::BadPath { .. } => StatusCode::BAD_REQUEST,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::work::MemoryShare;

    #[test]
    fn faults_of_media_requests_and_server_have_their_status() {
        let folder = || "films".to_owned();
        let refused = |error| LibraryError::Refused { asset: folder(), error };
        for (error, expected) in [
            (LibraryError::NotOneTitle { folder: folder(), found: "3 titles".to_owned(), cure: String::new() }, 422),
            (LibraryError::TooMany { folder: folder(), what: "media", found: 300, most: 256 }, 422),
            (LibraryError::NoAsset(folder()), 404),
            (LibraryError::BadPath { path: folder(), why: "..".to_owned() }, 400),
            (LibraryError::BeingCopied { path: folder(), len: 1 }, 503),
            (refused(PoolError::Stopping), 503),
            (refused(PoolError::Failed), 500),
            (refused(PoolError::NoRoom { wanted: 9, seconds: 5, budget: 8 }), 503),
            (refused(PoolError::TooLarge { wanted: 9, most: 4, share: MemoryShare::Half, budget: 8 }), 500),
        ] {
            assert_eq!(status(&error).as_u16(), expected, "{error}");
        }
    }

    #[test]
    fn says_everything_it_knows() {
        let id = RequestId::next();
        let problem = Problem::new(StatusCode::NOT_FOUND)
            .detail("no such asset, \"films/a.mp4\"")
            .asset("films/a.mp4")
            .request_id(id);
        let value: serde_json::Value = serde_json::from_slice(&problem.to_json()).unwrap();
        assert_eq!(
            value,
            serde_json::json!({
                "type": "about:blank",
                "title": "Not Found",
                "status": 404,
                "detail": "no such asset, \"films/a.mp4\"",
                "asset": "films/a.mp4",
                "request-id": id.as_str(),
            })
        );
    }

    #[test]
    fn programs_read_why_a_title_can_not_be_played() {
        let (media, command) = (vec!["MXF".to_owned()], Some("ffmpeg -i a.mxf a.mp4".to_owned()));
        let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY);
        let problem = problem.unplayable(Some(Unplayable { code: "format", media, command }));
        let value: serde_json::Value = serde_json::from_slice(&problem.to_json()).unwrap();
        assert_eq!(value["code"], "format");
        assert_eq!(value["media"], serde_json::json!(["MXF"]));
        assert_eq!(value["command"], "ffmpeg -i a.mxf a.mp4");
    }

    #[test]
    fn leaves_out_what_it_does_not_know() {
        let body = Problem::new(StatusCode::BAD_GATEWAY).to_json();
        let body = std::str::from_utf8(&body).unwrap();
        assert_eq!(body, r#"{"type":"about:blank","title":"Bad Gateway","status":502}"#);
    }

    #[test]
    fn a_status_without_a_reason_phrase_has_a_title() {
        let status = StatusCode::from_u16(599).unwrap();
        assert_eq!(Problem::new(status).title, "Error");
    }
}
