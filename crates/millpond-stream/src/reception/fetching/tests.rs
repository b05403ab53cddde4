use super::*;
use crate::web::WebMessage;
use futures_util::future::BoxFuture;
use std::sync::Mutex;

/// Answers from a list of replies: status, target of a redirect, body. It keeps the URLs of requests.
#[derive(Debug, Default)]
struct FakeWeb {
    replies: Mutex<Vec<(u16, &'static str, &'static str)>>,
    asked: Mutex<Vec<String>>,
}

impl Web for FakeWeb {
    fn get(&self, request: WebRequest) -> BoxFuture<'static, Result<WebReply, String>> {
        self.asked.lock().unwrap().push(request.url.to_string());
        let reply = self.replies.lock().unwrap().pop();
        Box::pin(async move {
            let (status, location, body) = reply.ok_or_else(|| "no connection".to_owned())?;
            let location = (!location.is_empty()).then(|| location.to_owned());
            let pieces: Vec<_> = body.as_bytes().chunks(3).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
            let body = futures_util::stream::iter(pieces).boxed();
            Ok(WebReply { status, location, retry_after: None, date: None, body })
        })
    }

    fn send(&self, _: WebMessage) -> BoxFuture<'static, Result<WebReply, String>> {
        Box::pin(async { Err("it sends no messages".to_owned()) })
    }
}

async fn read(
    replies: &[(u16, &'static str, &'static str)],
    range: Option<ByteRange>,
) -> (Result<String, SourceError>, Vec<String>) {
    let web = Arc::new(FakeWeb::default());
    web.replies.lock().unwrap().extend(replies.iter().rev());
    let origin = Url::parse("https://u:secret@tv.example/live/a.m3u8?token=secret").unwrap();
    let hosts = ["cdn.example".to_owned(), "b.example:8443".to_owned()];
    let fetcher = Fetcher::new(web.clone(), origin.clone(), hosts.into(), Duration::from_secs(1));
    let result = fetcher.read(origin, range, (10, Duration::ZERO)).await;
    let asked = std::mem::take(&mut *web.asked.lock().unwrap());
    (result.map(|(_, bytes)| String::from_utf8(bytes).unwrap()), asked)
}

#[tokio::test]
async fn redirects_lead_to_hosts_of_the_source() {
    let own = "https://u:secret@tv.example/live/a.m3u8?token=secret";
    let (result, asked) = read(&[(302, "/x", ""), (307, "https://cdn.example/y", ""), (200, "", "hello")], None).await;
    assert_eq!(result.unwrap(), "hello");
    assert_eq!(asked, [own, "https://u:secret@tv.example/x", "https://cdn.example/y"], "no password for another host");
    let (result, _) = read(&[(302, "https://b.example:8443/", ""), (200, "", "hello")], None).await;
    assert!(result.is_ok());
    for target in ["https://other.example/", "http://tv.example/", "https://b.example/", "file:///etc/passwd"] {
        let error = read(&[(302, target, ""), (200, "", "hello")], None).await.0.unwrap_err();
        assert_eq!(error.kind, SourceErrorKind::Protocol, "{target}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
    let (result, asked) = read(&[(302, "/again", ""); 9], None).await;
    assert!(result.unwrap_err().words.contains("5 redirects") && asked.len() == 6);
}

#[tokio::test]
async fn ranges_are_cut_from_whole_resources() {
    let range = Some(ByteRange::new(2, 6));
    assert_eq!(read(&[(206, "", "cdef")], range).await.0.unwrap(), "cdef");
    assert_eq!(read(&[(200, "", "abcdefgh")], range).await.0.unwrap(), "cdef");
    let cut = read(&[(200, "", "abc")], range).await.0.unwrap_err();
    assert_eq!(cut.words, "the reply ends before the wanted bytes");
    let far = Some(ByteRange::new(1 << 40, (1 << 40) + 1));
    assert!(read(&[(200, "", "abc")], far).await.0.unwrap_err().words.contains("no ranges"));
}

#[tokio::test]
async fn failures_are_told_by_kind() {
    for (status, kind) in
        [(404, SourceErrorKind::NotFound), (401, SourceErrorKind::Unauthorized), (503, SourceErrorKind::Refused(503))]
    {
        assert_eq!(read(&[(status, "", "")], None).await.0.unwrap_err().kind, kind);
    }
    assert_eq!(read(&[], None).await.0.unwrap_err().kind, SourceErrorKind::Unreachable);
    let long = read(&[(200, "", "more than ten")], None).await.0.unwrap_err();
    assert_eq!(long.words, "more than 10 bytes, expected at most that");
}
