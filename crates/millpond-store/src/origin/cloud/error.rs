//! Maps failures of object stores to errors.

use std::error::Error as _;
use std::time::Duration;

use millpond_outbound::SendError;
use object_store::Error;
use object_store::client::{HttpError, HttpErrorKind};

use crate::{
    error::{At, OriginError, Phase},
    origin::{
        ObjectMeta,
        client_error::{chain, excessive, unreachable_origin},
        cloud::connector::TooLong,
    },
};

/// Longest text of a server that an error contains, in bytes.
const DETAIL: usize = 300;

/// Context of a failed request.
#[derive(Clone, Copy)]
pub(in crate::origin) struct Request<'a> {
    pub(in crate::origin) at: &'a At,
    pub(in crate::origin) bucket: &'a str,
    pub(in crate::origin) start: u64,
    pub(in crate::origin) expected: Option<&'a ObjectMeta>,
    pub(in crate::origin) connect: Duration,
}

impl Request<'_> {
    /// Maps an error. The service's own code counts before the kind of error: a missing bucket and a missing object are
    /// both a 404.
    pub(in crate::origin) fn error(&self, error: Error) -> OriginError {
        let at = self.at.clone();
        let text = chain(&error);
        let said = Said::find(&text);
        let detail = said.detail(&text);
        if matches!(said.code, Some("NoSuchBucket" | "ContainerNotFound")) {
            let bucket = self.bucket.to_owned();
            return OriginError::NoSuchBucket { at, bucket, detail };
        }
        match &error {
            Error::NotFound { .. } => OriginError::NotFound { at },
            Error::PermissionDenied { .. } => OriginError::Forbidden { at, detail },
            Error::Unauthenticated { .. } => OriginError::Unauthorized { at, detail },
            Error::Precondition { .. } => self.changed(detail),
            Error::NotSupported { .. } | Error::NotImplemented { .. } => {
                OriginError::Unsupported { at, what: "this request" }
            }
            Error::InvalidPath { .. } => OriginError::NotFound { at },
            _ => self.generic(&error, &text, detail),
        }
    }

    fn changed(&self, detail: String) -> OriginError {
        let at = self.at.clone();
        match self.expected {
            Some(expected) => OriginError::Changed { at, expected: expected.version.clone(), found: None },
            None => OriginError::Status { at, code: 412, detail },
        }
    }

    /// Maps the errors that the client library calls generic.
    fn generic(&self, error: &Error, text: &str, detail: String) -> OriginError {
        let at = self.at.clone();
        // The addresses at which the clouds' machines and containers ask for the keys of their role.
        if ["169.254.169.254", "169.254.170.2", "metadata.google.internal", "computeMetadata"]
            .iter()
            .any(|place| text.contains(place))
        {
            return OriginError::Credentials { at, detail };
        }
        if let Some(TooLong { most, is_listing }) = cause::<TooLong>(error) {
            let what = if *is_listing { "a page of a listing" } else { "a reply" };
            let expected = format!("{what} of at most {most} bytes");
            let cure = "a longer one: the service is faulty, or the names of the folder are too long";
            return OriginError::BadReply { at, expected, found: cure.into() };
        }
        if let Some(SendError::Excess(excess)) = cause::<SendError>(error) {
            return excessive(at, *excess);
        }
        match status(text) {
            Some(416) => {
                return OriginError::OutOfRange { at, start: self.start, len: None };
            }
            Some(code) => return OriginError::Status { at, code, detail },
            None => {}
        }
        if text.contains("Received redirect without LOCATION") {
            return OriginError::Status {
                at,
                code: 301,
                detail: "the bucket is in another region: set the region".into(),
            };
        }
        if text.contains("non-partial response") {
            return OriginError::RangeIgnored { at, server: "of the bucket".into(), start: self.start };
        }
        match cause(error).map(HttpError::kind) {
            Some(HttpErrorKind::Timeout) => OriginError::Timeout { at, phase: Phase::Connect, after: self.connect },
            Some(HttpErrorKind::Decode) | None => {
                OriginError::BadReply { at, expected: "a reply of an object store".into(), found: detail }
            }
            Some(_) => unreachable_origin(self.at, error),
        }
    }
}

