//! The admin API, `/api/v1`: its operations, and the OpenAPI document that is made of them.
//!
//! Each file has the operations of one noun with their shapes. [`Document`] lists them; requests are routed by that list, so
//! no path is without documentation. [`dispatch`] is the one place that names all.

mod assets;
mod bounds;
mod cache;
mod cloudevents;
mod cluster;
mod events;
mod explain;
mod fleet;
mod fleet_changes;
mod graph;
mod insertions;
mod logs;
mod map;
mod modules;
mod nodes;
mod origins;
pub(super) mod overview;
mod page;
mod pins;
mod recorded_files;
mod recordings;
mod request;
mod routes;
mod schedules;
mod schema;
mod sessions;
mod settings;
mod simulations;
mod streams;
#[cfg(test)]
mod tests;
mod upgrade;
mod viewing;
mod whereabouts;

use super::{AdminState, JSON, Reply, refuse, reply};
use crate::{cluster::ApiCall, problem::Problem};
use futures_util::{FutureExt as _, future::BoxFuture};
use http::{
    Method, Request, StatusCode,
    header::{ALLOW, HeaderValue},
};
use hyper::body::Incoming;
use millpond_cluster::NodeName;
use request::ApiRequest;
use routes::{FoundRoute, NoRoute, ROUTES};
use schema::Common;
use serde::Serialize;
use std::sync::{Arc, LazyLock};
use tokio::task::JoinHandle;
use utoipa::OpenApi;

/// Reply of an operation, or the problem to answer with.
type Outcome = Result<Reply, Problem>;

/// The list of operations.
#[derive(OpenApi)]
#[openapi(
    info(title = "Millpond admin API", description = "Shows and changes a running server. docs/reference/api.md explains it."),
    paths(
        overview::version, overview::health, overview::overview, overview::history, events::events, cloudevents::cloud_events, openapi,
        viewing::viewing,
        sessions::list_sessions, sessions::get_session, sessions::end_session, sessions::list_blocks, sessions::end_block,
        assets::list_assets, explain::explain,
        cache::get_cache, cache::change_cache, cache::list_objects, cache::purge, cache::warm,
        map::get_map, pins::list_pins, pins::pin, pins::unpin,
        origins::list_origins,
        streams::list_streams, streams::get_stream, streams::end_stream, streams::end_publisher,
        graph::get_graph, graph::get_dot,
        schedules::list_schedules,
        modules::list_modules, modules::attach_module, modules::get_module, modules::detach_module,
        recordings::list_recordings, recordings::start_recording, recordings::get_recording, recordings::stop_recording,
        recorded_files::list_recorded_files,
        insertions::list_insertions, insertions::insert, insertions::get_insertion, insertions::cancel_insertion,
        cluster::get_cluster, cluster::assign, cluster::drain, cluster::undrain, cluster::purge_cluster,
        fleet::get_report, fleet::get_fleet, whereabouts::find_title,
        fleet_changes::pin_everywhere, fleet_changes::unpin_everywhere, fleet_changes::warm_everywhere,
        fleet_changes::reload_everywhere, fleet_changes::get_caches,
        nodes::get_of_node, nodes::post_to_node, nodes::put_at_node, nodes::change_at_node, nodes::delete_at_node,
        settings::list_settings, settings::change_settings, settings::list_places, settings::put_place,
        settings::remove_place, settings::reload, upgrade::upgrade,
        logs::list_lines,
        simulations::list_simulations, simulations::start_simulation, simulations::get_simulation,
        simulations::end_simulation,
    ),
    modifiers(&Common),
)]
struct Document;

static DOCUMENT: LazyLock<utoipa::openapi::OpenApi> = LazyLock::new(Document::openapi);

/// Answers a request below `/api`.
pub(super) async fn answer(request: Request<Incoming>, state: &Arc<AdminState>) -> Reply {
    match perform(request, state).await {
        Ok(reply) => reply,
        Err(problem) => refuse(problem),
    }
}

async fn perform(request: Request<Incoming>, state: &Arc<AdminState>) -> Outcome {
    state.gate.check_token(request.headers())?;
    let route = match found(request.method(), request.uri().path()) {
        Ok(route) => route,
        Err(refused) => return Ok(*refused),
    };
    let request = ApiRequest::read(request, route.parameters, state.limits.head).await?;
    performed(route.operation, request, state).await
}

