//! Conditional requests (RFC 9110 section 13).

use super::{FieldValue, Request};
use http::{HeaderName, header};
use std::time::SystemTime;

/// Validators of the current representation of a resource.
#[derive(Clone, Copy, Debug)]
pub struct Validators<'a> {
    /// Entity tag with its quotes.
    pub etag: &'a str,
    /// Time of the last modification, if it is known.
    pub modified: Option<SystemTime>,
}

/// The result of evaluating the preconditions of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// The reply is sent.
    Met,
    /// The client's copy is current: status 304.
    NotModified,
    /// A precondition is false: status 412.
    Failed,
}

/// Evaluates the preconditions in the order of RFC 9110 section 13.2.2.
pub fn evaluate(request: &Request, now: &Validators<'_>) -> Precondition {
    if let Some(met) = lists(request, header::IF_MATCH, now.etag, false) {
        if !met {
            return Precondition::Failed;
        }
    } else if let Some(since) = date(request, header::IF_UNMODIFIED_SINCE)
        && now.modified.is_some_and(|m| seconds(m) > seconds(since))
    {
        return Precondition::Failed;
    }
    if let Some(held) = lists(request, header::IF_NONE_MATCH, now.etag, true) {
        return if held { Precondition::NotModified } else { Precondition::Met };
    }
    match (date(request, header::IF_MODIFIED_SINCE), now.modified) {
        (Some(since), Some(modified)) if seconds(modified) <= seconds(since) => Precondition::NotModified,
        _ => Precondition::Met,
    }
}

/// Tells whether a `Range` field applies: without `If-Range`, or if that names the current representation (RFC 9110
/// section 13.1.5).
pub fn range_applies(request: &Request, now: &Validators<'_>) -> bool {
    let value = match request.single(header::IF_RANGE) {
        FieldValue::Absent => return true,
        FieldValue::Invalid => return false,
        FieldValue::Valid(value) => value.trim(),
    };
    if value.starts_with('"') || value.starts_with("W/") {
        return value == now.etag && !value.starts_with("W/");
    }
    match (httpdate::parse_http_date(value), now.modified) {
        (Ok(date), Some(modified)) => seconds(date) == seconds(modified),
        _ => false,
    }
}

/// Tells whether the entity tags in all fields of a name include `etag`. Returns `None` without such a field.
fn lists(request: &Request, name: HeaderName, etag: &str, weak: bool) -> Option<bool> {
    let mut fields = request.headers.get_all(name).iter().peekable();
    fields.peek()?;
    Some(fields.any(|field| matches(field.as_bytes(), etag.as_bytes(), weak)))
}

/// Tells whether a list of entity tags includes `etag`. A comma inside quotes belongs to the tag (RFC 9110 section
/// 8.8.3).
fn matches(list: &[u8], etag: &[u8], weak: bool) -> bool {
    let strong = etag.strip_prefix(b"W/");
    let (bare, is_weak) = (strong.unwrap_or(etag), strong.is_some());
    let mut rest = list.trim_ascii();
    if rest == b"*" {
        return true;
    }
    while !rest.is_empty() {
        let (tag, tag_is_weak) = match rest.strip_prefix(b"W/") {
            Some(tag) => (tag, true),
            None => (rest, false),
        };
        let quoted = tag.strip_prefix(b"\"").and_then(|inner| inner.iter().position(|b| *b == b'"'));
        let end = match quoted {
            Some(at) => at + 2,
            // A member that is no entity tag is skipped up to the next comma.
            None => tag.iter().position(|b| *b == b',').unwrap_or(tag.len()),
        };
        if quoted.is_some() && tag[..end] == *bare && (weak || !(tag_is_weak || is_weak)) {
            return true;
        }
        rest = tag[end..].trim_ascii_start();
        rest = rest.strip_prefix(b",").unwrap_or(rest).trim_ascii_start();
        if quoted.is_none() && end == 0 && tag.first() != Some(&b',') {
            break;
        }
    }
    false
}

