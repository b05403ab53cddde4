//! Checks the head of a reply to a ranged request, without I/O.

use std::ops::Range;
use std::time::SystemTime;

use http::HeaderMap;
use http::header::{
    CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG,
    HeaderName, LAST_MODIFIED, SERVER,
};

use crate::{
    error::{At, OriginError},
    freshness::Freshness,
    origin::{ObjectMeta, kept, shown},
    tags::StatedTags,
    version::{Version, is_strong},
};

/// Most bytes of an unwanted beginning that are read and dropped where a server ignores ranges: enough for subtitles.
pub(crate) const SKIP: u64 = 1024 * 1024;

/// The use of a reply's body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    /// Metadata of the object.
    pub(crate) meta: ObjectMeta,
    /// The range to deliver.
    pub(crate) range: Range<u64>,
    /// Bytes of the body before the range.
    pub(crate) skip: u64,
}

/// Longest object: lengths beyond it are mistakes, and 64-bit floats have no exact number for them.
const LONGEST: u64 = 1 << 53;

/// The requested range and version.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) at: &'a At,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) expected: Option<&'a ObjectMeta>,
    /// Most bytes of an unwanted beginning, where the server ignores the range.
    pub(crate) skip: u64,
}

impl Asked<'_> {
    /// Checks a reply that has a body: 200 or 206.
    pub(crate) fn judge(&self, status: u16, headers: &HeaderMap) -> Result<Taken, OriginError> {
        self.check_encoding(headers)?;
        match status {
            206 => self.partial(headers),
            _ => self.whole(headers),
        }
    }

    /// Checks a partial body. It must begin at the requested offset (RFC 9110 14.4 and 15.3.7).
    fn partial(&self, headers: &HeaderMap) -> Result<Taken, OriginError> {
        let text = text(headers, &CONTENT_RANGE);
        let Some(found) = text.and_then(ContentRange::parse) else {
            return Err(self.bad(&format!("Content-Range of bytes from {}", self.start), text.unwrap_or("none")));
        };
        let len = match (found.len, self.expected) {
            (Some(len), _) => len,
            (None, Some(expected)) => expected.len,
            (None, None) => {
                return Err(self.bad("Content-Range with the length of the object", "`*`"));
            }
        };
        let meta = self.checked(meta(headers, len))?;
        let range = self.start..self.end.min(len);
        // A server may send a shorter range; the rest is requested when the body ends.
        if found.start != range.start || found.end > range.end || range.is_empty() {
            let expected = format!("Content-Range of {range:?}");
            return Err(self.bad(&expected, text.unwrap_or_default()));
        }
        Ok(Taken { meta, range, skip: 0 })
    }

    /// Checks a reply with the whole object: a server may ignore ranges (RFC 9110 14.2).
    fn whole(&self, headers: &HeaderMap) -> Result<Taken, OriginError> {
        let Some(len) = content_length(headers) else {
            return Err(self.bad("Content-Length", "none"));
        };
        let meta = self.checked(meta(headers, len))?;
        if self.start > len {
            return Err(OriginError::OutOfRange { at: self.at.clone(), start: self.start, len: Some(len) });
        }
        if self.start > self.skip {
            return Err(OriginError::RangeIgnored {
                at: self.at.clone(),
                server: shown(text(headers, &SERVER).unwrap_or("without a name")),
                start: self.start,
            });
        }
        Ok(Taken { meta, range: self.start..self.end.min(len).max(self.start), skip: self.start })
    }

    /// Compares the metadata of the reply with the version that was opened. Missing fields count as equal.
    pub(crate) fn checked(&self, meta: ObjectMeta) -> Result<ObjectMeta, OriginError> {
        if meta.len > LONGEST {
            return Err(self.bad("an object of at most 2^53 bytes", &format!("{} bytes", meta.len)));
        }
        let Some(expected) = self.expected else {
            return Ok(meta);
        };
        let same = match (&expected.etag, &meta.etag) {
            (Some(expected), Some(found)) => expected == found,
            _ => match (expected.modified, meta.modified) {
                (Some(expected), Some(found)) => expected == found,
                _ => true,
            },
        };
        if same && expected.len == meta.len {
            return Ok(meta);
        }
        Err(OriginError::Changed { at: self.at.clone(), expected: expected.version.clone(), found: Some(meta.version) })
    }

    /// Refuses a body in another coding, whose offsets differ.
    fn check_encoding(&self, headers: &HeaderMap) -> Result<(), OriginError> {
        match text(headers, &CONTENT_ENCODING) {
            None | Some("" | "identity") => Ok(()),
            Some(found) => Err(self.bad("no Content-Encoding", found)),
        }
    }

    fn bad(&self, expected: &str, found: &str) -> OriginError {
        OriginError::BadReply { at: self.at.clone(), expected: expected.to_owned(), found: shown(found) }
    }
}

