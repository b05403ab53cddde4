//! Requirements on every origin, checked for all of them, and failures of remote ones.

use std::ops::Range;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use object_store::{ObjectStore, ObjectStoreExt};
use tokio::io::AsyncWriteExt;
use url::Url;

use crate::error::{OriginError, Phase};
use crate::location::{BucketPrefix, Cloud};
use crate::origin::cloud::CloudOrigin;
use crate::origin::disk::DiskOrigin;
use crate::origin::http::HttpOrigin;
use crate::origin::memory::MemoryOrigin;
use crate::origin::retry::{RetryOrigin, RetryPolicy};
use crate::origin::test_server::{Fault, TestServer};
use crate::origin::{BucketOptions, ObjectMeta, Origin, RemoteOptions, Timeouts};
use crate::path::ObjectPath;
use crate::version::Version;

const ODD: &str = "folder/odd name 100%23#?+ä.bin";

fn path(text: &str) -> ObjectPath {
    ObjectPath::parse(text).unwrap()
}

fn large() -> Vec<u8> {
    (0..300_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// Returns names and contents of objects.
fn objects() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("hello.txt", b"hello world".to_vec()),
        ("empty.bin", Vec::new()),
        ("folder/large.bin", large()),
        (ODD, b"odd".to_vec()),
    ]
}

async fn read(
    origin: &dyn Origin,
    name: &str,
    range: Range<u64>,
    expected: Option<&ObjectMeta>,
) -> Result<Bytes, OriginError> {
    let fetched = origin.read(&path(name), range, expected).await?;
    let mut bytes = Vec::new();
    let mut body = fetched.body;
    while let Some(piece) = body.next().await {
        bytes.extend_from_slice(&piece?);
    }
    assert_eq!(bytes.len() as u64, fetched.range.end - fetched.range.start, "a body is as long as its range");
    Ok(bytes.into())
}

/// The requirements. The objects exist already.
async fn conforms(origin: &dyn Origin, lists: bool) {
    reads_ranges(origin).await;
    keeps_to_a_version(origin).await;
    names_what_is_missing(origin).await;
    if lists {
        lists_folders(origin).await;
    } else {
        let error = origin.list(&ObjectPath::root()).await.unwrap_err();
        assert!(matches!(error, OriginError::Unsupported { .. }));
    }
}

async fn reads_ranges(origin: &dyn Origin) {
    assert_eq!(read(origin, "hello.txt", 0..5, None).await.unwrap(), "hello");
    assert_eq!(read(origin, "hello.txt", 6..100, None).await.unwrap(), "world");
    assert_eq!(read(origin, "hello.txt", 10..11, None).await.unwrap(), "d");
    assert_eq!(read(origin, "hello.txt", 11..20, None).await.unwrap(), "");
    assert_eq!(read(origin, "hello.txt", 4..4, None).await.unwrap(), "");
    assert_eq!(read(origin, "empty.bin", 0..10, None).await.unwrap(), "");
    assert_eq!(read(origin, ODD, 0..100, None).await.unwrap(), "odd");
    let error = read(origin, "hello.txt", 12..20, None).await.unwrap_err();
    assert!(matches!(error, OriginError::OutOfRange { start: 12, .. }), "{error}");
    let whole = large();
    let all = read(origin, "folder/large.bin", 0..u64::MAX / 2, None).await.unwrap();
    assert_eq!(all, whole);
    let part = read(origin, "folder/large.bin", 123_456..234_567, None).await.unwrap();
    assert_eq!(part, whole[123_456..234_567]);
}

async fn keeps_to_a_version(origin: &dyn Origin) {
    let meta = origin.head(&path("hello.txt")).await.unwrap();
    assert_eq!(meta.len, 11);
    let fetched = origin.read(&path("hello.txt"), 0..3, None).await.unwrap();
    assert_eq!((&fetched.meta.version, fetched.meta.len), (&meta.version, 11));
    let same = read(origin, "hello.txt", 0..5, Some(&meta)).await.unwrap();
    assert_eq!(same, "hello");
    let other = ObjectMeta { version: Version::new("\"0\""), etag: Some("\"0\"".into()), ..meta };
    let error = read(origin, "hello.txt", 0..5, Some(&other)).await.unwrap_err();
    assert!(error.is_changed(), "{error}");
}

