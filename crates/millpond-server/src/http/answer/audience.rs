//! The viewer of a request, for the list of viewers and for those who are refused.

use super::{Front, Reply, ReplyInfo};
use crate::{
    audience::{Length, ReadBytes, UnderWay, Viewing},
    http::{Kind, request::Request},
    library::Route,
    logging::RequestId,
    problem::Problem,
    uri,
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{HeaderName, HeaderValue, Method, StatusCode, header};
use serde::Deserialize;
use std::net::IpAddr;

/// Header field of CMCD with the session (CTA-5004).
const CMCD_SESSION: HeaderName = HeaderName::from_static("cmcd-session");

impl Front {
    /// Refuses a request of a viewer that an operator has kicked.
    pub(super) fn kicked(&self, id: RequestId, path: &str, request: &Request, client: IpAddr) -> Option<Reply> {
        let audience = self.audience();
        if !audience.has_blocks() {
            return None;
        }
        let (asset, subject) = (self.asset_of(path), subject(request));
        let left = audience.blocked(&viewing(request, client, &asset, subject.as_deref()))?;
        let mut reply = self.problem(id, Problem::new(StatusCode::FORBIDDEN).detail("refused by the operator"));
        let seconds = HeaderValue::from(left.as_secs().saturating_add(1));
        reply.headers.insert(header::RETRY_AFTER, seconds);
        Some(reply)
    }

    /// Registers a response with a file or a running stream until the result is dropped. `sent` reads its bytes.
    pub(crate) fn under_way(
        &self,
        request: &Request,
        client: IpAddr,
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
        let path = uri::decode_path(request.split().0)?;
        let (asset, subject) = (self.asset_of(&path), subject(request));
        Some(self.audience().begin(&viewing(request, client, &asset, subject.as_deref()), length, sent()))
    }

    /// Counts a request for media that was answered.
    pub(crate) fn answered(&self, request: &Request, client: IpAddr, (kind, status): (Kind, StatusCode), bytes: u64) {
        let is_media = !matches!(kind, Kind::Page | Kind::Admin | Kind::Other);
        let is_read = matches!(request.method, Method::GET | Method::HEAD);
        if !is_media || !is_read || !(status.is_success() || status == StatusCode::NOT_MODIFIED) {
            return;
        }
        if let Some(path) = uri::decode_path(request.split().0) {
            let (asset, subject) = (self.asset_of(&path), subject(request));
            self.audience().answered(&viewing(request, client, &asset, subject.as_deref()), bytes);
        }
    }

    /// The path of the asset, stream or file that a path belongs to.
    pub(super) fn asset_of(&self, path: &str) -> String {
        if let Some(live) = self.live_path(path) {
            return live.stream.trim_matches('/').to_owned();
        }
        let Some((_, place, inside)) = self.place(path) else { return path.trim_matches('/').to_owned() };
        let inside = Route::parse(inside).map_or_else(|| inside.to_owned(), |route| route.asset);
        let parts = [place, inside.trim_matches('/')];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/")
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