/// Answers a request of an operator that came by way of the node `by`, which has checked the token.
pub(super) fn answer_call(by: NodeName, call: ApiCall, state: Arc<AdminState>) -> BoxFuture<'static, Reply> {
    async move {
        let FoundRoute { operation, parameters } = match found(&call.method, call.path()) {
            Ok(route) => route,
            Err(refused) => return *refused,
        };
        if matches!(operation, "events" | "cloud_events") {
            return refuse(bad("feeds are not passed on to nodes: overview and cluster/report have the same"));
        }
        let query = call.target.split_once('?').map(|(_, query)| query.to_owned()).unwrap_or_default();
        let request = ApiRequest { parameters, query, body: call.body, last_event: None, by: Some(by) };
        performed(operation, request, &state).await.unwrap_or_else(refuse)
    }
    .boxed()
}

/// Finds the operation of a request. The error is the reply where there is none.
fn found(method: &Method, path: &str) -> Result<FoundRoute, Box<Reply>> {
    ROUTES.find(method, path).map_err(|none| match none {
        NoRoute::Path => {
            let what = "the API has no such path; docs/reference/api.md lists all. Slashes within a parameter are %2F";
            Box::new(refuse(absent(what)))
        }
        NoRoute::Component => Box::new(refuse(bad("a component of the path is not percent-encoded UTF-8"))),
        NoRoute::Method(allowed) => {
            let problem = Problem::new(StatusCode::METHOD_NOT_ALLOWED).detail(format!("{allowed} are answered here"));
            let mut reply = refuse(problem);
            reply.headers_mut().extend(HeaderValue::from_str(&allowed).ok().map(|value| (ALLOW, value)));
            Box::new(reply)
        }
    })
}

/// Performs an operation on the threads that suit it.
async fn performed(operation: &'static str, request: ApiRequest, state: &Arc<AdminState>) -> Outcome {
    if is_light(operation) {
        return dispatch(operation, request, state).await;
    }
    // Media and origins are read by the threads that serve, so that health is answered meanwhile.
    let owned = state.clone();
    let mut task = Task(state.serving.spawn(async move { dispatch(operation, request, &owned).await }));
    let stopped = || Problem::new(StatusCode::SERVICE_UNAVAILABLE).detail("the server is shutting down");
    (&mut task.0).await.unwrap_or_else(|_| Err(stopped()))
}

/// Whether an operation reads only what is in memory, quickly: the admin thread answers it, however busy the others are.
fn is_light(operation: &str) -> bool {
    matches!(
        operation,
        "version" | "health" | "overview" | "history" | "events" | "cloud_events" | "openapi" | "list_lines"
    )
}