async fn names_what_is_missing(origin: &dyn Origin) {
    for name in ["none", "folder/none", "hello.txt/below"] {
        for error in [origin.head(&path(name)).await.unwrap_err(), read(origin, name, 0..5, None).await.unwrap_err()] {
            assert!(error.is_not_found(), "{error}");
            assert!(!error.is_retryable());
            let text = error.to_string();
            assert!(text.contains(name) && text.contains(&origin.describe()), "{text}");
        }
    }
}

async fn lists_folders(origin: &dyn Origin) {
    let list = |folder: ObjectPath| async move {
        let entries = origin.list(&folder).await?.entries;
        Ok::<_, OriginError>(entries.into_iter().map(|entry| (entry.name, entry.folder, entry.len)).collect::<Vec<_>>())
    };
    let root = list(ObjectPath::root()).await.unwrap();
    let expected = [("empty.bin", false, 0), ("folder", true, 0), ("hello.txt", false, 11)];
    assert_eq!(root, expected.map(|(name, folder, len)| (name.to_owned(), folder, len)));
    let folder = list(path("folder")).await.unwrap();
    let expected = [("large.bin", false, 300_000), (&ODD[7..], false, 3)];
    assert_eq!(folder, expected.map(|(name, folder, len)| (name.to_owned(), folder, len)));
    assert!(list(path("none")).await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn disk_conforms() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("folder")).unwrap();
    for (name, bytes) in objects() {
        std::fs::write(dir.path().join(name), bytes).unwrap();
    }
    std::fs::write(dir.path().join(".hidden"), "x").unwrap();
    conforms(&DiskOrigin::new(dir.path()).unwrap(), true).await;
}

fn memory() -> MemoryOrigin {
    let origin = MemoryOrigin::new("test");
    for (name, bytes) in objects() {
        origin.put(name, bytes);
    }
    origin.put(".hidden", "x");
    origin
}

#[tokio::test]
async fn memory_conforms() {
    conforms(&memory(), true).await;
}

#[tokio::test]
async fn retries_conform() {
    let policy = RetryPolicy::default();
    conforms(&RetryOrigin::new(Arc::new(memory()), policy), true).await;
}

fn timeouts(millis: u64) -> Timeouts {
    let time = Duration::from_millis(millis);
    Timeouts { connect: time, first_byte: time, stall: time }
}

/// Returns a server with the objects under `/base`, as buckets and plain web servers have them.
async fn server(base: &str) -> TestServer {
    let server = TestServer::start().await;
    for (name, bytes) in objects() {
        server.put(&format!("{base}/{name}"), &bytes);
    }
    server
}

fn http(server: &TestServer, base: &str) -> HttpOrigin {
    let url = Url::parse(&server.url(base)).unwrap();
    HttpOrigin::new(&url, timeouts(2000), &[]).unwrap()
}

fn retrying(origin: impl Origin + 'static) -> RetryOrigin {
    let policy = RetryPolicy { tries: 3, base: Duration::from_millis(5) };
    RetryOrigin::new(Arc::new(origin), policy)
}

#[tokio::test]
async fn http_conforms() {
    let server = server("/base").await;
    conforms(&http(&server, "/base/"), false).await;
    for request in server.seen() {
        assert_eq!(request.headers["accept-encoding"], "identity");
    }
}

#[tokio::test]
async fn a_server_that_ignores_ranges_serves_small_objects() {
    let server = server("/base").await;
    server.always(Fault::IgnoreRange);
    conforms(&http(&server, "/base"), false).await;
    server.put("/base/huge", &vec![7; 3 << 20]);
    let origin = http(&server, "/base");
    let begin = read(&origin, "huge", 0..1000, None).await.unwrap();
    assert_eq!(begin.len(), 1000);
    let error = read(&origin, "huge", 2 << 20..3 << 20, None).await.unwrap_err();
    assert!(matches!(error, OriginError::RangeIgnored { .. }));
    assert!(error.to_string().contains("test/1"), "{error}");
    assert_eq!(error.status(), 502);
}

