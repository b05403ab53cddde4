//! The viewer of a request, for the list of viewers and for those who are refused.

use super::super::{Context, Front, Reply, ReplyInfo, Target, reply::problem};
use crate::{
    audience::{Length, ReadBytes, UnderWay, Viewing},
    http::Kind,
    problem::Problem,
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{HeaderName, HeaderValue, Method, StatusCode, header};
use millpond_http::request::Request;
use millpond_library::uri;
use millpond_logging::RequestId;
use serde::Deserialize;
use std::net::IpAddr;

/// Header field of CMCD with the session (CTA-5004).
const CMCD_SESSION: HeaderName = HeaderName::from_static("cmcd-session");

/// Refuses a request of a viewer that an operator has kicked.
pub(in crate::http::answer) fn kicked(context: &Context<'_>, id: RequestId) -> Option<Reply> {
    let Context { front, request, target, .. } = *context;
    let audience = front.audience();
    if !audience.has_blocks() {
        return None;
    }
    let (asset, subject) = (target.asset(), subject(request));
    let left = audience.blocked(&viewing(request, context.client(), &asset, subject.as_deref()))?;
    let mut reply = problem(id, Problem::new(StatusCode::FORBIDDEN).detail("refused by the operator"));
    let seconds = HeaderValue::from(left.as_secs().saturating_add(1));
    reply.headers.insert(header::RETRY_AFTER, seconds);
    Some(reply)
}

/// A request that was answered, as viewers are counted by it.
#[derive(Clone, Copy)]
pub(crate) struct AnsweredRequest<'a> {
    /// Front end that answered.
    pub(crate) front: &'a Front,
    /// The request.
    pub(crate) request: &'a Request,
    /// The target of the request: page, stream, asset or file.
    pub(crate) target: &'a Target,
    /// Address of the client.
    pub(crate) client: IpAddr,
}

impl AnsweredRequest<'_> {
    /// Registers a response with a file or a running stream until the result is dropped. `sent` reads its bytes.
    pub(crate) fn under_way(
        &self,
        (info, status): (&ReplyInfo, StatusCode),
        sent: impl FnOnce() -> ReadBytes,
    ) -> Option<UnderWay> {
        let length = match info.kind {
            Kind::Stream if info.counts_itself => Length::Long,
            Kind::File => Length::File,
            _ => return None,
        };
        if !status.is_success() {
            return None;
        }
        let (asset, subject) = (self.target.asset(), subject(self.request));
        let viewing = viewing(self.request, self.client, &asset, subject.as_deref());
        Some(self.front.audience().begin(&viewing, length, sent()))
    }

    /// Counts a request for media that was answered. `has_starved` tells whether its player reports that its buffer ran empty.
    pub(crate) fn count(&self, (kind, status): (Kind, StatusCode), bytes: u64, has_starved: bool) {
        let is_media = !matches!(kind, Kind::Page | Kind::Admin | Kind::Other);
        let is_read = matches!(self.request.method, Method::GET | Method::HEAD);
        if !is_media || !is_read || !(status.is_success() || status == StatusCode::NOT_MODIFIED) {
            return;
        }
        let (asset, subject) = (self.target.asset(), subject(self.request));
        let viewing = viewing(self.request, self.client, &asset, subject.as_deref());
        let audience = self.front.audience();
        audience.answered(&viewing, bytes);
        if has_starved {
            audience.rebuffered(&asset);
        }
    }
}

fn viewing<'a>(request: &'a Request, client: IpAddr, asset: &'a str, subject: Option<&'a str>) -> Viewing<'a> {
    let agent = request.header(header::USER_AGENT).unwrap_or_default();
    Viewing { client, agent, subject, asset }
}

/// The session of CMCD that a request tells, else the subject of its token.
fn subject(request: &Request) -> Option<String> {
    if let Some(field) = request.header(CMCD_SESSION) {
        return session(field);
    }
    let (_, query) = request.split();
    if query.contains("CMCD=") {
        return session(&uri::parameter(query, "CMCD"));
    }
    token_subject(request.token.as_deref()?)
}

/// The value of `sid` in CMCD's keys.
fn session(keys: &str) -> Option<String> {
    let value = keys.split(',').find_map(|pair| pair.trim().strip_prefix("sid=\""))?;
    value.strip_suffix('"').map(str::to_owned)
}

/// The subject of a token, which the gate has checked.
fn token_subject(token: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Claims {
        sub: Option<String>,
    }
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    serde_json::from_slice::<Claims>(&claims).ok()?.sub
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderMap;

    #[test]
    fn sessions_of_cmcd_and_subjects_of_tokens_are_found() {
        let get = |target: &str| Request::new(Method::GET, target.to_owned(), HeaderMap::new());
        assert_eq!(subject(&get("/a.mp4")), None);
        assert_eq!(subject(&get("/a.mp4?CMCD=bl%3D100%2Csid%3D%22s-1%22")).as_deref(), Some("s-1"));
        let mut with_field = get("/a.mp4");
        with_field.headers.insert(CMCD_SESSION, HeaderValue::from_static("cid=\"c\", sid=\"s-2\""));
        assert_eq!(subject(&with_field).as_deref(), Some("s-2"));
        let claims = URL_SAFE_NO_PAD.encode(br#"{"sub":"ann","exp":1}"#);
        assert_eq!(token_subject(&format!("eyJh.{claims}.c2ln")).as_deref(), Some("ann"));
        for bad in ["", "a", "a.b", "a.!!.c", "a.bnVsbA.c"] {
            assert_eq!(token_subject(bad), None, "{bad}");
        }
        for bad in ["sid=", "sid=\"open", "nosid", ""] {
            assert_eq!(session(bad), None, "{bad}");
        }
    }
}
