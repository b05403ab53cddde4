//! Running streams, each in one long response.

use super::{Front, Reply, ReplyInfo, live::LivePath};
use crate::http::{
    AnswerError,
    body::Body,
    render::{LongResponse, Muxer, Sent},
    request::Request,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use millpond_package::hls::Container;
use millpond_stream::{Format, Program, fragmenter::fits};

impl Front {
    /// Answers a request for the long response of a stream in a container.
    ///
    /// # Errors
    /// The stream can't be opened, or no media of it can be sent.
    pub(super) async fn long(
        &self,
        path: &LivePath<'_>,
        container: Container,
        request: &Request,
        info: &mut ReplyInfo,
    ) -> Result<Reply, AnswerError> {
        // The media of a live source is unknown before it is opened.
        if request.method == Method::HEAD && path.is_source {
            self.sources.live(path.stream)?;
            return Ok(Reply { status: StatusCode::OK, headers: headers(container, None), body: Body::unmade() });
        }
        let program = self.live_program(path).await?;
        let muxer = Muxer::of(&program, container).ok_or_else(|| unfit(&program, container))?;
        let headers = headers(container, Some(&program));
        // Nothing starts for a client that takes no media.
        if request.method == Method::HEAD {
            return Ok(Reply { status: StatusCode::OK, headers, body: Body::unmade() });
        }
        let viewing = self.sources.manager().branch(&program, info.id.as_str()).await;
        let viewing = viewing.map_err(|error| AnswerError::NotStarted { path: path.stream.to_owned(), error })?;
        let sent = Sent::new(self.metrics.clone(), info.place.clone());
        info.counts_itself = true;
        let body = LongResponse::new(program, viewing, muxer, self.stop.subscribe(), sent);
        Ok(Reply { status: StatusCode::OK, headers, body: Body::stream(Box::new(body)) })
    }
}

/// Returns the header fields of a long response. It has no validators and no ranges: each one is another part of the stream.
fn headers(container: Container, program: Option<&Program>) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(8);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("none"));
    let Some(program) = program.filter(|_| container == Container::Fmp4) else {
        let media_type = if container == Container::Fmp4 { "video/mp4" } else { "video/mp2t" };
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
        return headers;
    };
    let sent = || program.formats().map(|(_, format)| format).filter(|format| fits(format));
    let kind = if sent().any(Format::is_video) { "video" } else { "audio" };
    let codecs: Vec<_> = sent().map(|format| format.track.codec.parameter()).collect();
    // RFC 6381: players of media source extensions need it before the first byte.
    let media_type = HeaderValue::from_str(&format!("{kind}/mp4; codecs=\"{}\"", codecs.join(", ")));
    headers.insert(header::CONTENT_TYPE, media_type.unwrap_or(HeaderValue::from_static("video/mp4")));
    headers
}

/// Returns the error of a stream whose leading track a container can't carry.
pub(super) fn unfit(program: &Program, container: Container) -> AnswerError {
    let codecs: Vec<_> = program.formats().map(|(_, format)| format.track.codec.parameter()).collect();
    let container = match container {
        Container::Fmp4 => "fragmented MP4",
        Container::Ts => "MPEG-2 TS",
    };
    AnswerError::Unfit { path: program.path().to_owned(), container, found: codecs.join(", ") }
}
