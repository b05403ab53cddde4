//! Tests of listings of buckets that never end, or have keys that no path names.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::error::OriginError;
use crate::location::{BucketPrefix, Cloud};
use crate::origin::cloud::CloudOrigin;
use crate::origin::{BucketOptions, Origin as _, RemoteOptions, Timeouts};
use crate::path::ObjectPath;

const CLOUDS: [Cloud; 3] = [Cloud::S3, Cloud::Gs, Cloud::Az];

/// Starts a service that answers each request with `answer`. Returns its origin, and the count of bytes that it sent.
fn service(
    cloud: Cloud,
    answer: impl Fn(&mut dyn FnMut(&[u8]) -> bool, usize) + Send + Sync + 'static,
) -> (CloudOrigin, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let sent = Arc::new(AtomicUsize::new(0));
    let (counted, answer, requests) = (sent.clone(), Arc::new(answer), Arc::new(AtomicUsize::new(0)));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, counted) = (stream.unwrap(), counted.clone());
            let (answer, requests) = (answer.clone(), requests.clone());
            std::thread::spawn(move || {
                skip_head(&stream);
                let mut send = |bytes: &[u8]| {
                    counted.fetch_add(bytes.len(), Ordering::Relaxed);
                    stream.write_all(bytes).is_ok()
                };
                send(b"HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\nConnection: close\r\n\r\n");
                answer(&mut send, requests.fetch_add(1, Ordering::Relaxed));
            });
        }
    });
    let second = Duration::from_secs(5);
    let timeouts = Timeouts { connect: second, first_byte: second, stall: second };
    let bucket = BucketOptions {
        endpoint: Some(url),
        anonymous: true,
        account: Some("account".into()),
        ..BucketOptions::default()
    };
    let options = RemoteOptions { timeouts, bucket, ..RemoteOptions::default() };
    let location = BucketPrefix { cloud, bucket: "bucket".into(), prefix: String::new() };
    (CloudOrigin::with_env(&location, &options, |_| None).unwrap(), sent)
}

fn skip_head(stream: &TcpStream) {
    let lines = BufReader::new(stream).lines();
    for line in lines.map_while(Result::ok) {
        if line.is_empty() {
            return;
        }
    }
}

#[tokio::test]
async fn an_endless_page_is_refused_in_plain_words() {
    let entry = "<Contents><Key>a</Key><Size>1</Size><LastModified>2020-01-01T00:00:00.000Z</LastModified></Contents>";
    for (cloud, again) in
        CLOUDS.into_iter().flat_map(|cloud| [(cloud, entry), (cloud, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")])
    {
        let again = again.repeat(512);
        let (origin, sent) = service(cloud, move |send, _| {
            send(b"<?xml version=\"1.0\" encoding=\"UTF-8\"?><ListBucketResult><Contents><Key>");
            while send(again.as_bytes()) {}
        });
        let began = Instant::now();
        let error = origin.list(&ObjectPath::root()).await.unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, OriginError::BadReply { .. }), "{cloud:?}: {error:?}");
        assert!(text.contains("a page of a listing of at most 8388608 bytes") && text.contains("bucket"), "{text}");
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
        let sent = sent.load(Ordering::Relaxed);
        assert!(sent < 32 << 20, "{cloud:?}: {sent} bytes were read");
    }
}

#[tokio::test]
async fn endless_pages_of_long_keys_are_cut_off() {
    for cloud in [Cloud::S3, Cloud::Gs] {
        let (origin, sent) = service(cloud, |send, page| {
            send(b"<?xml version=\"1.0\" encoding=\"UTF-8\"?><ListBucketResult><IsTruncated>true</IsTruncated>");
            send(format!("<NextContinuationToken>{page}</NextContinuationToken>").as_bytes());
            for number in 0..1000 {
                let name = format!("{page}-{number}-{}", "a".repeat(1000));
                let rest = "<Size>1</Size><LastModified>2020-01-01T00:00:00.000Z</LastModified><ETag>\"a\"</ETag>";
                if !send(format!("<Contents><Key>{name}</Key>{rest}</Contents>").as_bytes()) {
                    return;
                }
            }
            send(b"</ListBucketResult>");
        });
        let listing = origin.list(&ObjectPath::root()).await.unwrap();
        let bytes: usize = listing.entries.iter().map(|entry| entry.name.len()).sum();
        assert!((8 << 20..10 << 20).contains(&bytes), "{cloud:?}: {bytes} bytes of names");
        let sent = sent.load(Ordering::Relaxed);
        assert!(sent < 16 << 20, "{cloud:?}: {sent} bytes were read");
    }
}

#[tokio::test]
async fn pages_without_keys_end_too() {
    let (origin, _) = service(Cloud::S3, |send, page| {
        let token = format!("<NextContinuationToken>{page}</NextContinuationToken>");
        send(format!("<ListBucketResult><IsTruncated>true</IsTruncated>{token}</ListBucketResult>").as_bytes());
    });
    assert!(origin.list(&ObjectPath::root()).await.unwrap().entries.is_empty());
}

#[tokio::test]
async fn a_key_that_no_path_names_is_left_out_alone() {
    let times = "<Size>1</Size><LastModified>2020-01-01T00:00:00.000Z</LastModified><ETag>\"a\"</ETag>";
    for cloud in [Cloud::S3, Cloud::Gs] {
        let (origin, _) = service(cloud, move |send, _| {
            let key = |key: &str| format!("<Contents><Key>films/{key}</Key>{times}</Contents>");
            let folder = |key: &str| format!("<CommonPrefixes><Prefix>films/{key}/</Prefix></CommonPrefixes>");
            let parts = [
                key("a.mp4"),
                key("b&#x1;.mp4"),
                key("c &amp; d.mp4"),
                folder(""),
                folder("."),
                folder(".."),
                folder("e"),
            ];
            send(format!("<ListBucketResult>{}</ListBucketResult>", parts.concat()).as_bytes());
        });
        let films = ObjectPath::parse("films").unwrap();
        let listing = origin.list(&films).await.unwrap();
        let names: Vec<&str> = listing.entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["a.mp4", "c & d.mp4", "e"], "{cloud:?}");
    }
}
