//! The requests of WHIP (RFC 9725 4), which are those of WHEP too: an offer, its answer, and the end of the session.

use super::{Call, CallError, error::Refusal};
use crate::web::{Web, WebMessage, WebMethod, WebReply};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream::BoxStream};
use std::{sync::Arc, time::Duration};
use tokio::{runtime::Handle, time::timeout};
use url::Url;

/// Media type of offers and answers.
const SDP: &str = "application/sdp";
/// Most redirects of one offer.
const HOPS: usize = 5;
/// Most bytes of an answer.
const ANSWER: usize = 64 << 10;
/// Most bytes of a refusal that are read, and most characters that are shown.
const REFUSAL: (usize, usize) = (4 << 10, 300);
/// Time for the words of a refusal.
const WORDS: Duration = Duration::from_secs(1);
/// Time limit of the last request.
const LEAVING: Duration = Duration::from_secs(5);

/// A session at the server, which is ended when this is dropped.
pub(crate) struct CalledSession {
    web: Arc<dyn Web>,
    /// `None` where the server tells none, or one of another host.
    url: Option<Url>,
    bearer: Option<String>,
}

/// Sends an offer. Returns the answer, and the session that has begun.
///
/// # Errors
/// The server refuses the offer, leads to another host, or does not answer.
pub(super) async fn offer(call: &Call<'_>, offer: &str) -> Result<(Vec<u8>, CalledSession), CallError> {
    let Call { endpoint, web, purpose, .. } = *call;
    let body = Bytes::copy_from_slice(offer.as_bytes());
    let mut url = endpoint.url().clone();
    for _ in 0..=HOPS {
        let bearer = endpoint.bearer().filter(|_| is_trusted(endpoint.url(), &url)).cloned();
        let (method, body) = (WebMethod::Post, Some((SDP, body.clone())));
        let message = WebMessage { method, url: url.clone(), bearer: bearer.clone(), body };
        let reply = web.send(message).await.map_err(|words| CallError::Request(endpoint.hide(&words)))?;
        let WebReply { status, location, retry_after, body, .. } = reply;
        match status {
            201 => {
                let session = location.and_then(|target| url.join(&target).ok());
                let session = session.filter(|session| leads_on(endpoint.url(), session).is_ok());
                let session = CalledSession { web: web.clone(), url: session, bearer };
                let (answer, is_whole) = read(body, ANSWER).await;
                return if is_whole { Ok((answer, session)) } else { Err(CallError::Body(ANSWER)) };
            }
            307 | 308 => {
                let target = location.and_then(|target| url.join(&target).ok());
                let fault = |fault| CallError::Redirect { status, fault };
                url = target.ok_or_else(|| fault("without a valid Location"))?;
                leads_on(endpoint.url(), &url).map_err(fault)?;
            }
            status => {
                let words = timeout(WORDS, read(body, REFUSAL.0)).await.unwrap_or_default().0;
                let words = endpoint.hide(&words_of(&words));
                return Err(CallError::Refused(Refusal { purpose, status, words, retry_after }));
            }
        }
    }
    Err(CallError::Redirects(HOPS))
}

/// Checks that a server may lead to a URL.
fn leads_on(from: &Url, to: &Url) -> Result<(), &'static str> {
    match to.scheme() {
        "https" => {}
        "http" if from.scheme() == "http" => {}
        _ => return Err("leads to a URL that is not encrypted, or not of HTTP, so let the server lead to https://"),
    }
    let is_same_host = from.host().is_some() && from.host() == to.host();
    if is_same_host {
        Ok(())
    } else {
        Err("leads to another host, so write the URL of that host if it is the right one")
    }
}

/// Whether the token of an endpoint may be sent to a URL of its host.
fn is_trusted(endpoint: &Url, url: &Url) -> bool {
    let is_same = (endpoint.scheme(), endpoint.port_or_known_default()) == (url.scheme(), url.port_or_known_default());
    is_same || url.scheme() == "https"
}

/// Reads a body of at most `most` bytes. Returns whether that is all of it.
async fn read(mut body: BoxStream<'static, Result<Bytes, String>>, most: usize) -> (Vec<u8>, bool) {
    let mut all = Vec::new();
    while let Some(piece) = body.next().await {
        let Ok(piece) = piece else { return (all, false) };
        let room = most - all.len();
        all.extend_from_slice(piece.get(..room).unwrap_or(&piece));
        if piece.len() > room {
            return (all, false);
        }
    }
    (all, true)
}

/// The words of a refusal: the `detail` of a problem (RFC 9457), or a short text.
fn words_of(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let text = detail(&text).unwrap_or(text.trim());
    // A page is no text for an error, and neither is a session description.
    if text.starts_with('<') || text.starts_with("v=0") {
        return String::new();
    }
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(REFUSAL.1).collect()
}

/// The text of the member `detail` of a JSON object, up to the first escape.
fn detail(text: &str) -> Option<&str> {
    let (_, rest) = text.trim_start().strip_prefix('{')?.split_once("\"detail\"")?;
    let rest = rest.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
    rest.split(['"', '\\']).next()
}