/// Returns the object's metadata from the headers of a reply.
pub(crate) fn meta(headers: &HeaderMap, len: u64) -> ObjectMeta {
    let etag = kept(text(headers, &ETAG).filter(|etag| !etag.is_empty()));
    let modified = text(headers, &LAST_MODIFIED).and_then(|text| httpdate::parse_http_date(text).ok());
    ObjectMeta {
        len,
        version: Version::of_reply(etag.as_deref(), modified, len),
        etag,
        modified,
        content_type: kept(text(headers, &CONTENT_TYPE)),
        content_disposition: kept(text(headers, &CONTENT_DISPOSITION)),
        content_language: kept(text(headers, &CONTENT_LANGUAGE)),
        // A reply with a coding is refused.
        content_encoding: None,
        freshness: Freshness::of(headers),
        tags: StatedTags::of_headers(headers),
    }
}

/// Returns the announced length; `None` where it is missing or no number (RFC 9110 8.6).
pub(crate) fn content_length(headers: &HeaderMap) -> Option<u64> {
    text(headers, &CONTENT_LENGTH)?.trim().parse().ok()
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// The condition that keeps a server from sending another version (RFC 9110 13.1.1 and 13.1.4).
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// `If-Match`.
    Match(String),
    /// `If-Unmodified-Since`.
    UnmodifiedSince(SystemTime),
}

impl Condition {
    /// Returns the strongest condition for a version.
    pub(crate) fn of(meta: &ObjectMeta) -> Option<Self> {
        let etag = meta.etag.as_ref().filter(|etag| is_strong(etag));
        match (etag, meta.modified) {
            (Some(etag), _) => Some(Self::Match(etag.clone())),
            (None, Some(time)) => Some(Self::UnmodifiedSince(time)),
            (None, None) => None,
        }
    }
}

/// `Content-Range: bytes first-last/length` (RFC 9110 14.4), the end made exclusive.
#[derive(Debug, PartialEq, Eq)]
struct ContentRange {
    start: u64,
    end: u64,
    len: Option<u64>,
}

