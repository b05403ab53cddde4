//! Modules and pipes of the stream engine.

use super::{
    super::{AdminState, reply},
    Outcome, Reply,
    page::fits,
    request::ApiRequest,
    show,
};
use millpond_stream::{modules::KINDS, registry::NodeId};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use utoipa::{IntoParams, ToSchema};

/// Most modules that are listed.
const MODULES: usize = 20_000;

/// The graph at one moment.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Graph {
    /// Modules.
    modules: Vec<GraphModule>,
    /// Pipes between them.
    pipes: Vec<GraphPipe>,
    /// All kinds of modules.
    kinds: Vec<GraphKind>,
    /// Modules that are not listed because there are too many.
    modules_left_out: usize,
}

/// A module.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct GraphModule {
    /// Its number.
    id: u64,
    /// Its kind.
    kind: &'static str,
    /// Instance label, such as the asset's path.
    label: String,
}

/// A pipe.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct GraphPipe {
    /// Number of the module that sends frames.
    from: u64,
    /// Number of the module that takes the frames.
    to: u64,
    /// Most runs of frames in the pipe.
    depth: usize,
    /// Frames that the taker was too slow for.
    lost: u64,
}

/// A kind of modules.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct GraphKind {
    /// Name.
    name: &'static str,
    /// Its task.
    about: &'static str,
    /// Number of inputs.
    inputs: usize,
    /// Number of outputs.
    outputs: usize,
}

/// Selection of modules.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct GraphQuery {
    /// Part of the label or kind of modules, which are listed with their neighbours.
    q: Option<String>,
}

/// Shows the modules and pipes that run.
#[utoipa::path(get, path = "/api/v1/graph", tag = "streams", params(GraphQuery), responses((status = 200, body = Graph)))]
pub(super) fn get_graph(request: &ApiRequest, state: &AdminState) -> Outcome {
    let GraphQuery { q } = request.query()?;
    let snapshot = state.manager.registry().snapshot();
    let fitting = snapshot.modules.iter().filter(|node| fits(q.as_deref(), [&*node.label, node.kind]));
    let mut wanted: HashSet<NodeId> = fitting.map(|node| node.id).collect();
    if q.is_some() {
        let neighbours = snapshot.pipes.iter().filter(|pipe| wanted.contains(&pipe.from) || wanted.contains(&pipe.to));
        wanted = neighbours.flat_map(|pipe| [pipe.from, pipe.to]).chain(wanted.iter().copied()).collect();
    }
    let all = wanted.len();
    let modules = snapshot.modules.into_iter().filter(|node| wanted.contains(&node.id)).take(MODULES);
    let modules: Vec<_> =
        modules.map(|node| GraphModule { id: node.id.number(), kind: node.kind, label: node.label }).collect();
    let listed: HashSet<u64> = modules.iter().map(|module| module.id).collect();
    let pipes = snapshot.pipes.iter().map(|pipe| GraphPipe {
        from: pipe.from.number(),
        to: pipe.to.number(),
        depth: pipe.depth,
        lost: pipe.lost,
    });
    let pipes = pipes.filter(|pipe| listed.contains(&pipe.from) && listed.contains(&pipe.to)).collect();
    let attachable = state.modules.kinds().map(|declaration| &declaration.kind);
    let others = attachable.filter(|kind| KINDS.iter().all(|known| known.name != kind.name));
    let kinds = KINDS.iter().chain(others).map(|kind| GraphKind {
        name: kind.name,
        about: kind.about,
        inputs: kind.inputs,
        outputs: kind.outputs,
    });
    let modules_left_out = all - modules.len();
    Ok(show(&Graph { modules, pipes, kinds: kinds.collect(), modules_left_out }))
}

/// Shows the graph in the language of Graphviz.
#[utoipa::path(get, path = "/api/v1/graph.dot", tag = "streams",
    responses((status = 200, content_type = "text/vnd.graphviz", body = String)))]
pub(super) fn get_dot(state: &AdminState) -> Reply {
    reply("text/vnd.graphviz; charset=utf-8", state.manager.registry().snapshot().to_dot())
}
