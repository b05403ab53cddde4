//! Reads and checks the headers of requests.

use super::{
    TimeRange,
    action::{Announce, Asked, Named, SetUp},
};
use crate::{library::decode_path, rtsp::reply::Reply};
use millpond_access::{Pass, token};
use millpond_rtp::{
    key_management::carriage,
    message::{
        HeaderName, Method, Request, StatusCode,
        headers::{
            AUTHORIZATION, BANDWIDTH, CONTENT_TYPE, CSEQ, PROXY_REQUIRE, RANGE, REQUIRE, SCALE, SESSION, SPEED,
            TRANSPORT, UNSUPPORTED, USER_AGENT,
        },
    },
    play,
    setup::{self, Mode},
};
use url::Url;

/// Most characters of a user agent in the log.
const AGENT: usize = 200;
/// Most bytes of the list of unsupported options in a reply.
const OPTIONS: usize = 256;
/// Speeds that media is sent at, times its own pace.
const SPEEDS: std::ops::RangeInclusive<f64> = 0.1..=4.0;

fn header<'a>(request: &'a Request<Vec<u8>>, name: &HeaderName) -> Option<&'a str> {
    request.header(name).map(|value| value.as_str())
}

/// The reply to a request without a number (RFC 2326 12.17), or with a required option (12.32, 12.27). No option is supported.
pub(super) fn unfit(request: &Request<Vec<u8>>) -> Option<Reply> {
    let number = header(request, &CSEQ).unwrap_or("");
    if number.is_empty() || number.parse::<u64>().is_err() || number.starts_with('+') {
        return Some(Reply::refusal(StatusCode::BadRequest, "CSeq: expected one whole number"));
    }
    let options = [&REQUIRE, &PROXY_REQUIRE].map(|name| header(request, name).unwrap_or(""));
    let mut named: Vec<&str> = options.iter().flat_map(|list| list.split(',')).map(str::trim).collect();
    named.retain(|option| !option.is_empty());
    if named.is_empty() {
        return None;
    }
    let mut unsupported = named.join(", ");
    unsupported.retain(|character| character.is_ascii_graphic() || character == ' ');
    unsupported.truncate(OPTIONS);
    let why = format!("required options are not supported: {unsupported}");
    Some(Reply::refusal(StatusCode::OptionNotSupported, why).with(UNSUPPORTED, unsupported))
}

/// The name of a request's session, without its parameters.
pub(super) fn session(request: &Request<Vec<u8>>) -> Option<String> {
    Some(header(request, &SESSION)?.split(';').next().unwrap_or("").trim().to_owned())
}

/// The `User-Agent` of a request, shortened for the log.
pub(super) fn agent(request: &Request<Vec<u8>>) -> Option<String> {
    Some(header(request, &USER_AGENT)?.chars().take(AGENT).collect())
}

/// The token that the path of a request's URL begins with, and the rest of the path.
fn split(request: &Request<Vec<u8>>) -> Option<(Option<&str>, &str)> {
    let path = request.request_uri()?.path();
    Some(token::split(path).map_or((None, path), |(token, rest)| (Some(token), rest)))
}

/// The token in the path of a request's URL.
pub(super) fn token(request: &Request<Vec<u8>>) -> Option<&str> {
    split(request)?.0
}

/// The URL of a request for the log, without tokens and without a user and a password.
pub(super) fn logged(request: &Request<Vec<u8>>) -> Option<String> {
    let mut url = request.request_uri()?.clone();
    let _ = (url.set_username(""), url.set_password(None));
    let rest = token::split(url.path()).map(|(_, rest)| rest.to_owned());
    if let Some(rest) = rest {
        url.set_path(&rest);
    }
    if url.query().is_some_and(|query| query.split('&').any(token::is_parameter)) {
        url.set_query(None);
    }
    Some(url.into())
}

/// The path of a request's URL, decoded, without a token.
pub(in crate::rtsp) fn path(request: &Request<Vec<u8>>) -> Option<String> {
    let path = split(request)?.1.trim_matches('/').to_owned();
    let path = decode_path(&path)?.into_owned();
    (!path.contains('\0')).then_some(path)
}

/// The path of the stream that a request is about: without the track's name in SETUP.
pub(super) fn stream<'a>(request: &Request<Vec<u8>>, path: &'a str) -> &'a str {
    match request.method() {
        Method::Setup => path.rsplit_once('/').map_or(path, |(stream, _)| stream),
        _ => path,
    }
}

/// The value of `Authorization`.
pub(super) fn authorization(request: &Request<Vec<u8>>) -> Option<&str> {
    header(request, &AUTHORIZATION)
}

/// The query of a request's URL.
pub(super) fn query(request: &Request<Vec<u8>>) -> String {
    request.request_uri().and_then(Url::query).unwrap_or_default().to_owned()
}

/// Bits a second that the client can receive (RFC 2326 12.6).
pub(super) fn bandwidth(request: &Request<Vec<u8>>) -> Option<u64> {
    header(request, &BANDWIDTH)?.trim().parse().ok()
}

/// The URL that a client is sent to when there is no room for it here.
pub(super) fn elsewhere(request: &Request<Vec<u8>>, overflow: Option<&Url>, is_secure: bool) -> Option<String> {
    // A client that came over TLS is not sent to a connection without it.
    let mut elsewhere = overflow.filter(|url| !is_secure || url.scheme() == "rtsps")?.clone();
    let url = request.request_uri()?;
    elsewhere.set_path(&format!("{}{}", elsewhere.path().trim_end_matches('/'), url.path()));
    elsewhere.set_query(url.query());
    Some(elsewhere.into())
}

