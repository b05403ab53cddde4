//! Conditional requests (RFC 9110 section 13).

use super::Request;
use http::header;
use std::time::SystemTime;

/// What a resource is now.
pub(crate) struct Validators<'a> {
    /// Entity tag with its quotes.
    pub(crate) etag: &'a str,
    pub(crate) modified: Option<SystemTime>,
}

/// What the preconditions say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Send,
    /// 304
    NotModified,
    /// 412
    Failed,
}

/// Evaluates the preconditions in the order of 13.2.2.
pub(crate) fn evaluate(request: &Request, now: &Validators<'_>) -> Verdict {
    if let Some(wanted) = request.header(header::IF_MATCH) {
        if !matches(wanted, now.etag, false) {
            return Verdict::Failed;
        }
    } else if let Some(since) = date(request, header::IF_UNMODIFIED_SINCE)
        && now.modified.is_some_and(|m| seconds(m) > seconds(since))
    {
        return Verdict::Failed;
    }
    if let Some(held) = request.header(header::IF_NONE_MATCH) {
        return if matches(held, now.etag, true) { Verdict::NotModified } else { Verdict::Send };
    }
    match (date(request, header::IF_MODIFIED_SINCE), now.modified) {
        (Some(since), Some(modified)) if seconds(modified) <= seconds(since) => Verdict::NotModified,
        _ => Verdict::Send,
    }
}

/// Whether a `Range` field counts: there is no `If-Range`, or it names what is there now (13.1.5).
pub(crate) fn range_applies(request: &Request, now: &Validators<'_>) -> bool {
    let Some(value) = request.header(header::IF_RANGE) else { return true };
    if value.starts_with('"') || value.starts_with("W/") {
        return value == now.etag && !value.starts_with("W/");
    }
    match (httpdate::parse_http_date(value), now.modified) {
        (Ok(date), Some(modified)) => seconds(date) == seconds(modified),
        _ => false,
    }
}

fn matches(list: &str, etag: &str, weak: bool) -> bool {
    let bare = |tag: &str| -> String { tag.strip_prefix("W/").unwrap_or(tag).to_owned() };
    list.split(',')
        .map(str::trim)
        .any(|tag| tag == "*" || if weak { bare(tag) == bare(etag) } else { tag == etag && !tag.starts_with("W/") })
}

fn date(request: &Request, name: http::HeaderName) -> Option<SystemTime> {
    httpdate::parse_http_date(request.header(name)?).ok()
}

/// HTTP dates have whole seconds.
fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn request(fields: &[(http::HeaderName, &str)]) -> Request {
        let headers = fields.iter().map(|(n, v)| (n.clone(), v.parse().unwrap())).collect();
        Request { method: http::Method::GET, target: "/".to_owned(), headers }
    }

    #[test]
    fn preconditions_in_order() {
        let modified = SystemTime::UNIX_EPOCH + Duration::new(784_111_777, 5);
        let now = Validators { etag: "\"a\"", modified: Some(modified) };
        let verdict = |fields: &[_]| evaluate(&request(fields), &now);
        let same = "Sun, 06 Nov 1994 08:49:37 GMT";
        let before = "Sun, 06 Nov 1994 08:49:36 GMT";
        assert_eq!(verdict(&[]), Verdict::Send);
        assert_eq!(verdict(&[(header::IF_NONE_MATCH, "\"b\", W/\"a\"")]), Verdict::NotModified);
        assert_eq!(verdict(&[(header::IF_NONE_MATCH, "\"b\"")]), Verdict::Send);
        assert_eq!(verdict(&[(header::IF_NONE_MATCH, "\"b\""), (header::IF_MODIFIED_SINCE, same)]), Verdict::Send);
        assert_eq!(verdict(&[(header::IF_MODIFIED_SINCE, same)]), Verdict::NotModified);
        assert_eq!(verdict(&[(header::IF_MODIFIED_SINCE, before)]), Verdict::Send);
        assert_eq!(verdict(&[(header::IF_MATCH, "\"b\"")]), Verdict::Failed);
        assert_eq!(verdict(&[(header::IF_MATCH, "*")]), Verdict::Send);
        assert_eq!(verdict(&[(header::IF_UNMODIFIED_SINCE, before)]), Verdict::Failed);
        let range = |value| range_applies(&request(&[(header::IF_RANGE, value)]), &now);
        assert!(range("\"a\"") && range(same));
        assert!(!range("\"b\"") && !range("W/\"a\"") && !range(before));
    }
}