/// Code and message of an error document: S3, Google's XML interface and Azure name them alike.
struct Said<'a> {
    code: Option<&'a str>,
    message: Option<&'a str>,
}

impl<'a> Said<'a> {
    fn find(text: &'a str) -> Self {
        let element = |name: &str| {
            let (open, close) = (format!("<{name}>"), format!("</{name}>"));
            let rest = text.split_once(&open)?.1;
            Some(rest.split_once(&close)?.0.trim())
        };
        Self { code: element("Code"), message: element("Message") }
    }

    fn detail(&self, text: &str) -> String {
        match (self.code, self.message) {
            (Some(code), Some(message)) => shortened(&format!("{code}: {message}")),
            (Some(code), None) => shortened(code),
            _ => shortened(text),
        }
    }
}

fn shortened(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.chars().take(DETAIL).collect()
}

/// Returns the status code, which only the library's text contains.
fn status(text: &str) -> Option<u16> {
    let rest = text.split_once("non-2xx status code: ")?.1;
    rest.get(..3)?.parse().ok()
}

/// Returns the cause of a type below an error.
fn cause<T: std::error::Error + 'static>(error: &Error) -> Option<&T> {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        cause = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(error: Error) -> OriginError {
        let at = At::new("s3://bucket", "a");
        let request = Request { at: &at, bucket: "bucket", start: 5, expected: None, connect: Duration::from_secs(5) };
        request.error(error)
    }

    fn generic(text: &str) -> Error {
        Error::Generic { store: "S3", source: text.into() }
    }

    #[test]
    fn codes_of_the_service_are_passed_on() {
        let body = "Error performing GET http://h/b/a in 1ms - Server returned non-2xx status code: 403 Forbidden: \
                    <?xml version=\"1.0\"?><Error><Code>SignatureDoesNotMatch</Code><Message>check your key</Message></Error>";
        let error = map(Error::PermissionDenied { path: "a".into(), source: body.into() });
        assert!(
            matches!(&error, OriginError::Forbidden { detail, .. } if detail == "SignatureDoesNotMatch: check your key")
        );
        let missing = |code: &str| {
            map(Error::NotFound { path: "a".into(), source: format!("<Error><Code>{code}</Code></Error>").into() })
        };
        assert!(missing("NoSuchKey").is_not_found());
        assert!(matches!(missing("NoSuchBucket"), OriginError::NoSuchBucket { .. }));
        assert!(matches!(missing("ContainerNotFound"), OriginError::NoSuchBucket { .. }));
    }

    #[test]
    fn what_the_library_calls_generic_is_told_apart() {
        let busy = map(generic("Server returned non-2xx status code: 503 Service Unavailable: "));
        assert!(matches!(busy, OriginError::Status { code: 503, .. }) && busy.is_retryable());
        assert!(matches!(
            map(generic("Server returned non-2xx status code: 416 : ")),
            OriginError::OutOfRange { start: 5, .. }
        ));
        assert!(matches!(
            map(generic("Received non-partial response when range requested")),
            OriginError::RangeIgnored { .. }
        ));
        assert!(matches!(
            map(generic("Error performing PUT http://169.254.169.254/latest/api/token")),
            OriginError::Credentials { .. }
        ));
        assert!(matches!(map(generic("whatever")), OriginError::BadReply { .. }));
        let source =
            HttpError::new(HttpErrorKind::Connect, std::io::Error::from(std::io::ErrorKind::ConnectionRefused));
        let refused = Error::Generic { store: "S3", source: Box::new(source) };
        let refused = map(refused);
        assert!(matches!(refused, OriginError::Connect { .. }) && refused.is_retryable());
    }
}