/// The URL of a request at another server, with its token and track. `mark` is added to its query.
pub(super) fn moved(request: &Request<Vec<u8>>, base: &str, mark: &str) -> Option<String> {
    let url = request.request_uri()?;
    let query = url.query().filter(|query| !query.is_empty()).map(|query| format!("{query}&")).unwrap_or_default();
    Some(format!("{base}{}?{query}{mark}", url.path()))
}

/// Whether a SETUP is that of a publisher.
pub(super) fn is_to_record(request: &Request<Vec<u8>>) -> bool {
    setup::mode(header(request, &TRANSPORT).unwrap_or("")) == Mode::Record
}

/// Whether a SETUP states what it is for.
pub(super) fn states_mode(request: &Request<Vec<u8>>) -> bool {
    header(request, &TRANSPORT).unwrap_or("").to_ascii_lowercase().contains("mode=")
}

/// The reply to a request whose URL has no path, or one that is not UTF-8.
pub(super) fn no_path() -> Reply {
    Reply::refusal(StatusCode::BadRequest, "the URL has no path of UTF-8 text")
}

/// The action of an ANNOUNCE.
///
/// # Errors
/// The reply to one that has none.
pub(super) fn announce(request: &Request<Vec<u8>>) -> Result<Announce, Reply> {
    let is_other = |kind: &str| !kind.split(';').next().unwrap_or("").trim().eq_ignore_ascii_case("application/sdp");
    if header(request, &CONTENT_TYPE).is_some_and(is_other) {
        let why = "Content-Type: expected application/sdp";
        return Err(Reply::refusal(StatusCode::UnsupportedMediaType, why));
    }
    let url = request.request_uri().ok_or_else(no_path)?.as_str().to_owned();
    Ok(Announce { path: path(request).ok_or_else(no_path)?, url, description: request.body().clone() })
}

/// The action of a SETUP.
///
/// # Errors
/// The reply to one that has none.
pub(super) fn set_up<T>(request: &Request<Vec<u8>>, session: Option<Named<T>>) -> Result<SetUp<T>, Reply> {
    let path = path(request).ok_or_else(no_path)?;
    let no_track = || Reply::refusal(StatusCode::NotFound, "SETUP: the URL names no track");
    let (path, track) = path.rsplit_once('/').ok_or_else(no_track)?;
    let transport = header(request, &TRANSPORT).unwrap_or("");
    let mode = setup::mode(transport);
    let offers = setup::offers(transport, mode);
    let key = HeaderName::try_from(carriage::HEADER).ok();
    let key = key.and_then(|name| header(request, &name)).map(str::to_owned);
    let (path, track, query) = (path.to_owned(), track.to_owned(), query(request));
    let (agent, pass) = (agent(request), Pass::default());
    Ok(SetUp { path, track, query, session, mode, offers, key, agent, pass })
}

/// The parameters of a PLAY.
///
/// # Errors
/// The reply to one that has none.
pub(super) fn play(request: &Request<Vec<u8>>) -> Result<Asked, Reply> {
    let range = header(request, &RANGE).map_or(Ok(TimeRange::Unstated), TimeRange::parse).map_err(|error| {
        let status = match error {
            play::PlayError::Units(_) => StatusCode::NotImplemented,
            play::PlayError::Malformed { .. } => StatusCode::InvalidRange,
        };
        Reply::refusal(status, error)
    })?;
    let rate = |name, text: Option<&str>| {
        text.map_or(Ok(1.0), |text| play::rate(name, text))
            .map_err(|error| Reply::refusal(StatusCode::BadRequest, error))
    };
    let speed = rate("Speed", header(request, &SPEED))?.clamp(*SPEEDS.start(), *SPEEDS.end());
    let scale = rate("Scale", header(request, &SCALE))?;
    Ok(Asked { range, speed, scale })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;
    use millpond_rtp::{
        framing::{self, ClientMessage},
        message::Version,
    };

    #[test]
    fn the_log_has_no_secrets_of_a_url() {
        for (url, shown) in [
            ("rtsp://edge/a.mp4?x=1", "rtsp://edge/a.mp4?x=1"),
            ("rtsp://edge/~eyJ0.a.b/a.mp4", "rtsp://edge/a.mp4"),
            ("rtsp://edge/a.mp4?x=1&pass=secret", "rtsp://edge/a.mp4"),
            ("rtsp://ann:secret@edge/a.mp4", "rtsp://edge/a.mp4"),
        ] {
            let builder = Request::builder(Method::Describe, Version::V1_0);
            let request = builder.request_uri(Url::parse(url).unwrap()).build(Vec::new());
            assert_eq!(logged(&request).as_deref(), Some(shown));
        }
    }

    #[test]
    fn a_redirect_keeps_the_token_the_track_and_the_query() {
        let moved_to = |method: &str, target: &str| {
            let text = format!("{method} rtsp://edge1/{target} RTSP/1.0\r\nCSeq: 1\r\n\r\n");
            let Ok(Some(ClientMessage::Request(request))) = framing::take(&mut BytesMut::from(text.as_bytes())) else {
                panic!("{text}");
            };
            moved(&request, "rtsp://edge2:8554", "mark=edge1").unwrap()
        };
        let expected = "rtsp://edge2:8554/~eyJ.a.b/films/a%20b.mp4?mark=edge1";
        assert_eq!(moved_to("DESCRIBE", "~eyJ.a.b/films/a%20b.mp4"), expected);
        let expected = "rtsp://edge2:8554/films/a.mp4/v1?token=x&mark=edge1";
        assert_eq!(moved_to("SETUP", "films/a.mp4/v1?token=x"), expected);
    }
}