#[tokio::test]
async fn broken_bodies_are_resumed_where_they_stopped() {
    let server = server("").await;
    let origin = retrying(http(&server, ""));
    server.faults([Fault::Truncate(100_000), Fault::Hangup, Fault::Shorter(50_000)]);
    let bytes = read(&origin, "folder/large.bin", 1000..300_000, None).await.unwrap();
    assert_eq!(bytes, large()[1000..]);
    assert_eq!(origin.counts().retries, 3);
    let ranges: Vec<_> = server.seen().iter().map(|seen| seen.headers["range"].clone()).collect();
    let wanted = [1000, 101_000, 101_000, 151_000].map(|at| format!("bytes={at}-299999"));
    assert_eq!(ranges, wanted);
}

#[tokio::test]
async fn a_body_is_not_resumed_with_another_version() {
    let server = server("").await;
    let origin = retrying(http(&server, ""));
    server.faults([Fault::Truncate(100_000)]);
    let fetched = origin.read(&path("folder/large.bin"), 0..300_000, None).await.unwrap();
    server.put("/folder/large.bin", &vec![1; 300_000]);
    let items: Vec<_> = fetched.body.collect().await;
    let (last, rest) = items.split_last().unwrap();
    assert!(last.as_ref().unwrap_err().is_changed());
    let received: Vec<u8> = rest.iter().flat_map(|item| item.clone().unwrap()).collect();
    assert_eq!(received, large()[..100_000]);
}

#[tokio::test]
async fn failures_that_pass_are_tried_again_and_others_not() {
    let server = server("").await;
    let origin = retrying(http(&server, ""));
    server.faults([Fault::Status(500), Fault::Status(503)]);
    assert_eq!(read(&origin, "hello.txt", 0..5, None).await.unwrap(), "hello");
    server.faults(vec![Fault::Status(500); 3]);
    let error = read(&origin, "hello.txt", 0..5, None).await.unwrap_err();
    assert!(matches!(error, OriginError::TooManyRetries { tries: 3, .. }), "{error}");
    assert_eq!(error.status(), 502);
    server.seen();
    for (status, code) in [(403, 403), (401, 502), (404, 404), (410, 404), (418, 502)] {
        server.faults([Fault::Status(status)]);
        let error = read(&origin, "hello.txt", 0..5, None).await.unwrap_err();
        assert_eq!(error.status(), code, "{error}");
    }
    assert_eq!(server.seen().len(), 5);
}

#[tokio::test]
async fn a_reply_about_another_range_is_refused() {
    let server = server("").await;
    let origin = http(&server, "");
    server.faults([Fault::WrongRange]);
    let error = read(&origin, "hello.txt", 0..5, None).await.unwrap_err();
    assert!(matches!(error, OriginError::BadReply { .. }), "{error}");
}

#[tokio::test]
async fn slow_servers_have_their_limits() {
    let server = server("").await;
    let url = Url::parse(&server.url("")).unwrap();
    let origin = HttpOrigin::new(&url, timeouts(100), &[]).unwrap();
    server.faults([Fault::Silence, Fault::Stall(5)]);
    let error = read(&origin, "hello.txt", 0..5, None).await.unwrap_err();
    let phase = |error: &OriginError| match error {
        OriginError::Timeout { phase, .. } => *phase,
        other => panic!("{other}"),
    };
    assert_eq!(phase(&error), Phase::FirstByte);
    assert_eq!(error.status(), 504);
    let error = read(&origin, "hello.txt", 0..11, None).await.unwrap_err();
    assert_eq!(phase(&error), Phase::Stalled);
}