impl ContentRange {
    fn parse(text: &str) -> Option<Self> {
        let (unit, rest) = text.trim().split_once(' ')?;
        if !unit.eq_ignore_ascii_case("bytes") {
            return None;
        }
        let (range, len) = rest.trim().split_once('/')?;
        let (first, last) = range.split_once('-')?;
        let start = first.parse().ok()?;
        let end = last.parse::<u64>().ok()?.checked_add(1)?;
        let len = match len {
            "*" => None,
            len => Some(len.parse::<u64>().ok()?),
        };
        if start >= end || len.is_some_and(|len| end > len) {
            return None;
        }
        Some(Self { start, end, len })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(HeaderName, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    fn judge(
        (start, end): (u64, u64),
        expected: Option<&ObjectMeta>,
        status: u16,
        pairs: &[(HeaderName, &str)],
    ) -> Result<Taken, OriginError> {
        let at = At::new("http://origin.example", "a");
        let asked = Asked { at: &at, start, end, expected, skip: SKIP };
        asked.judge(status, &headers(pairs))
    }

    #[test]
    fn content_ranges() {
        let parsed = |text| ContentRange::parse(text).map(|r| (r.start, r.end, r.len));
        assert_eq!(parsed("bytes 0-0/1"), Some((0, 1, Some(1))));
        assert_eq!(parsed("Bytes 5-9/*"), Some((5, 10, None)));
        for wrong in [
            "",
            "bytes",
            "bytes */5",
            "bytes 5-4/9",
            "bytes 0-9/9",
            "items 0-1/5",
            "bytes 0-18446744073709551615/*",
            "bytes -5/9",
        ] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn fields_that_are_kept_have_a_bound() {
        let long = format!("\"{}\"", "x".repeat(2000));
        let modified = "Sun, 06 Nov 1994 08:49:37 GMT";
        let pairs = [(ETAG, &*long), (CONTENT_TYPE, &*long), (CONTENT_DISPOSITION, &*long), (LAST_MODIFIED, modified)];
        let meta = meta(&headers(&pairs), 5);
        assert_eq!((&meta.etag, &meta.content_type, &meta.content_disposition), (&None, &None, &None));
        assert!(meta.version.as_str().len() < 50, "of the time instead");
        let error = judge((10, 100), None, 206, &[(CONTENT_RANGE, &*long)]).unwrap_err();
        assert!(error.to_string().len() < 500);
    }

    #[test]
    fn a_partial_reply_is_held_to_what_was_asked() {
        let taken = judge((10, 100), None, 206, &[(CONTENT_RANGE, "bytes 10-49/50")]).unwrap();
        assert_eq!((taken.range, taken.skip, taken.meta.len), (10..50, 0, 50));
        let shorter = judge((10, 100), None, 206, &[(CONTENT_RANGE, "bytes 10-19/50")]).unwrap();
        assert_eq!(shorter.range, 10..50);
        for wrong in
            ["bytes 0-49/50", "bytes 11-49/50", "bytes 10-49/*", "bytes 10-199/200", "bytes 10-99/18446744073709551615"]
        {
            let result = judge((10, 100), None, 206, &[(CONTENT_RANGE, wrong)]);
            assert!(matches!(result, Err(OriginError::BadReply { .. })), "{wrong}");
        }
        assert!(judge((0, 5), None, 206, &[]).is_err());
        let encoded = [(CONTENT_RANGE, "bytes 0-4/9"), (CONTENT_ENCODING, "gzip")];
        assert!(judge((0, 5), None, 206, &encoded).is_err());
    }

    #[test]
    fn a_whole_reply_serves_its_beginning() {
        let of_len = |len: &'static str| [(CONTENT_LENGTH, len), (SERVER, "plain/1")];
        let taken = judge((0, 100), None, 200, &of_len("1000")).unwrap();
        assert_eq!((taken.range, taken.skip), (0..100, 0));
        let taken = judge((500, 2000), None, 200, &of_len("1000")).unwrap();
        assert_eq!((taken.range, taken.skip), (500..1000, 500));
        let far = judge((2 << 20, 3 << 20), None, 200, &of_len("9000000")).unwrap_err();
        assert!(far.to_string().contains("plain/1"), "{far}");
        assert!(matches!(far, OriginError::RangeIgnored { .. }));
        let at = At::new("http://origin.example", "a");
        let strict = |start| {
            let asked = Asked { at: &at, start, end: 2, expected: None, skip: 0 };
            asked.judge(200, &headers(&of_len("2")))
        };
        assert!(strict(0).is_ok(), "a range that begins with the object tells nothing");
        assert!(matches!(strict(1), Err(OriginError::RangeIgnored { start: 1, .. })));
        assert!(judge((0, 5), None, 200, &[]).is_err(), "no length");
        assert!(matches!(
            judge((2000, 3000), None, 200, &of_len("1000")),
            Err(OriginError::OutOfRange { len: Some(1000), .. })
        ));
    }

    #[test]
    fn another_version_is_changed() {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        let known = meta(&headers(&[(ETAG, "\"a\""), (LAST_MODIFIED, date)]), 50);
        let whole = (CONTENT_RANGE, "bytes 0-49/50");
        let ask = |pairs: &[(HeaderName, &str)]| judge((0, 50), Some(&known), 206, pairs);
        assert!(ask(&[whole.clone(), (ETAG, "\"a\"")]).is_ok());
        assert!(ask(std::slice::from_ref(&whole)).is_ok(), "nothing said, nothing known");
        assert!(ask(&[whole.clone(), (LAST_MODIFIED, date)]).is_ok());
        let changed = |result: Result<Taken, OriginError>| result.unwrap_err().is_changed();
        assert!(changed(ask(&[whole.clone(), (ETAG, "\"b\"")])));
        let later = "Sun, 06 Nov 1994 08:49:38 GMT";
        assert!(changed(ask(&[whole, (LAST_MODIFIED, later)])));
        assert!(changed(ask(&[(CONTENT_RANGE, "bytes 0-49/51"), (ETAG, "\"a\"")])));
        assert!(changed(judge((0, 50), Some(&known), 200, &[(CONTENT_LENGTH, "49")])));
    }

    #[test]
    fn conditions_by_strength() {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        let condition = |pairs: &[(HeaderName, &str)]| Condition::of(&meta(&headers(pairs), 1));
        assert_eq!(condition(&[(ETAG, "\"a\""), (LAST_MODIFIED, date)]), Some(Condition::Match("\"a\"".into())));
        assert!(matches!(condition(&[(ETAG, "W/\"a\""), (LAST_MODIFIED, date)]), Some(Condition::UnmodifiedSince(_))));
        assert_eq!(condition(&[(ETAG, "W/\"a\"")]), None);
    }
}