/// Performs an operation, by its name in the document.
async fn dispatch(operation: &str, request: ApiRequest, state: &Arc<AdminState>) -> Outcome {
    match operation {
        "openapi" => Ok(openapi()),
        "version" => Ok(overview::version(state)),
        "health" => Ok(overview::health(state)),
        "overview" => Ok(overview::overview(state)),
        "history" => Ok(overview::history(state)),
        "events" => events::events(state),
        "cloud_events" => cloudevents::cloud_events(&request, state),
        "viewing" => viewing::viewing(&request, state),
        "list_sessions" => sessions::list_sessions(&request, state),
        "get_session" => sessions::get_session(&request, state),
        "end_session" => sessions::end_session(&request, state),
        "list_blocks" => sessions::list_blocks(&request, state),
        "end_block" => sessions::end_block(&request, state),
        "list_assets" => assets::list_assets(&request, state).await,
        "explain" => explain::explain(&request, state).await,
        "get_cache" => Ok(cache::get_cache(state)),
        "change_cache" => cache::change_cache(&request, state),
        "list_objects" => cache::list_objects(&request, state),
        "purge" => cache::purge(&request, state).await,
        "warm" => cache::warm(&request, state).await,
        "get_map" => map::get_map(&request, state).await,
        "list_pins" => pins::list_pins(&request, state),
        "pin" => pins::pin(&request, state).await,
        "unpin" => pins::unpin(&request, state).await,
        "list_origins" => Ok(origins::list_origins(state)),
        "list_streams" => streams::list_streams(&request, state),
        "get_stream" => streams::get_stream(&request, state),
        "end_stream" => streams::end_stream(&request, state),
        "end_publisher" => streams::end_publisher(&request, state),
        "get_graph" => graph::get_graph(&request, state),
        "get_dot" => Ok(graph::get_dot(state)),
        "list_schedules" => Ok(schedules::list_schedules(state)),
        "list_modules" => Ok(modules::list_modules(state)),
        "attach_module" => modules::attach_module(&request, state).await,
        "get_module" => modules::get_module(&request, state),
        "detach_module" => modules::detach_module(&request, state).await,
        "list_recordings" => Ok(recordings::list_recordings(state)),
        "start_recording" => recordings::start_recording(&request, state).await,
        "get_recording" => recordings::get_recording(&request, state),
        "stop_recording" => recordings::stop_recording(&request, state).await,
        "list_recorded_files" => recorded_files::list_recorded_files(&request, state),
        "list_insertions" => Ok(insertions::list_insertions(state)),
        "insert" => insertions::insert(&request, state).await,
        "get_insertion" => insertions::get_insertion(&request, state),
        "cancel_insertion" => insertions::cancel_insertion(&request, state),
        "get_cluster" => Ok(cluster::get_cluster(state)),
        "assign" => cluster::assign(&request, state).await,
        "purge_cluster" => cluster::purge_cluster(&request, state).await,
        "drain" => cluster::drain(&request, state).await,
        "undrain" => cluster::undrain(&request, state).await,
        "get_report" => fleet::get_report(state),
        "get_fleet" => fleet::get_fleet(&request, state).await,
        "pin_everywhere" => fleet_changes::pin_everywhere(&request, state).await,
        "unpin_everywhere" => fleet_changes::unpin_everywhere(&request, state).await,
        "warm_everywhere" => fleet_changes::warm_everywhere(&request, state).await,
        "reload_everywhere" => fleet_changes::reload_everywhere(&request, state).await,
        "get_caches" => fleet_changes::get_caches(&request, state).await,
        "find_title" => whereabouts::find_title(&request, state).await,
        "get_of_node" => nodes::get_of_node(&request, state).await,
        "post_to_node" => nodes::post_to_node(&request, state).await,
        "put_at_node" => nodes::put_at_node(&request, state).await,
        "change_at_node" => nodes::change_at_node(&request, state).await,
        "delete_at_node" => nodes::delete_at_node(&request, state).await,
        "list_lines" => logs::list_lines(&request),
        "list_settings" => settings::list_settings(&request, state).await,
        "change_settings" => settings::change_settings(&request, state).await,
        "list_places" => settings::list_places(state),
        "put_place" => settings::put_place(&request, state).await,
        "remove_place" => settings::remove_place(&request, state).await,
        "reload" => settings::reload(state).await,
        "upgrade" => upgrade::upgrade(state).await,
        "list_simulations" => Ok(simulations::list_simulations(state)),
        "start_simulation" => simulations::start_simulation(&request, state),
        "get_simulation" => simulations::get_simulation(&request, state),
        "end_simulation" => simulations::end_simulation(&request, state),
        operation => Err(Problem::new(StatusCode::NOT_IMPLEMENTED).detail(operation.to_owned())),
    }
}

/// The OpenAPI document of the API.
#[utoipa::path(get, path = "/api/v1/openapi.json", tag = "overview",
    responses((status = 200, content_type = "application/json", body = Object)))]
fn openapi() -> Reply {
    show(&*DOCUMENT)
}

/// A reply with a value as JSON.
fn show(value: &impl Serialize) -> Reply {
    shown(StatusCode::OK, value)
}

fn shown(status: StatusCode, value: &impl Serialize) -> Reply {
    match serde_json::to_vec_pretty(value) {
        Ok(mut text) => {
            text.push(b'\n');
            let mut reply = reply(JSON, text);
            *reply.status_mut() = status;
            reply
        }
        Err(error) => refuse(Problem::new(StatusCode::INTERNAL_SERVER_ERROR).detail(error.to_string())),
    }
}

fn bad(why: impl Into<String>) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST).detail(why)
}

fn absent(why: impl Into<String>) -> Problem {
    Problem::new(StatusCode::NOT_FOUND).detail(why)
}

/// A task that ends with the request it is for.
struct Task<T>(JoinHandle<T>);

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