#[tokio::test]
async fn unreachable_servers_say_why() {
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", unused.local_addr().unwrap());
    drop(unused);
    let origin = HttpOrigin::new(&Url::parse(&url).unwrap(), timeouts(2000), &[]).unwrap();
    let error = origin.head(&path("x")).await.unwrap_err();
    assert!(matches!(error, OriginError::Connect { .. }), "{error}");
    assert!(error.is_retryable());
    let plain = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", plain.local_addr().unwrap());
    let no_tls = tokio::spawn(async move {
        let (mut stream, _) = plain.accept().await.unwrap();
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        // The connection stays open until the client has read the reply, which a reset would discard.
        tokio::time::sleep(Duration::from_secs(5)).await;
    });
    // On a machine without root certificates there is no client for https.
    if let Ok(origin) = HttpOrigin::new(&Url::parse(&url).unwrap(), timeouts(2000), &[]) {
        let error = origin.head(&path("hello.txt")).await.unwrap_err();
        assert!(matches!(error, OriginError::Tls { .. }), "{error}");
    }
    no_tls.abort();
}

#[tokio::test]
async fn redirects_are_followed_where_allowed() {
    let origin_server = server("").await;
    let other = server("/moved").await;
    let to = other.url("/moved/hello.txt?signature=secret");
    let url = Url::parse(&origin_server.url("").replace("http://", "http://user:secret@")).unwrap();

    origin_server.faults([Fault::Redirect(to.clone())]);
    let strict = HttpOrigin::new(&url, timeouts(2000), &[]).unwrap();
    let error = read(&strict, "hello.txt", 0..5, None).await.unwrap_err();
    assert!(matches!(&error, OriginError::Redirect { to, .. } if to.contains("/moved/")));
    assert!(!error.to_string().contains("secret"), "{error}");
    assert!(other.seen().is_empty(), "nobody asked there");

    origin_server.faults([Fault::Redirect(to)]);
    let allowed = [other.address.to_string()];
    let lenient = HttpOrigin::new(&url, timeouts(2000), &allowed).unwrap();
    assert_eq!(read(&lenient, "hello.txt", 0..5, None).await.unwrap(), "hello");
    let asked = other.seen().remove(0);
    assert_eq!(asked.headers["range"], "bytes=0-4");
    assert!(!asked.headers.contains_key("authorization"));
    assert!(origin_server.seen().iter().all(|seen| seen.headers["authorization"].starts_with("Basic ")));

    origin_server.faults([Fault::Redirect("/folder/large.bin".into())]);
    assert_eq!(read(&strict, "hello.txt", 0..5, None).await.unwrap(), large()[..5]);
    origin_server.always(Fault::Redirect("/hello.txt".into()));
    let error = read(&strict, "hello.txt", 0..5, None).await.unwrap_err();
    assert!(matches!(error, OriginError::Redirect { .. }), "a loop ends");
}

#[tokio::test]
async fn head_does_without_head() {
    let server = server("").await;
    let origin = http(&server, "");
    server.faults([Fault::Status(405)]);
    assert_eq!(origin.head(&path("hello.txt")).await.unwrap().len, 11);
    let methods: Vec<_> = server.seen().into_iter().map(|seen| seen.method).collect();
    assert_eq!(methods, ["HEAD", "GET"]);
}

fn no_env(_: &str) -> Option<String> {
    None
}

fn s3_bucket(bucket: &str, prefix: &str) -> BucketPrefix {
    BucketPrefix { cloud: Cloud::S3, bucket: bucket.to_owned(), prefix: prefix.to_owned() }
}

/// Options of a bucket with time limits in milliseconds.
fn remote(bucket: BucketOptions, millis: u64) -> RemoteOptions {
    RemoteOptions { timeouts: timeouts(millis), bucket, ..RemoteOptions::default() }
}

