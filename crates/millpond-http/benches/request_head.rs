//! Request heads of HTTP/1, as players, tools and caches send them.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use millpond_http::request::head::{ParsedHead, parse};
use std::hint::black_box;

const CURL: &str = "GET /films/a.mp4/index.m3u8 HTTP/1.1\r\nHost: media.example:8080\r\nUser-Agent: curl/8.5.0\r\n\
    Accept: */*\r\n\r\n";

/// Chromium with hls.js, from a page of another site.
const BROWSER: &str = "GET /films/a.mp4/~0123456789abcdef/v1/12.m4s HTTP/1.1\r\nHost: media.example\r\n\
    Connection: keep-alive\r\nsec-ch-ua-platform: \"Linux\"\r\n\
    User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/128.0.0.0 Safari/537.36\r\n\
    sec-ch-ua: \"Chromium\";v=\"128\", \"Not;A=Brand\";v=\"24\", \"Google Chrome\";v=\"128\"\r\nsec-ch-ua-mobile: ?0\r\n\
    Accept: */*\r\nOrigin: https://www.example\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: cors\r\n\
    Sec-Fetch-Dest: empty\r\nReferer: https://www.example/\r\nAccept-Encoding: gzip, deflate, br, zstd\r\n\
    Accept-Language: en-GB,en;q=0.9\r\n\r\n";

/// A player that reads an MP4 file by ranges.
const RANGE: &str = "GET /films/a.mp4 HTTP/1.1\r\nHost: media.example\r\nX-Playback-Session-Id: \
    5A4A5A5F-4E1B-4B1E-8A37-0A4F0D1B2C3D\r\nRange: bytes=2097152-4194303\r\nIf-Range: \"2a-5f3c\"\r\nAccept: */*\r\n\
    User-Agent: AppleCoreMedia/1.0.0.21G93 (iPhone; U; CPU OS 17_6 like Mac OS X; en_gb)\r\n\
    Accept-Language: en-GB,en;q=0.9\r\nAccept-Encoding: identity\r\nConnection: keep-alive\r\n\r\n";

/// A cache that validates its copy.
const CACHE: &str = "GET /films/a.mp4/v1/12.m4s HTTP/1.1\r\nHost: media.example\r\nX-Forwarded-For: 192.0.2.7\r\n\
    X-Forwarded-Proto: https\r\nVia: 1.1 edge (Varnish/7.1)\r\nIf-None-Match: W/\"0123456789abcdef-12\"\r\n\
    If-Modified-Since: Sun, 22 Nov 2026 15:19:23 GMT\r\nAccept-Encoding: gzip\r\nX-Varnish: 32770\r\n\r\n";

fn request_head(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("request head");
    for (name, head) in [("curl", CURL), ("browser", BROWSER), ("range", RANGE), ("cache", CACHE)] {
        assert!(matches!(parse(head.as_bytes()), ParsedHead::Request(_)), "{name}");
        group.throughput(Throughput::Bytes(head.len() as u64));
        group.bench_function(name, |bencher| bencher.iter(|| parse(black_box(head.as_bytes()))));
    }
    group.finish();
}

criterion_group!(benches, request_head);
criterion_main!(benches);
