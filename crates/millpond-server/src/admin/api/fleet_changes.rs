//! Changes of all nodes at once, and the state of all caches: each node does what it would do alone, and the report names those that did not.

use super::{
    super::AdminState,
    Outcome,
    cache::Named,
    cluster::cluster,
    nodes::{each, names},
    pins::{Pin, Unpin},
    request::ApiRequest,
    show,
};
use crate::cluster::{ApiAnswer, ApiCall, ApiFailure};
use http::Method;
use serde::Serialize;
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use utoipa::ToSchema;

/// Time in which each node must answer: an asset that is pinned is opened at its storage. A cluster of 256 silent nodes takes four minutes.
const EACH: Duration = Duration::from_secs(15);
/// Most characters of the reason of a node.
const LONGEST: usize = 2000;

/// A request to all nodes, and their answers.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct FleetReport {
    /// Nodes that did it, by their names.
    done: Vec<DoneNode>,
    /// Nodes that did not, or have not answered: these may have done it.
    failed: Vec<FailedNode>,
    /// Nodes that were not asked, because the cluster has more than 256.
    left_out: usize,
}

/// A node that did what it was asked for.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
pub(super) struct DoneNode {
    /// Its name.
    name: String,
    /// Its answer, as the API of one node has it.
    #[schema(value_type = Object)]
    answer: Value,
}

/// A node that did not do it.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(super) struct FailedNode {
    /// Its name.
    name: String,
    /// The reason.
    error: String,
}

/// Pins a file or asset on all nodes, whole or its first media.
#[utoipa::path(post, path = "/api/v1/cluster/pin", tag = "cluster", request_body = Pin, responses((status = 200, body = FleetReport)))]
pub(super) async fn pin_everywhere(request: &ApiRequest, state: &Arc<AdminState>) -> Outcome {
    request.json::<Pin>()?;
    ask_all(Method::POST, "cache/pins", request, state).await
}

/// Ends the pins of a file or asset on all nodes.
#[utoipa::path(delete, path = "/api/v1/cluster/pin", tag = "cluster", params(Unpin), responses((status = 200, body = FleetReport)))]
pub(super) async fn unpin_everywhere(request: &ApiRequest, state: &Arc<AdminState>) -> Outcome {
    request.query::<Unpin>()?;
    ask_all(Method::DELETE, "cache/pins", request, state).await
}

/// Has all nodes fetch a file, an asset or a stored title of an RTSP server in the background.
#[utoipa::path(post, path = "/api/v1/cluster/warm", tag = "cluster", request_body = Named, responses((status = 200, body = FleetReport)))]
pub(super) async fn warm_everywhere(request: &ApiRequest, state: &Arc<AdminState>) -> Outcome {
    request.json::<Named>()?;
    ask_all(Method::POST, "cache/warm", request, state).await
}

/// Has all nodes read their configurations again, and put them in force.
#[utoipa::path(post, path = "/api/v1/cluster/reload", tag = "cluster", responses((status = 200, body = FleetReport)))]
pub(super) async fn reload_everywhere(request: &ApiRequest, state: &Arc<AdminState>) -> Outcome {
    ask_all(Method::POST, "reload", request, state).await
}

/// Shows state and counters of the caches of all nodes.
#[utoipa::path(get, path = "/api/v1/cluster/cache", tag = "cluster", responses((status = 200, body = FleetReport)))]
pub(super) async fn get_caches(request: &ApiRequest, state: &Arc<AdminState>) -> Outcome {
    ask_all(Method::GET, "cache", request, state).await
}

/// Passes a request on to all nodes, this one included.
async fn ask_all(method: Method, path: &str, request: &ApiRequest, state: &Arc<AdminState>) -> Outcome {
    let (names, left_out) = names(cluster(state)?);
    request.check_direct()?;
    let query = if request.query.is_empty() { String::new() } else { format!("?{}", request.query) };
    let call = ApiCall { method, target: format!("/api/v1/{path}{query}"), body: request.body.clone() };
    let report = FleetReport::of(each(state, names, &call, EACH).await, left_out);
    if call.method != Method::GET {
        let (done, failed) = (report.done.len(), report.failed.len());
        tracing::info!(method = %call.method, path = call.path(), done, failed, "asked all nodes for a change");
    }
    Ok(show(&report))
}

impl FleetReport {
    fn of(answers: Vec<(String, Result<ApiAnswer, ApiFailure>)>, left_out: usize) -> Self {
        let mut report = Self { done: Vec::new(), failed: Vec::new(), left_out };
        for (name, answer) in answers {
            let read = |answer: ApiAnswer| match answer.status.is_success() {
                true => Ok(serde_json::from_slice(&answer.body).unwrap_or(Value::Null)),
                false => Err(reason(&answer)),
            };
            match answer.map_err(|failure| failure.to_string()).and_then(read) {
                Ok(answer) => report.done.push(DoneNode { name, answer }),
                Err(error) => report.failed.push(FailedNode { name, error }),
            }
        }
        report
    }
}

/// The words of the problem that a node answers with.
fn reason(answer: &ApiAnswer) -> String {
    let problem: Value = serde_json::from_slice(&answer.body).unwrap_or(Value::Null);
    let faults = problem["errors"].as_array().into_iter().flatten();
    let words = std::iter::once(&problem["detail"]).chain(faults).filter_map(Value::as_str).collect::<Vec<_>>();
    match words.is_empty() {
        true => format!("it answers with status {}", answer.status),
        false => words.join("; ").chars().take(LONGEST).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::StatusCode;
    use serde_json::json;

    fn answer(status: u16, body: &str) -> Result<ApiAnswer, ApiFailure> {
        let (status, body) = (StatusCode::from_u16(status).unwrap(), body.to_owned().into());
        Ok(ApiAnswer { status, content_type: None, body })
    }

    #[test]
    fn a_report_names_those_that_did_it_and_the_reasons_of_the_others() {
        let late = ApiFailure::Late { node: "d".parse().unwrap(), limit: EACH };
        let problem = r#"{"detail":"2 faults in the configuration","errors":["line 1: x","line 2: y"]}"#;
        let answers = [
            ("a", answer(200, r#"{"objects":1}"#)),
            ("b", answer(422, problem)),
            ("c", answer(404, "<html>")),
            ("d", Err(late)),
        ];
        let report = FleetReport::of(answers.into_iter().map(|(name, answer)| (name.to_owned(), answer)).collect(), 3);
        assert_eq!(report.done, [DoneNode { name: "a".into(), answer: json!({ "objects": 1 }) }]);
        let failed: Vec<_> = report.failed.iter().map(|node| (&*node.name, &*node.error)).collect();
        let faults = "2 faults in the configuration; line 1: x; line 2: y";
        let late = "node d has not answered within 15 s";
        assert_eq!(failed, [("b", faults), ("c", "it answers with status 404 Not Found"), ("d", late)]);
        assert_eq!(report.left_out, 3);
    }
}
