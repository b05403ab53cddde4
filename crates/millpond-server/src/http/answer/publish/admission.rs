//! The right of a client to publish a stream by HTTP or WHIP, and the stream that its path names.

use super::{
    super::{Context, Front, ReplyInfo},
    error::PublishError,
};
use crate::http::Kind;
use http::{Uri, header};
use millpond_access::{AskingClient, AuthAction, HttpClient, Publishers};
use millpond_stream::{Conflict, LiveRequest, PublishRefused, Source};
use std::{net::IpAddr, time::Duration};

/// A stream that a client may publish.
pub(in crate::http::answer) struct Admission {
    pub(in crate::http::answer) stream: LiveRequest,
    /// Rule for a stream that has a publisher already.
    pub(in crate::http::answer) conflict: Conflict,
    /// Longest silence of the publisher.
    pub(in crate::http::answer) patience: Duration,
}

impl Admission {
    /// Checks that nobody else publishes the stream, unless another publisher may take its place.
    pub(in crate::http::answer) fn check_taken(&self, front: &Front) -> Result<(), PublishError> {
        match front.sources.manager().is_taken(&self.stream.path, self.conflict) {
            true => Err(PublishRefused::Taken.into()),
            false => Ok(()),
        }
    }
}

/// Finds the stream of a path, and checks the right of the client to publish it.
///
/// # Errors
/// The client may not, or the stream is not one that is pushed.
pub(in crate::http::answer) async fn admit(
    context: &Context<'_>,
    stream: &str,
    info: &mut ReplyInfo,
) -> Result<Admission, PublishError> {
    let Context { front, target, .. } = *context;
    let publishers = front.publishers().ok_or(PublishError::NotPublished)?;
    check_right(context, publishers, stream).await?;
    if let Some(place) = front.place_of(target) {
        front.attribute(place.index, Kind::Stream, info);
    }
    let at = front.sources.find(stream);
    let stream = front.sources.live(&at).map_err(PublishError::Name)?;
    let stream = stream.filter(|stream| stream.source == Source::Published).ok_or(PublishError::NotPublished)?;
    Ok(Admission { stream, conflict: publishers.conflict(), patience: front.sources.patience(&at) })
}

/// As [`admit`], for requests that pages of browsers may send: pages of this server, and those that show a token which is checked. Other
/// pages would publish with the rights that the browser's machine has, or with passwords that the browser knows.
///
/// # Errors
/// Those of [`admit`]; the page may not publish.
pub(in crate::http::answer) async fn admit_page(
    context: &Context<'_>,
    stream: &str,
    info: &mut ReplyInfo,
) -> Result<Admission, PublishError> {
    let Context { front, request, .. } = *context;
    if let Some(origin) = request.headers.get(header::ORIGIN).map(|origin| origin.to_str().unwrap_or_default()) {
        let publishers = front.publishers().ok_or(PublishError::NotPublished)?;
        let is_checked = is_checked(context, publishers, stream);
        let shown = request.header(header::AUTHORIZATION).and_then(|text| text.split_once(' '));
        let is_shown = shown.is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let host = request.header(header::HOST).unwrap_or_default();
        if !(is_own(origin, host, is_checked) || is_checked && is_shown) {
            return Err(PublishError::ForeignPage { origin: origin.to_owned(), host: host.to_owned() });
        }
    }
    admit(context, stream, info).await
}

/// Whether publishers of a stream are known by more than their address.
fn is_checked(context: &Context<'_>, publishers: &Publishers, stream: &str) -> bool {
    publishers.passwords().is_some() || context.front.gates().ask_to_publish(stream, &asker(context)).is_some()
}

/// Whether an origin is this server. Where publishers are known by their address alone, it is one by its address, or by the name of the
/// machine itself: other names may be those of strangers, who let them mean this machine.
fn is_own(origin: &str, host: &str, is_checked: bool) -> bool {
    let Ok(origin) = origin.parse::<Uri>() else { return false };
    let name = origin.host().unwrap_or_default();
    let is_address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_ok();
    let is_same = origin.authority().is_some_and(|authority| authority.as_str().eq_ignore_ascii_case(host));
    is_same && (is_checked || is_address || name.eq_ignore_ascii_case("localhost"))
}

/// The client of a request that asks to publish.
fn asker<'a>(context: &Context<'a>) -> AskingClient<'a> {
    let request = context.request;
    AskingClient {
        address: context.client(),
        action: AuthAction::Publish,
        protocol: if context.is_secure() { "https" } else { "http" },
        token: request.token.as_deref(),
        query: context.query(),
        authorization: request.header(header::AUTHORIZATION),
        agent: request.header(header::USER_AGENT),
    }
}

/// Checks the right of a client to publish a stream.
async fn check_right(context: &Context<'_>, publishers: &Publishers, stream: &str) -> Result<(), PublishError> {
    let Context { front, request, .. } = *context;
    let written = request.written_target();
    let publisher = HttpClient {
        address: context.client(),
        is_secure: context.is_secure(),
        method: request.method.as_str(),
        target: &written,
        is_forwarded: request.forwarded.is_some(),
        authorization: request.header(header::AUTHORIZATION),
    };
    let is_forwarded = ["x-forwarded-for", "forwarded"].iter().any(|name| request.headers.contains_key(*name));
    let is_here = publisher.address.to_canonical().is_loopback() && !publisher.is_forwarded;
    if is_forwarded && is_here && !is_checked(context, publishers, stream) {
        return Err(PublishError::Forwarded);
    }
    match front.gates().ask_to_publish(stream, &asker(context)) {
        Some(question) => drop(Box::pin(question.answer()).await?),
        None => publishers.admit_http(&publisher, front.now())?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_this_server_are_known_by_its_address() {
        for (origin, host, is_checked, expected) in [
            ("http://127.0.0.1:8080", "127.0.0.1:8080", false, true),
            ("https://[::1]:8443", "[::1]:8443", false, true),
            ("http://localhost:8080", "localhost:8080", false, true),
            ("http://127.0.0.1:8081", "127.0.0.1:8080", false, false),
            ("http://evil.example:8080", "evil.example:8080", false, false),
            ("https://media.example", "media.example", true, true),
            ("http://evil.example", "127.0.0.1:8080", true, false),
            ("null", "127.0.0.1:8080", true, false),
            ("", "", false, false),
        ] {
            assert_eq!(is_own(origin, host, is_checked), expected, "{origin} of {host}");
        }
    }
}