/// Returns the date in a field that occurs once.
fn date(request: &Request, name: HeaderName) -> Option<SystemTime> {
    httpdate::parse_http_date(request.single(name).valid()?.trim()).ok()
}

/// Returns the whole seconds of a time: HTTP dates have no fractions.
fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn request(fields: &[(http::HeaderName, &str)]) -> Request {
        let mut headers = http::HeaderMap::new();
        for (name, value) in fields {
            headers.append(name, value.parse().unwrap());
        }
        Request::new(http::Method::GET, "/".to_owned(), headers)
    }

    #[test]
    fn preconditions_in_order() {
        let modified = SystemTime::UNIX_EPOCH + Duration::new(784_111_777, 5);
        let now = Validators { etag: "\"a\"", modified: Some(modified) };
        let verdict = |fields: &[_]| evaluate(&request(fields), &now);
        let same = "Sun, 06 Nov 1994 08:49:37 GMT";
        let before = "Sun, 06 Nov 1994 08:49:36 GMT";
        assert_eq!(verdict(&[]), Precondition::Met);
        assert_eq!(verdict(&[(header::IF_NONE_MATCH, "\"b\", W/\"a\"")]), Precondition::NotModified);
        assert_eq!(verdict(&[(header::IF_NONE_MATCH, "\"b\"")]), Precondition::Met);
        assert_eq!(verdict(&[(header::IF_NONE_MATCH, "\"b\""), (header::IF_MODIFIED_SINCE, same)]), Precondition::Met);
        assert_eq!(verdict(&[(header::IF_MODIFIED_SINCE, same)]), Precondition::NotModified);
        assert_eq!(verdict(&[(header::IF_MODIFIED_SINCE, before)]), Precondition::Met);
        assert_eq!(verdict(&[(header::IF_MATCH, "\"b\"")]), Precondition::Failed);
        assert_eq!(verdict(&[(header::IF_MATCH, "*")]), Precondition::Met);
        assert_eq!(verdict(&[(header::IF_UNMODIFIED_SINCE, before)]), Precondition::Failed);
        let twice = [(header::IF_NONE_MATCH, "\"b\""), (header::IF_NONE_MATCH, "\"a\"")];
        assert_eq!(verdict(&twice), Precondition::NotModified, "a list goes on in the next field");
        let dates = [(header::IF_MODIFIED_SINCE, same), (header::IF_MODIFIED_SINCE, same)];
        assert_eq!(verdict(&dates), Precondition::Met, "of two dates neither counts");
        assert!(!range_applies(&request(&[(header::IF_RANGE, "\"a\""), (header::IF_RANGE, "\"a\"")]), &now));
        let range = |value| range_applies(&request(&[(header::IF_RANGE, value)]), &now);
        assert!(range("\"a\"") && range(same));
        assert!(!range("\"b\"") && !range("W/\"a\"") && !range(before));
    }

    #[test]
    fn lists_of_tags() {
        let has = |list: &str, etag: &str, weak| matches(list.as_bytes(), etag.as_bytes(), weak);
        assert!(has("\"a,b\"", "\"a,b\"", false) && has(" \"x\" ,, W/\"a\"", "\"a\"", true));
        assert!(!has("\"a,b\"", "\"a\"", true) && !has("W/\"a\"", "\"a\"", false));
        assert!(!has("\"a\", *", "\"b\"", true) && has(" * ", "\"b\"", false));
        assert!(has("x, \"a\"", "\"a\"", false) && has("W/\"a\"", "W/\"a\"", true) && !has("\"a\"", "W/\"a\"", false));
        for odd in ["", ",", "\"", "W/", "\"a", "a", "W/W/\"a\"", ",,,\"", "\"\"\"a"] {
            assert!(!has(odd, "\"a\"", true), "{odd}");
        }
    }
}
