//! Which modules and pipes there are now.

use serde::Serialize;
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Names a module of a [`Graph`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct NodeId(u64);

/// All modules and pipes of a server. Clones are the same graph.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// A lock: taken when a module or a pipe comes or goes, and by who looks.
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    next: u64,
    nodes: BTreeMap<NodeId, Node>,
    edges: BTreeMap<u64, Edge>,
}

/// A module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Node {
    /// Its name.
    pub id: NodeId,
    /// What it does, such as `loader`.
    pub kind: &'static str,
    /// What it does that with.
    pub label: String,
}

/// A pipe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Edge {
    /// The module that puts frames in.
    pub from: NodeId,
    /// The module that takes them out.
    pub to: NodeId,
    /// The most runs of frames in it.
    pub depth: usize,
}

/// A graph at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Picture {
    /// The modules.
    pub modules: Vec<Node>,
    /// The pipes.
    pub pipes: Vec<Edge>,
}

/// A module in the graph, as long as this lives.
#[derive(Debug)]
pub struct Member {
    graph: Graph,
    id: NodeId,
}

/// A pipe in the graph, as long as this lives.
#[derive(Debug)]
pub(crate) struct Joined {
    graph: Graph,
    number: u64,
}

impl Graph {
    /// A module begins to run.
    pub fn add(&self, kind: &'static str, label: impl Into<String>) -> Member {
        let mut inner = self.lock();
        let id = NodeId(inner.number());
        inner.nodes.insert(id, Node { id, kind, label: label.into() });
        drop(inner);
        Member { graph: self.clone(), id }
    }

    /// What there is now.
    pub fn picture(&self) -> Picture {
        let inner = self.lock();
        Picture { modules: inner.nodes.values().cloned().collect(), pipes: inner.edges.values().cloned().collect() }
    }

    pub(crate) fn join(&self, from: NodeId, to: NodeId, depth: usize) -> Joined {
        let mut inner = self.lock();
        let number = inner.number();
        inner.edges.insert(number, Edge { from, to, depth });
        drop(inner);
        Joined { graph: self.clone(), number }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

impl Member {
    /// What pipes know it by.
    pub fn id(&self) -> NodeId {
        self.id
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.graph.lock().nodes.remove(&self.id);
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        self.graph.lock().edges.remove(&self.number);
    }
}

impl Picture {
    /// In the language of Graphviz.
    pub fn to_dot(&self) -> String {
        let mut text = String::from("digraph millpond {\n  rankdir=LR;\n  node [shape=box];\n");
        for Node { id, kind, label } in &self.modules {
            let label = label.replace('\\', "\\\\").replace('"', "\\\"");
            let _ = writeln!(text, "  n{} [label=\"{kind}\\n{label}\"];", id.0);
        }
        for Edge { from, to, depth } in &self.pipes {
            let _ = writeln!(text, "  n{} -> n{} [label=\"{depth}\"];", from.0, to.0);
        }
        text + "}\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_is_gone_from_the_picture() {
        let graph = Graph::default();
        let (a, b) = (graph.add("loader", "film \"x\""), graph.add("transmission", "to me"));
        let joined = graph.join(a.id(), b.id(), 8);
        let picture = graph.picture();
        assert_eq!((picture.modules.len(), picture.pipes.len()), (2, 1));
        let dot = picture.to_dot();
        assert!(
            dot.contains("n1 [label=\"loader\\nfilm \\\"x\\\"\"];") && dot.contains("n1 -> n2 [label=\"8\"];"),
            "{dot}"
        );
        let json = serde_json::to_value(&picture).unwrap();
        assert_eq!((&json["modules"][0]["kind"], &json["pipes"][0]["from"]), (&"loader".into(), &1.into()));
        drop((joined, a));
        let picture = graph.picture();
        assert_eq!((picture.modules.len(), picture.pipes.len()), (1, 0));
        drop(b);
        assert!(graph.picture().modules.is_empty());
    }
}
