//! Where a title lies: the nodes that serve it, and those that have slices of it.

use super::{
    super::AdminState,
    Outcome,
    cluster::{cluster, explained},
    nodes::{all, names},
    request::ApiRequest,
    show,
};
use crate::{cluster::Explained, http::Target};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// Most objects of one node that are counted.
const OBJECTS: usize = 1000;

/// The title that is searched.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct WhereQuery {
    /// Path of an asset, of a file, or of something of an asset, such as films/a.mp4/index.m3u8.
    url: String,
}

/// Where a title lies.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Whereabouts {
    /// Path of the asset or file.
    path: String,
    /// The nodes that serve it; null where each node serves it itself.
    assignment: Option<Explained>,
    /// Its slices at each node.
    nodes: Vec<NodeSlices>,
}

/// Slices of a title at a node.
#[derive(Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct NodeSlices {
    /// Name of the node.
    name: String,
    /// Why the node did not answer; null where it did.
    error: Option<String>,
    /// Objects of the title that have slices here.
    objects: u64,
    /// Slices of these objects, here or not.
    slices: u64,
    /// Slices in memory.
    in_memory: u64,
    /// Slices on the disk.
    on_disk: u64,
    /// Whether slices are pinned.
    pinned: bool,
}

/// Shows where a title lies: the nodes that serve it, and those that have slices of it.
#[utoipa::path(get, path = "/api/v1/cluster/objects", tag = "cluster", params(WhereQuery),
    responses((status = 200, body = Whereabouts)))]
pub(super) async fn find_title(request: &ApiRequest, state: &Arc<AdminState>) -> Outcome {
    let WhereQuery { url } = request.query()?;
    let cluster = cluster(state)?;
    request.check_direct()?;
    let path = Target::of_media(&state.front, url.trim_start_matches('/')).asset().into_owned();
    let query = serde_urlencoded::to_string([("prefix", path.as_str()), ("limit", &OBJECTS.to_string())]);
    let target = format!("/api/v1/cache/objects?{}", query.unwrap_or_default());
    let (assignment, found) =
        tokio::join!(explained(state, &path), all::<ListedObjects>(state, names(cluster).0, target));
    let nodes = found.into_iter().map(|(name, asked)| match asked {
        Ok(found) => found.counted(name, &path),
        Err(error) => NodeSlices { name, error: Some(error), ..NodeSlices::default() },
    });
    let nodes = nodes.collect();
    Ok(show(&Whereabouts { path, assignment, nodes }))
}

/// Objects in the cache of a node, as its API lists them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ListedObjects {
    items: Vec<ListedObject>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct ListedObject {
    place: String,
    path: String,
    slices: u64,
    in_memory: u64,
    on_disk: u64,
    pinned: bool,
}

impl ListedObjects {
    /// The slices of a title: of the file itself, or of files below it.
    fn counted(&self, name: String, title: &str) -> NodeSlices {
        let mut found = NodeSlices { name, ..NodeSlices::default() };
        for object in &self.items {
            let path = match object.place.as_str() {
                "" => object.path.clone(),
                place => format!("{place}/{}", object.path),
            };
            if path.strip_prefix(title).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
                found.objects += 1;
                found.slices += object.slices;
                found.in_memory += object.in_memory;
                found.on_disk += object.on_disk;
                found.pinned |= object.pinned;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_of_a_title_are_those_of_its_files() {
        let object = |place: &str, path: &str, in_memory| ListedObject {
            place: place.to_owned(),
            path: path.to_owned(),
            slices: 10,
            in_memory,
            ..ListedObject::default()
        };
        let items = vec![object("films", "a.mp4", 3), object("films", "a.mp4x", 9), object("films", "a.mp4/b.ts", 1)];
        let found = ListedObjects { items }.counted("n".to_owned(), "films/a.mp4");
        assert_eq!((found.objects, found.slices, found.in_memory, found.pinned), (2, 20, 4, false));
        let unnamed = ListedObjects { items: vec![object("", "a.mp4", 3)] }.counted("n".to_owned(), "a.mp4");
        assert_eq!(unnamed.objects, 1);
    }
}