/// Buckets of each kind, unsigned, at the test server. It does not speak their listing documents.
#[tokio::test]
async fn buckets_read_as_others_do() {
    for cloud in [Cloud::S3, Cloud::Gs, Cloud::Az] {
        let server = server("/bucket/pre/fix").await;
        let bucket = BucketOptions {
            endpoint: Some(server.url("")),
            anonymous: true,
            account: Some("account".into()),
            ..BucketOptions::default()
        };
        let location = BucketPrefix { cloud, ..s3_bucket("bucket", "pre/fix") };
        let origin = CloudOrigin::with_env(&location, &remote(bucket, 500), no_env).unwrap();
        reads_ranges(&origin).await;
        keeps_to_a_version(&origin).await;
        names_what_is_missing(&origin).await;

        server.faults([Fault::Stall(5), Fault::Silence, Fault::Status(503), Fault::Truncate(3)]);
        let error = read(&origin, "hello.txt", 0..11, None).await.unwrap_err();
        assert!(matches!(error, OriginError::Timeout { phase: Phase::Stalled, .. }), "{error}");
        let error = read(&origin, "hello.txt", 0..11, None).await.unwrap_err();
        assert!(matches!(error, OriginError::Timeout { phase: Phase::FirstByte, .. }), "{error}");
        let error = read(&origin, "hello.txt", 0..11, None).await.unwrap_err();
        assert!(matches!(error, OriginError::Status { code: 503, .. }), "{error}");
        let error = read(&origin, "hello.txt", 0..11, None).await.unwrap_err();
        assert!(matches!(error, OriginError::Truncated { expected: 11, received: 3, .. }), "{error}");
        server.faults([Fault::IgnoreRange]);
        let error = read(&origin, "hello.txt", 0..5, None).await.unwrap_err();
        assert!(matches!(error, OriginError::RangeIgnored { .. }), "{error}");
        let retrying = retrying(origin);
        server.faults([Fault::Truncate(100_000)]);
        let all = read(&retrying, "folder/large.bin", 0..300_000, None).await.unwrap();
        assert_eq!(all, large());
    }
}

#[tokio::test]
async fn a_listing_that_never_comes_has_its_limit() {
    let server = TestServer::start().await;
    server.always(Fault::Silence);
    let options = BucketOptions { endpoint: Some(server.url("")), anonymous: true, ..BucketOptions::default() };
    let origin = CloudOrigin::with_env(&s3_bucket("bucket", ""), &remote(options, 20), no_env).unwrap();
    let error = origin.list(&ObjectPath::root()).await.unwrap_err();
    assert!(matches!(error, OriginError::Timeout { phase: Phase::FirstByte, .. }), "{error}");
}

/// A service that would hand out keys if it were asked.
#[tokio::test]
async fn a_machine_is_asked_for_keys_only_where_something_says_so() {
    for (options, disabled, asked) in [
        (BucketOptions::default(), "true", false),
        (BucketOptions { instance_credentials: true, ..BucketOptions::default() }, "true", true),
        (BucketOptions::default(), "false", true),
        (BucketOptions { anonymous: true, ..BucketOptions::default() }, "false", false),
    ] {
        let (machine, bucket) = (TestServer::start().await, TestServer::start().await);
        bucket.always(Fault::Status(403));
        machine.always(Fault::Status(404));
        let endpoint = machine.url("");
        let env = |name: &str| match name {
            "AWS_EC2_METADATA_SERVICE_ENDPOINT" => Some(endpoint.clone()),
            "AWS_EC2_METADATA_DISABLED" => Some(disabled.to_owned()),
            _ => None,
        };
        let options = BucketOptions { endpoint: Some(bucket.url("")), ..options };
        let origin = CloudOrigin::with_env(&s3_bucket("bucket", ""), &remote(options.clone(), 5000), env).unwrap();
        let error = read(&origin, "hello.txt", 0..5, None).await.unwrap_err();
        assert_eq!(!machine.seen().is_empty(), asked, "{error}");
        let signed = bucket.seen().iter().any(|seen| seen.headers.contains_key("authorization"));
        assert!(!signed);
        let hints = error.to_string().contains("credentials = \"instance\"");
        assert_eq!(hints, !asked && !options.anonymous, "{error}");
    }
}

