//! Replies to requests that fail, as problem documents (RFC 9457).

use super::{super::Front, Reply, add_common_fields};
use crate::{
    cluster::MOVED,
    http::{Kind, render::AnswerError},
    problem::{self, Problem},
};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use millpond_http::body::Body;
use millpond_logging::RequestId;
use millpond_settings::nearest;
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

/// Answers bytes that are no valid request.
pub(crate) fn refusal(front: &Front, status: StatusCode, why: &str, peer: SocketAddr) -> Reply {
    let id = RequestId::next();
    front.metrics().request(Kind::Other, status, Duration::ZERO);
    if front.logs_requests() {
        tracing::info!(target: millpond_logging::ACCESS, %id, %peer, status = status.as_u16(), why, "not a request");
    }
    let mut reply = problem(id, Problem::new(status).detail(why));
    // Nobody knows whose it is.
    front.cors_of_nobody().add(None, &mut reply.headers);
    add_common_fields(&mut reply.headers, id);
    reply
}

/// Answers a request with the error of an asset or file. The log has all of the error, the client its share.
pub(in crate::http::answer) fn failure(id: RequestId, path: &str, error: &AnswerError) -> Reply {
    let status = error.status();
    if error.is_fault() {
        tracing::error!(%id, path, %error, "request failed");
    } else if error.is_of_file() {
        tracing::warn!(%id, path, %error, "request refused");
    } else {
        tracing::debug!(%id, path, %error, "request refused");
    }
    let hint = if status == StatusCode::NOT_FOUND { misspelt(path) } else { None };
    let detail = hint.map_or_else(
        || error.for_viewers(),
        |meant| format!("{}. An address with {meant} at its end may be meant", error.for_viewers()),
    );
    let document =
        Problem::new(status).detail(detail).asset(path.trim_start_matches('/')).unplayable(error.unplayable());
    let mut reply = problem(id, document);
    if let Some(seconds) = error.retry_after(Instant::now()) {
        reply.headers.insert(header::RETRY_AFTER, seconds.into());
    }
    if matches!(error, AnswerError::Moved(_)) {
        reply.headers.insert(MOVED, HeaderValue::from_static("?1"));
    }
    reply
}

/// Answers a request with a problem document.
pub(in crate::http::answer) fn problem(id: RequestId, problem: Problem) -> Reply {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(problem::CONTENT_TYPE));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let problem = problem.request_id(id);
    let body = Body::bytes(problem.to_json());
    Reply { status: problem.status, headers, body, is_last: false, problem: Some(Box::new(problem)) }
}

/// Names of the resources of a track.
const OF_TRACK: [&str; 7] =
    ["index.m3u8", "init.mp4", "iframes.m3u8", "thumbnails.vtt", "images.m3u8", "poster.jpg", "all.vtt"];

/// Whether a component of a path has the form of a track's name.
fn is_track(component: &str) -> bool {
    let number = component.strip_prefix(['v', 'a', 's']);
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns the name of the resource that the end of a path resembles. `None` for an exact name, and without resemblance.
fn misspelt(path: &str) -> Option<&'static str> {
    let mut components = path.rsplit('/');
    let name = components.next()?.to_ascii_lowercase();
    if components.next().is_some_and(is_track)
        && let Some(near) = nearest(&name, OF_TRACK.into_iter())
    {
        return OF_TRACK.into_iter().find(|known| *known == near && *known != name);
    }
    let (stem, extension) = name.rsplit_once('.')?;
    let meant = match extension {
        "mpd" | "mdp" | "dpm" | "pmd" | "dash" => "index.mpd",
        "m3u8" | "m3u" | "mu38" | "m3ub" | "m8u3" | "hls" => "index.m3u8",
        _ => return None,
    };
    // Files may have such extensions. With these stems, other servers name their manifests: `manifest.mpd`, `master.m3u8`.
    let is_usual = matches!(stem, "index" | "idnex" | "indx" | "manifest" | "master" | "main" | "playlist" | "stream");
    (is_usual && name != meant).then_some(meant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_near_those_of_manifests_are_misspelt() {
        for (path, meant) in [
            ("/films/a.mp4/index.mdp", Some("index.mpd")),
            ("/films/a.mp4/manifest.mpd", Some("index.mpd")),
            ("/films/a.mp4/Index.M3U", Some("index.m3u8")),
            ("/films/a.mp4/master.m3u8", Some("index.m3u8")),
            ("/films/a.mp4/v1/inti.mp4", Some("init.mp4")),
            ("/films/a.mp4/s1/al.vtt", Some("all.vtt")),
            ("/films/a.mp4/v1/init.mp4", None),
            ("/films/a.mp4/v1/12.m4s", None),
            ("/films/a.mp4/v1/i12.mp4", None),
            ("/films/video/inti.mp4", None),
            ("/films/a.mp4/index.mpd", None),
            ("/films/a.mp4/index.m3u8", None),
            ("/films/film.mpd", None),
            ("/films/index.html", None),
            ("/films", None),
        ] {
            assert_eq!(misspelt(path), meant, "{path}");
        }
    }
}
