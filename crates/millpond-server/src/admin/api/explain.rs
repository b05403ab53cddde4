//! The ranges of objects that a request needs, and their locations.

use super::{super::AdminState, Outcome, cache::failed, cluster, request::ApiRequest, show};
use crate::http::{Explanation, Target, explanation_of};
use serde::Deserialize;
use utoipa::IntoParams;

/// The request to explain.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct ExplainQuery {
    /// Path of the request, such as films/a.mp4/v1/3.m4s.
    url: String,
    /// Query of the request, such as max-height=720.
    query: Option<String>,
}

/// Explains a request: the ranges of objects that it needs, their present locations, and the nodes of a cluster that serve its asset.
#[utoipa::path(get, path = "/api/v1/explain", tag = "media", params(ExplainQuery), responses((status = 200, body = Explanation)))]
pub(super) async fn explain(request: &ApiRequest, state: &AdminState) -> Outcome {
    let ExplainQuery { url, query } = request.query()?;
    let target = Target::of_stored(&state.front, url.trim_start_matches('/'));
    let explanation = explanation_of(&state.front, &target, &query.unwrap_or_default()).await;
    let mut explanation = explanation.map_err(|error| failed(&error))?;
    explanation.cluster = cluster::explained(state, &url).await;
    Ok(show(&explanation))
}