impl Drop for CalledSession {
    /// Ends the session, without waiting for the reply.
    fn drop(&mut self) {
        let (Some(url), Ok(runtime)) = (self.url.take(), Handle::try_current()) else { return };
        let bearer = self.bearer.take();
        let deleted = self.web.send(WebMessage { method: WebMethod::Delete, url, bearer, body: None });
        runtime.spawn(async move {
            // The connection is closed anyway, and a server ends sessions without one.
            let _ = timeout(LEAVING, deleted).await;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        calling_webrtc::{CallPurpose, WebRtcEndpoint},
        web::WebRequest,
    };
    use futures_util::{future::BoxFuture, stream};
    use std::sync::Mutex;

    type Reply = (u16, &'static str, &'static str);
    type Sent = Vec<(WebMethod, String, Option<String>)>;

    /// Answers from a list of replies: status, Location, body. It keeps what it was sent.
    #[derive(Debug, Default)]
    struct FakeWeb {
        replies: Mutex<Vec<Reply>>,
        sent: Mutex<Sent>,
    }

    impl Web for FakeWeb {
        fn get(&self, _: WebRequest) -> BoxFuture<'static, Result<WebReply, String>> {
            Box::pin(async { Err("not asked".to_owned()) })
        }

        fn send(&self, message: WebMessage) -> BoxFuture<'static, Result<WebReply, String>> {
            self.sent.lock().unwrap().push((message.method, message.url.to_string(), message.bearer));
            let reply = self.replies.lock().unwrap().pop();
            Box::pin(async move {
                let (status, location, body) = reply.ok_or_else(|| "no connection to HUSH".to_owned())?;
                let location = (!location.is_empty()).then(|| location.to_owned());
                let pieces: Vec<_> = body.as_bytes().chunks(3).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
                let retry_after = (status == 503).then_some(Duration::from_secs(7));
                let body = stream::iter(pieces).boxed();
                Ok(WebReply { status, location, retry_after, date: None, body })
            })
        }
    }

    /// Sends an offer to a server with some replies; ends the session at once. Returns the answer, and what was sent.
    async fn send(replies: &[Reply]) -> (Result<String, CallError>, Sent) {
        let fake = Arc::new(FakeWeb::default());
        fake.replies.lock().unwrap().extend(replies.iter().rev());
        let web: Arc<dyn Web> = fake.clone();
        let endpoint = WebRtcEndpoint::parse("https://HUSH@h.example/live/whip?key=PST").unwrap();
        let (purpose, patience) = (CallPurpose::Publish, Duration::ZERO);
        let call = Call { endpoint: &endpoint, web: &web, purpose, patience };
        let result = offer(&call, "v=0").await.map(|(answer, _)| String::from_utf8(answer).unwrap());
        tokio::task::yield_now().await;
        let sent = std::mem::take(&mut *fake.sent.lock().unwrap());
        (result, sent)
    }

    #[tokio::test]
    async fn a_session_is_begun_and_ended() {
        let (answer, sent) = send(&[(201, "whip/7", "v=0 answer"), (200, "", "")]).await;
        assert_eq!(answer.unwrap(), "v=0 answer");
        let token = Some("HUSH".to_owned());
        let expected = [
            (WebMethod::Post, "https://h.example/live/whip?key=PST".to_owned(), token.clone()),
            (WebMethod::Delete, "https://h.example/live/whip/7".to_owned(), token),
        ];
        assert_eq!(sent, expected);
        for location in ["", "https://other.example/7", "http://h.example/7"] {
            let (answer, sent) = send(&[(201, location, "v=0")]).await;
            assert!(
                answer.is_ok() && sent.len() == 1,
                "{location}: a session of another host is not ended by a request"
            );
        }
    }

    #[tokio::test]
    async fn redirects_stay_on_the_host() {
        let (answer, sent) =
            send(&[(307, "/a", ""), (308, "https://h.example:8443/b", ""), (201, "/s", "v=0"), (200, "", "")]).await;
        assert!(answer.is_ok());
        let urls: Vec<&str> = sent.iter().map(|(_, url, _)| url.as_str()).collect();
        assert_eq!(urls[1..], ["https://h.example/a", "https://h.example:8443/b", "https://h.example:8443/s"]);
        for (reply, words) in [
            ((307, "https://other.example/", ""), "another host"),
            ((308, "http://h.example/", ""), "not encrypted"),
            ((307, "file:///etc/passwd", ""), "not of HTTP"),
            ((307, "", ""), "without a valid Location"),
            ((302, "/a", ""), "only redirects with 307 and 308"),
        ] {
            let (result, sent) = send(&[reply, (201, "/s", "v=0")]).await;
            let error = result.unwrap_err().to_string();
            assert!(error.contains(words) && sent.len() == 1, "{error}");
        }
        let (result, sent) = send(&[(307, "/again", ""); 9]).await;
        assert!(result.unwrap_err().to_string().contains("5 redirects") && sent.len() == 6);
    }

    #[tokio::test]
    async fn refusals_tell_what_the_server_says() {
        for (body, words) in [
            (r#"{"title":"Conflict","detail":"taken by HUSH","status":409}"#, "(it says: taken by ***)"),
            ("taken\r\nat ?key=PST", "(it says: taken  at ?***)"),
        ] {
            let error = send(&[(409, "", body)]).await.0.unwrap_err().to_string();
            assert!(error.starts_with("status 409 ") && error.ends_with(words), "{error}");
        }
        let CallError::Refused(refusal) = send(&[(503, "", "")]).await.0.unwrap_err() else { panic!("no refusal") };
        assert_eq!(refusal.retry_after, Some(Duration::from_secs(7)));
        for body in ["<html>no</html>", "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\n"] {
            let error = send(&[(404, "", body)]).await.0.unwrap_err().to_string();
            assert!(!error.contains("it says"), "{error}");
        }
        let error = send(&[]).await.0.unwrap_err().to_string();
        assert_eq!(error, "no reply to the offer: no connection to ***");
        let long: &'static str = "a=x\r\n".repeat(20_000).leak();
        let (result, sent) = send(&[(201, "/s", long), (200, "", "")]).await;
        assert!(matches!(result, Err(CallError::Body(ANSWER))) && sent.len() == 2, "the session is ended");
    }
}
