//! Metrics and health, outside of the API and without its token.

use super::{AdminState, Reply, refuse, reply};
use crate::{metrics::TextFormat, problem::Problem};
use http::{
    HeaderMap, Method, StatusCode,
    header::{ACCEPT, ALLOW, HeaderValue, VARY},
};

const TEXT: &str = "text/plain; charset=utf-8";

pub(super) fn answer(method: &Method, path: &str, headers: &HeaderMap, state: &AdminState) -> Reply {
    if !matches!(path, "/metrics" | "/livez" | "/readyz") {
        let why = "there are /metrics, /livez, /readyz and the API below /api/v1";
        return refuse(Problem::new(StatusCode::NOT_FOUND).detail(why));
    }
    // hyper leaves the body out of replies to HEAD.
    if !matches!(*method, Method::GET | Method::HEAD) {
        let problem = Problem::new(StatusCode::METHOD_NOT_ALLOWED).detail("only GET and HEAD are answered here");
        let mut response = refuse(problem);
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    match path {
        "/metrics" => {
            let format = TextFormat::accepted(headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()));
            let mut response = reply(format.content_type(), state.metrics.render(format));
            response.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
            response
        }
        "/livez" => reply(TEXT, "alive\n"),
        _ => match state.waiting_for().as_slice() {
            [] => reply(TEXT, "ready\n"),
            missing => refuse(Problem::new(StatusCode::SERVICE_UNAVAILABLE).detail(missing.join("; "))),
        },
    }
}
