//! Conditional requests (RFC 9110 section 13).

use super::{Request, Single};
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
    if let Some(met) = lists(request, header::IF_MATCH, now.etag, false) {
        if !met {
            return Verdict::Failed;
        }
    } else if let Some(since) = date(request, header::IF_UNMODIFIED_SINCE)
        && now.modified.is_some_and(|m| seconds(m) > seconds(since))
    {
        return Verdict::Failed;
    }
    if let Some(held) = lists(request, header::IF_NONE_MATCH, now.etag, true) {
        return if held { Verdict::NotModified } else { Verdict::Send };
    }
    match (date(request, header::IF_MODIFIED_SINCE), now.modified) {
        (Some(since), Some(modified)) if seconds(modified) <= seconds(since) => Verdict::NotModified,
        _ => Verdict::Send,
    }
}

/// Whether a `Range` field counts: there is no `If-Range`, or it names what is there now (13.1.5).
pub(crate) fn range_applies(request: &Request, now: &Validators<'_>) -> bool {
    let value = match request.single(header::IF_RANGE) {
        Single::Absent => return true,
        Single::Invalid => return false,
        Single::Value(value) => value.trim(),
    };
    if value.starts_with('"') || value.starts_with("W/") {
        return value == now.etag && !value.starts_with("W/");
    }
    match (httpdate::parse_http_date(value), now.modified) {
        (Ok(date), Some(modified)) => seconds(date) == seconds(modified),
        _ => false,
    }
}

/// Whether a list of entity tags, over all fields of its name, has the one given; `None` without such a field.
fn lists(request: &Request, name: http::HeaderName, etag: &str, weak: bool) -> Option<bool> {
    let mut fields = request.headers.get_all(name).iter().peekable();
    fields.peek()?;
    Some(fields.any(|field| matches(field.as_bytes(), etag.as_bytes(), weak)))
}

/// Whether a list of entity tags has the one given. A comma inside the quotes belongs to the tag (8.8.3).
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
            // No entity tag: as far as the next comma it is nothing's name.
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

fn date(request: &Request, name: http::HeaderName) -> Option<SystemTime> {
    httpdate::parse_http_date(request.single(name).value()?.trim()).ok()
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
        let mut headers = http::HeaderMap::new();
        for (name, value) in fields {
            headers.append(name, value.parse().unwrap());
        }
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
        let twice = [(header::IF_NONE_MATCH, "\"b\""), (header::IF_NONE_MATCH, "\"a\"")];
        assert_eq!(verdict(&twice), Verdict::NotModified, "a list goes on in the next field");
        let dates = [(header::IF_MODIFIED_SINCE, same), (header::IF_MODIFIED_SINCE, same)];
        assert_eq!(verdict(&dates), Verdict::Send, "of two dates neither counts");
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