/// A versitygw over a folder, ended on drop.
struct Gateway {
    child: Child,
    dir: tempfile::TempDir,
    endpoint: String,
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Gateway {
    /// Starts it. Returns `None` where the program is not installed.
    async fn start() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        std::fs::create_dir_all(store.join("bucket")).unwrap();
        let port = {
            let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            free.local_addr().unwrap()
        };
        let child = Command::new("versitygw")
            .args(["--access", "A", "--secret", "S", "--port", &port.to_string(), "posix"])
            .arg(&store)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let gateway = Self { child, dir, endpoint: format!("http://{port}") };
        for _ in 0..100 {
            if tokio::net::TcpStream::connect(port).await.is_ok() {
                return Some(gateway);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("versitygw does not listen");
    }

    fn origin(&self, bucket: &str, prefix: &str, secret: &str) -> CloudOrigin {
        let file = self.dir.path().join("credentials");
        let text = format!("[default]\naws_access_key_id = A\naws_secret_access_key = {secret}\n");
        std::fs::write(&file, text).unwrap();
        let options = BucketOptions { endpoint: Some(self.endpoint.clone()), ..BucketOptions::default() };
        let env = |name: &str| {
            let is_file = name == "AWS_SHARED_CREDENTIALS_FILE";
            is_file.then(|| file.display().to_string())
        };
        CloudOrigin::with_env(&s3_bucket(bucket, prefix), &remote(options, 5000), env).unwrap()
    }
}

/// Reports a skipped test for want of `program`, as the end-to-end tests do.
fn missing(program: &str) {
    use std::io::Write as _;
    let line = format!("SKIPPED: s3_conforms: {program} is not installed (scripts/setup installs it)");
    println!("{line}");
    if let Some(path) = std::env::var_os("MILLPOND_TEST_SKIPS") {
        writeln!(std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap(), "{line}").unwrap();
    }
    assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "{line}, and CI is true");
}

#[tokio::test]
async fn s3_conforms() {
    let Some(gateway) = Gateway::start().await else {
        missing("versitygw");
        return;
    };
    let client = object_store::aws::AmazonS3Builder::new()
        .with_access_key_id("A")
        .with_secret_access_key("S")
        .with_bucket_name("bucket")
        .with_endpoint(&gateway.endpoint)
        .with_allow_http(true)
        .build()
        .unwrap();
    let put = |name: String, bytes: Vec<u8>| {
        let key = object_store::path::Path::parse(name).unwrap();
        let client: &dyn ObjectStore = &client;
        async move { client.put(&key, bytes.into()).await.unwrap() }
    };
    for prefix in ["", "a/prefix"] {
        for (name, bytes) in objects() {
            put(format!("{prefix}/{name}"), bytes).await;
        }
        conforms_as_s3(&gateway.origin("bucket", prefix, "S"), prefix.is_empty()).await;
    }
    let wrong = gateway.origin("bucket", "", "wrong");
    let error = read(&wrong, "hello.txt", 0..5, None).await.unwrap_err();
    assert!(
        matches!(&error, OriginError::Forbidden { detail, .. } if detail.contains("SignatureDoesNotMatch")),
        "{error}"
    );
    let missing = gateway.origin("nowhere", "", "S");
    let error = read(&missing, "hello.txt", 0..5, None).await.unwrap_err();
    assert!(matches!(&error, OriginError::NoSuchBucket { bucket, .. } if bucket == "nowhere"), "{error}");
    let error = missing.list(&ObjectPath::root()).await.unwrap_err();
    assert!(matches!(error, OriginError::NoSuchBucket { .. }), "{error}");

    let origin = gateway.origin("bucket", "", "S");
    let meta = origin.head(&path("hello.txt")).await.unwrap();
    put("hello.txt".into(), b"hello there".to_vec()).await;
    let error = read(&origin, "hello.txt", 0..5, Some(&meta)).await.unwrap_err();
    assert!(error.is_changed(), "{error}");
}

async fn conforms_as_s3(origin: &CloudOrigin, first: bool) {
    reads_ranges(origin).await;
    keeps_to_a_version(origin).await;
    names_what_is_missing(origin).await;
    if first {
        lists_folders(origin).await;
    }
}
