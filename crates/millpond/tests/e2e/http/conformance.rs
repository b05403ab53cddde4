//! HTTP/1 by RFC 9110 and RFC 9112, one row a rule: raw bytes in, replies and the fate of the connection out.
//!
//! Behind each request goes another one. Where the connection must stay it is answered too; where it must close, its
//! bytes must not be taken for a request.

use crate::support::{Response, Server, free_port, read_response, wait_for_port, wire::Client};
use std::{io::Cursor, io::Write as _, time::Duration};

/// Name with its section, request, and what must come: statuses; `keep` or `close`; fields or the body of the last.
type Row = (&'static str, &'static str, &'static str);

/// `{G}` is the line and Host of a GET of a file of 100 digits, `{H}` of a HEAD.
const ROWS: &[Row] = &[
    // Request line.
    ("9112 3: GET", "{G}\r\n", "200; keep; content-length: 100"),
    ("9112 2.2: an empty line before", "\r\n{G}\r\n", "200; keep"),
    ("9112 2.2: two empty lines before", "\r\n\r\n{G}\r\n", "200; keep"),
    ("9112 3: two spaces", "GET  /f.bin HTTP/1.1\r\nHost: x\r\n\r\n", "400; close"),
    ("9112 3: a space in the target", "GET /f bin HTTP/1.1\r\nHost: x\r\n\r\n", "400; close"),
    ("9112 3: a space before the method", " GET /f.bin HTTP/1.1\r\nHost: x\r\n\r\n", "400; close"),
    ("9112 3: a tab for a space", "GET\t/f.bin HTTP/1.1\r\nHost: x\r\n\r\n", "400; close"),
    ("9112 3: no version", "GET /f.bin\r\nHost: x\r\n\r\n", "400; close"),
    ("9112 2.3: HTTP/0.9", "GET /f.bin\r\n\r\n", "400; close"),
    ("9110 2.5: HTTP/1.2", "GET /f.bin HTTP/1.2\r\nHost: x\r\n\r\n", "505; close"),
    ("9110 15.6.6: HTTP/2.0 without its preface", "GET /f.bin HTTP/2.0\r\nHost: x\r\n\r\n", "505; close"),
    ("9110 15.6.6: HTTP/3.0", "GET /f.bin HTTP/3.0\r\nHost: x\r\n\r\n", "505; close"),
    ("9110 15.6.6: HTTP/0.9 spelt out", "GET /f.bin HTTP/0.9\r\n\r\n", "505; close"),
    ("9112 2.3: the name in small letters", "GET /f.bin http/1.1\r\nHost: x\r\n\r\n", "400; close"),
    ("9112 2.3: a minor version of two digits", "GET /f.bin HTTP/1.10\r\nHost: x\r\n\r\n", "400; close"),
    ("9112 2.3: another protocol", "GET /f.bin RTSP/1.0\r\nHost: x\r\n\r\n", "400; close"),
    ("9112 2.2: a bare CR in the line", "GET /f.bin\rHTTP/1.1\r\nHost: x\r\n\r\n", "400; close"),
    ("9112 3: NUL in the target", "GET /f\0bin HTTP/1.1\r\nHost: x\r\n\r\n", "400; close"),
    ("9112 2: TLS bytes on a plain port", "\x16\x03\x01\x00\x05hello\r\n\r\n", "400; close"),
    ("9112 3: a target over 8 KiB", "GET /{8K} HTTP/1.1\r\nHost: x\r\n\r\n", "414; close"),
    ("9112 3: a target over 16 KiB", "GET /{16K} HTTP/1.1\r\nHost: x\r\n\r\n", "414; close"),
    // Methods.
    ("9110 9.3.2: HEAD has no body", "{H}\r\n", "200; keep; content-length: 100"),
    ("9110 9.3.2: HEAD of nothing", "HEAD /no.bin HTTP/1.1\r\nHost: x\r\n\r\n", "404; keep"),
    ("9110 9.1: POST", "POST /f.bin HTTP/1.1\r\nHost: x\r\n\r\n", "405; keep; allow: GET, HEAD, OPTIONS"),
    ("9110 9.1: PUT", "PUT /f.bin HTTP/1.1\r\nHost: x\r\n\r\n", "405; keep; allow: GET, HEAD, OPTIONS"),
    ("9110 9.1: DELETE", "DELETE /f.bin HTTP/1.1\r\nHost: x\r\n\r\n", "405; keep; allow: GET, HEAD, OPTIONS"),
    ("9110 9.1: PATCH", "PATCH /f.bin HTTP/1.1\r\nHost: x\r\n\r\n", "405; keep; allow: GET, HEAD, OPTIONS"),
    ("9110 9.3.8: TRACE", "TRACE /f.bin HTTP/1.1\r\nHost: x\r\n\r\n", "405; keep; allow: GET, HEAD, OPTIONS"),
    ("9110 9.3.6: CONNECT", "CONNECT x:443 HTTP/1.1\r\nHost: x:443\r\n\r\n", "405; keep"),
    ("9110 9.1: an unknown method", "BREW /f.bin HTTP/1.1\r\nHost: x\r\n\r\n", "501; keep"),
    ("9110 9.1: methods are case-sensitive", "get /f.bin HTTP/1.1\r\nHost: x\r\n\r\n", "501; keep"),
    ("9110 9.1: a method that is no token", "G(T /f.bin HTTP/1.1\r\nHost: x\r\n\r\n", "400; close"),
    ("9110 9.3.7: OPTIONS", "OPTIONS /f.bin HTTP/1.1\r\nHost: x\r\n\r\n", "204; keep; allow: GET, HEAD, OPTIONS"),
    ("9112 3.2.4: OPTIONS *", "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", "204; keep; allow: GET, HEAD, OPTIONS"),
    ("9112 3.2.4: OPTIONS of a bare authority", "OPTIONS http://x HTTP/1.1\r\nHost: x\r\n\r\n", "204; keep"),
    ("9112 3.2.4: GET *", "GET * HTTP/1.1\r\nHost: x\r\n\r\n", "400; close"),
    // Targets.
    ("9112 3.2.2: absolute form", "GET http://x/f.bin HTTP/1.1\r\nHost: x\r\n\r\n", "200; keep; content-length: 100"),
    ("9112 3.2.2: it overrules Host", "GET http://x/f.bin HTTP/1.1\r\nHost: other\r\n\r\n", "200; keep"),
    ("9112 3.2.2: but Host must be there", "GET http://x/f.bin HTTP/1.1\r\n\r\n", "400; close"),
    ("9110 4.2.3: schemes in any case", "GET HTTP://x/f.bin HTTP/1.1\r\nHost: x\r\n\r\n", "200; keep"),
    ("9112 3.2.2: https", "GET https://x:1/f.bin HTTP/1.1\r\nHost: x\r\n\r\n", "200; keep"),
    ("9112 3.2.2: without a path", "GET http://x HTTP/1.1\r\nHost: x\r\n\r\n", "200; keep"),
    ("9112 3.2.2: a slash in the query", "GET http://x?a=/f.bin HTTP/1.1\r\nHost: x\r\n\r\n", "200; keep"),
    ("9112 3.2.2: another scheme", "GET ftp://x/f.bin HTTP/1.1\r\nHost: x\r\n\r\n", "400; close"),
    ("9110 4.2.4: user information", "GET http://u:p@x/f.bin HTTP/1.1\r\nHost: x\r\n\r\n", "400; close"),
    ("9110 4.2.1: an empty host", "GET http:///f.bin HTTP/1.1\r\nHost: x\r\n\r\n", "400; close"),
    ("9112 3.2.3: authority form for GET", "GET x:80 HTTP/1.1\r\nHost: x\r\n\r\n", "400; close"),
    ("9112 3.2.1: a path without its slash", "GET f.bin HTTP/1.1\r\nHost: x\r\n\r\n", "400; close"),
    ("9112 3.2.1: percent-encoded", "GET /f%2Ebin HTTP/1.1\r\nHost: x\r\n\r\n", "200; keep; content-length: 100"),
    ("9112 3.2.1: a query", "GET /f.bin?a=b HTTP/1.1\r\nHost: x\r\n\r\n", "200; keep"),
    // Host.
    ("9112 3.2: no Host", "GET /f.bin HTTP/1.1\r\n\r\n", "400; close"),
    ("9112 3.2: no Host in HTTP/1.0", "GET /f.bin HTTP/1.0\r\n\r\n", "200; close"),
    ("9112 3.2: two Hosts", "{G}Host: y\r\n\r\n", "400; close"),
    ("9112 3.2: twice the same Host", "{G}Host: x\r\n\r\n", "400; close"),
    ("9112 3.2: two Hosts in HTTP/1.0", "GET /f.bin HTTP/1.0\r\nHost: x\r\nHost: y\r\n\r\n", "400; close"),
    ("9112 3.2: a space in Host", "GET /f.bin HTTP/1.1\r\nHost: a b\r\n\r\n", "400; close"),
    ("9112 3.2: a path in Host", "GET /f.bin HTTP/1.1\r\nHost: a/b\r\n\r\n", "400; close"),
    ("9112 3.2: a user in Host", "GET /f.bin HTTP/1.1\r\nHost: u@a\r\n\r\n", "400; close"),
    ("9112 3.2: a port that is none", "GET /f.bin HTTP/1.1\r\nHost: a:b\r\n\r\n", "400; close"),
    ("9112 3.2: a port over 65535", "GET /f.bin HTTP/1.1\r\nHost: a:65536\r\n\r\n", "400; close"),
    ("9112 3.2: an IPv6 address", "GET /f.bin HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n", "200; keep"),
    ("9112 3.2: half an IPv6 address", "GET /f.bin HTTP/1.1\r\nHost: [::1\r\n\r\n", "400; close"),
    ("9112 3.2: an empty Host", "GET /f.bin HTTP/1.1\r\nHost:\r\n\r\n", "200; keep"),
    // Fields.
    ("9112 5.1: space before the colon", "{G}A : b\r\n\r\n", "400; close"),
    ("9112 5.1: no space behind the colon", "GET /f.bin HTTP/1.1\r\nHost:x\r\n\r\n", "200; keep"),
    ("9112 5.1: spaces and tabs round the value", "{G}Range: \t bytes=0-9 \t\r\n\r\n", "206; keep; body: 0123456789"),
    ("9112 5.2: obs-fold", "{G}A: b\r\n c\r\n\r\n", "400; close"),
    ("9112 5.2: obs-fold by a tab", "{G}A: b\r\n\tc\r\n\r\n", "400; close"),
    ("9112 2.2: space behind the request line", "GET /f.bin HTTP/1.1\r\n Host: x\r\n\r\n", "400; close"),
    ("9112 5: a line without a colon", "{G}abc\r\n\r\n", "400; close"),
    ("9112 5: an empty name", "{G}: b\r\n\r\n", "400; close"),
    ("9110 5.1: a name that is no token", "{G}A(: b\r\n\r\n", "400; close"),
    ("9110 5.1: names in any case", "GET /f.bin HTTP/1.1\r\nhOsT: x\r\n\r\n", "200; keep"),
    ("9110 5.5: NUL in a value", "{G}A: b\0c\r\n\r\n", "400; close"),
    ("9110 5.5: a bare CR in a value", "{G}A: b\rc\r\n\r\n", "400; close"),
    ("9110 5.5: another control character", "{G}A: b\x01c\r\n\r\n", "400; close"),
    ("9110 5.5: obs-text in a value", "{G}A: \u{fc}\r\n\r\n", "200; keep"),
    ("6585 5: a field over 16 KiB", "{G}A: {16K}\r\n\r\n", "431; close"),
    ("6585 5: over 64 fields", "{G}{65 fields}\r\n", "431; close"),
    ("9112 2.2: lines that end with LF alone", "GET /f.bin HTTP/1.1\nHost: x\n\n", "200; keep"),
    // Framing.
    ("9112 6.3: Content-Length: 0", "{G}Content-Length: 0\r\n\r\n", "200; keep"),
    ("9112 6.3: 0, then 54", "{G}Content-Length: 0\r\nContent-Length: 54\r\n\r\n", "400; close"),
    ("9112 6.3: 54, then 0", "{G}Content-Length: 54\r\nContent-Length: 0\r\n\r\n", "400; close"),
    ("9112 6.3: twice the same length", "{G}Content-Length: 0\r\nContent-Length: 0\r\n\r\n", "400; close"),
    ("9112 6.3: a list of lengths", "{G}Content-Length: 0, 54\r\n\r\n", "400; close"),
    ("9110 8.6: a negative length", "{G}Content-Length: -1\r\n\r\n", "400; close"),
    ("9110 8.6: a signed length", "{G}Content-Length: +0\r\n\r\n", "400; close"),
    ("9110 8.6: a length by hex digits", "{G}Content-Length: 0x0\r\n\r\n", "400; close"),
    ("9110 8.6: a length that is no number", "{G}Content-Length: abc\r\n\r\n", "400; close"),
    ("9110 8.6: an empty length", "{G}Content-Length:\r\n\r\n", "400; close"),
    ("9110 8.6: a length over 2^64", "{G}Content-Length: 18446744073709551616\r\n\r\n", "400; close"),
    ("9112 6.3: a body is no request", "{G}Content-Length: 54\r\n\r\n", "200; close"),
    ("9112 6.3: nor behind POST", "POST /f.bin HTTP/1.1\r\nHost: x\r\nContent-Length: 54\r\n\r\n", "405; close"),
    ("9112 7.1: chunked", "{G}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "200; close"),
    (
        "9112 6.1: chunked and a length",
        "{G}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        "400; close",
    ),
    (
        "9112 6.1: a length and chunked",
        "{G}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "400; close",
    ),
    ("9112 6.1: an unknown coding", "{G}Transfer-Encoding: gzip, chunked\r\n\r\n", "501; close"),
    ("9112 6.3: chunked not last", "{G}Transfer-Encoding: chunked, gzip\r\n\r\n", "400; close"),
    ("9112 6.3: chunked twice", "{G}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", "400; close"),
    ("9112 6.3: no chunked", "{G}Transfer-Encoding: identity\r\n\r\n", "400; close"),
    ("9112 6.3: chunked behind a control character", "{G}Transfer-Encoding: \x0bchunked\r\n\r\n", "400; close"),
    ("9112 6.1: chunked in HTTP/1.0", "GET /f.bin HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", "400; close"),
    // Expect.
    ("9110 10.1.1: 100-continue, answered at once", "{G}Expect: 100-continue\r\n\r\n", "200; keep"),
    ("9110 10.1.1: with a body", "{G}Expect: 100-continue\r\nContent-Length: 9\r\n\r\n", "200; close"),
    ("9110 10.1.1: another expectation", "{G}Expect: 200-maybe\r\n\r\n", "417; close"),
    ("9110 10.1.1: ignored in HTTP/1.0", "GET /f.bin HTTP/1.0\r\nExpect: 200-maybe\r\n\r\n", "200; close"),
    // Connections.
    ("9112 9.3: pipelined", "{G}\r\n{G}\r\n", "200 200; keep"),
    ("9112 9.3: pipelined behind an error", "GET /no.bin HTTP/1.1\r\nHost: x\r\n\r\n{G}\r\n", "404 200; keep"),
    ("9112 9.6: close", "{G}Connection: close\r\n\r\n", "200; close; connection: close"),
    ("9110 7.6.1: options in any case", "{G}Connection: Close\r\n\r\n", "200; close"),
    ("9110 7.6.1: close in a list", "{G}Connection: foo, close\r\n\r\n", "200; close"),
    ("9110 7.6.1: close in the second field", "{G}Connection: foo\r\nConnection: close\r\n\r\n", "200; close"),
    ("9110 7.6.1: an option that contains it", "{G}Connection: close-not\r\n\r\n", "200; keep"),
    ("9112 9.3: close beats keep-alive", "{G}Connection: keep-alive, close\r\n\r\n", "200; close"),
    ("9112 9.3: HTTP/1.0 closes", "GET /f.bin HTTP/1.0\r\nHost: x\r\n\r\n", "200; close; connection: close"),
    (
        "9112 9.3: HTTP/1.0 may stay, and is told so",
        "GET /f.bin HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\n\r\n",
        "200; keep; connection: keep-alive",
    ),
    ("9110 7.8: an upgrade may be ignored", "{G}Connection: upgrade\r\nUpgrade: h2c\r\n\r\n", "200; keep"),
    // Conditions.
    ("9110 13.1.2: If-None-Match", "{G}If-None-Match: {etag}\r\n\r\n", "304; keep"),
    ("9110 13.1.2: weak comparison", "{G}If-None-Match: W/{etag}\r\n\r\n", "304; keep"),
    ("9110 13.1.2: any", "{G}If-None-Match: *\r\n\r\n", "304; keep"),
    ("9110 13.1.2: a list", "{G}If-None-Match: \"a,b\", {etag}\r\n\r\n", "304; keep"),
    ("9110 13.1.2: a list in two fields", "{G}If-None-Match: \"a\"\r\nIf-None-Match: {etag}\r\n\r\n", "304; keep"),
    ("9110 13.1.2: another", "{G}If-None-Match: \"a\"\r\n\r\n", "200; keep"),
    ("9110 13.1.2: for HEAD", "{H}If-None-Match: {etag}\r\n\r\n", "304; keep"),
    ("9110 13.1.1: If-Match", "{G}If-Match: {etag}\r\n\r\n", "200; keep"),
    ("9110 13.1.1: strong comparison", "{G}If-Match: W/{etag}\r\n\r\n", "412; keep"),
    ("9110 13.1.1: another", "{G}If-Match: \"a\"\r\n\r\n", "412; keep"),
    ("9110 13.1.1: any", "{G}If-Match: *\r\n\r\n", "200; keep"),
    ("9110 13.1.3: If-Modified-Since", "{G}If-Modified-Since: {modified}\r\n\r\n", "304; keep"),
    ("9110 13.1.3: long ago", "{G}If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n", "200; keep"),
    ("9110 5.6.7: a date by RFC 850", "{G}If-Modified-Since: Sunday, 06-Nov-94 08:49:37 GMT\r\n\r\n", "200; keep"),
    ("9110 13.1.3: no date", "{G}If-Modified-Since: soon\r\n\r\n", "200; keep"),
    (
        "9110 13.1.3: two dates",
        "{G}If-Modified-Since: {modified}\r\nIf-Modified-Since: {modified}\r\n\r\n",
        "200; keep",
    ),
    ("9110 13.1.4: If-Unmodified-Since", "{G}If-Unmodified-Since: {modified}\r\n\r\n", "200; keep"),
    ("9110 13.1.4: long ago", "{G}If-Unmodified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n", "412; keep"),
    (
        "9110 13.2.2: If-None-Match before If-Modified-Since",
        "{G}If-None-Match: \"a\"\r\nIf-Modified-Since: {modified}\r\n\r\n",
        "200; keep",
    ),
    (
        "9110 13.2.2: If-Match before If-Unmodified-Since",
        "{G}If-Match: {etag}\r\nIf-Unmodified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n",
        "200; keep",
    ),
    ("9110 13.2.2: If-Match before If-None-Match", "{G}If-Match: \"a\"\r\nIf-None-Match: {etag}\r\n\r\n", "412; keep"),
    ("9110 13.2.2: a condition before a range", "{G}If-None-Match: {etag}\r\nRange: bytes=0-1\r\n\r\n", "304; keep"),
    ("9110 13.2.1: not for what isn't there", "GET /no.bin HTTP/1.1\r\nHost: x\r\nIf-Match: *\r\n\r\n", "404; keep"),
    // Ranges.
    ("9110 14.2: a range", "{G}Range: bytes=10-13\r\n\r\n", "206; keep; content-range: bytes 10-13/100; body: 0123"),
    ("9110 14.1.2: to the end", "{G}Range: bytes=98-\r\n\r\n", "206; keep; content-range: bytes 98-99/100; body: 89"),
    ("9110 14.1.2: over the end", "{G}Range: bytes=98-500\r\n\r\n", "206; keep; content-range: bytes 98-99/100"),
    ("9110 14.1.2: the last bytes", "{G}Range: bytes=-3\r\n\r\n", "206; keep; body: 789"),
    (
        "9110 14.1.2: more last bytes than there are",
        "{G}Range: bytes=-500\r\n\r\n",
        "206; keep; content-range: bytes 0-99/100",
    ),
    ("9110 14.1: units in any case", "{G}Range: BYTES=0-0\r\n\r\n", "206; keep; body: 0"),
    ("9110 15.5.17: behind the end", "{G}Range: bytes=100-\r\n\r\n", "416; keep; content-range: bytes */100"),
    ("9110 15.5.17: no last bytes", "{G}Range: bytes=-0\r\n\r\n", "416; keep; content-range: bytes */100"),
    ("9110 15.5.17: far behind", "{G}Range: bytes=99999999999999999999-\r\n\r\n", "416; keep"),
    ("9110 14.1.1: backwards", "{G}Range: bytes=9-0\r\n\r\n", "200; keep; content-length: 100"),
    ("9110 14.2: another unit", "{G}Range: lines=0-1\r\n\r\n", "200; keep"),
    ("9110 14.2: malformed", "{G}Range: bytes=a-b\r\n\r\n", "200; keep"),
    ("9110 14.2: several ranges may be ignored", "{G}Range: bytes=0-1,4-5\r\n\r\n", "200; keep"),
    ("9110 5.3: two Range fields", "{G}Range: bytes=0-1\r\nRange: bytes=4-5\r\n\r\n", "200; keep"),
    ("9110 14.2: for GET alone", "{H}Range: bytes=0-1\r\n\r\n", "200; keep; content-length: 100"),
    ("9110 14.3: ranges are offered", "{H}\r\n", "200; keep; accept-ranges: bytes"),
    ("9110 13.1.5: If-Range", "{G}If-Range: {etag}\r\nRange: bytes=0-1\r\n\r\n", "206; keep; body: 01"),
    ("9110 13.1.5: by date", "{G}If-Range: {modified}\r\nRange: bytes=0-1\r\n\r\n", "206; keep; body: 01"),
    ("9110 13.1.5: another", "{G}If-Range: \"a\"\r\nRange: bytes=0-1\r\n\r\n", "200; keep"),
    ("9110 13.1.5: weak", "{G}If-Range: W/{etag}\r\nRange: bytes=0-1\r\n\r\n", "200; keep"),
    ("9110 13.1.5: twice", "{G}If-Range: {etag}\r\nIf-Range: {etag}\r\nRange: bytes=0-1\r\n\r\n", "200; keep"),
    ("9110 13.1.5: the whole instead of 416", "{G}If-Range: \"a\"\r\nRange: bytes=500-\r\n\r\n", "200; keep"),
];

/// The request behind each row's.
const FOLLOWING: &str = "GET /f.bin HTTP/1.1\r\nHost: following\r\nConnection: close\r\n\r\n";

#[test]
fn every_rule_holds_plain_and_inside_tls() {
    assert!(ROWS.len() >= 80);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("f.bin"), "0123456789".repeat(10)).unwrap();
    let https = free_port();
    let address = format!("127.0.0.1:{https}");
    let server = Server::start(&[folder.path().to_str().unwrap(), "--tls-self-signed", "--https", &address]);
    wait_for_port(https, &server.log);
    let whole = server.get("f.bin");
    let (etag, modified) = (whole.header("etag").unwrap(), whole.header("last-modified").unwrap());
    let fill = |text: &str| {
        text.replace("{G}", "GET /f.bin HTTP/1.1\r\nHost: x\r\n")
            .replace("{H}", "HEAD /f.bin HTTP/1.1\r\nHost: x\r\n")
            .replace("{etag}", etag)
            .replace("{modified}", modified)
            .replace("{8K}", &"a".repeat(8 << 10))
            .replace("{16K}", &"a".repeat(16 << 10))
            .replace("{65 fields}", &"A: b\r\n".repeat(65))
    };
    let mut wrong = Vec::new();
    for (name, request, expected) in ROWS {
        let request = fill(request);
        for transport in ["plain", "TLS"] {
            let client = match transport {
                "plain" => Client::plain(server.port),
                _ => Client::tls(https, "http/1.1").unwrap(),
            };
            let replies = exchange(client, &request);
            if let Err(found) = check(&replies, expected) {
                wrong.push(format!("{name} ({transport}): expected {expected}, found {found}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {} rows:\n{}", wrong.len(), 2 * ROWS.len(), wrong.join("\n"));
}

/// Sends a request and the following one; gives all replies until the server closes.
fn exchange(mut client: Client, request: &str) -> Vec<Response> {
    client.set_timeout(Duration::from_secs(60));
    // A refused request may close the connection before all of it was sent.
    let _ = client.write_all(format!("{request}{FOLLOWING}").as_bytes());
    let _ = client.flush();
    let bytes = client.read_all();
    let heads = request.starts_with("HEAD ");
    let mut rest = Cursor::new(bytes.as_slice());
    let mut replies = Vec::new();
    while (rest.position() as usize) < bytes.len() {
        replies.push(read_response(&mut rest, heads && replies.is_empty()));
    }
    replies
}

fn check(replies: &[Response], expected: &str) -> Result<(), String> {
    let mut parts = expected.split("; ");
    let mut statuses: Vec<u16> = parts.next().unwrap().split(' ').map(|s| s.parse().unwrap()).collect();
    let last = statuses.len() - 1;
    if parts.next() == Some("keep") {
        statuses.push(200);
    }
    let found: Vec<u16> = replies.iter().map(|r| r.status).collect();
    if found != statuses {
        return Err(format!("replies {found:?} instead of {statuses:?}"));
    }
    let reply = &replies[last];
    if reply.header("date").is_none() {
        return Err("no Date (9110 6.6.1)".to_owned());
    }
    for part in parts {
        let (name, value) = part.split_once(": ").unwrap();
        let found = if name == "body" { reply.text() } else { reply.header(name).unwrap_or("nothing").to_owned() };
        if found != value {
            return Err(format!("{name}: {found}"));
        }
    }
    Ok(())
}
