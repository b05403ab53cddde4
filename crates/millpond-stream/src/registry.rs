//! The modules and pipes that run now.

use serde::Serialize;
use std::{
    collections::{BTreeMap, HashMap},
    fmt::Write as _,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// Names a module of a [`Registry`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct NodeId(u64);

/// All modules and pipes of an engine. Clones share one list.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    /// A lock: taken when a module or a pipe is added or removed, and for a snapshot.
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    last: u64,
    nodes: BTreeMap<NodeId, Node>,
    edges: BTreeMap<u64, Pipe>,
    /// Frames that pipes lost which are gone, by the kind of the module that took them.
    lost: BTreeMap<&'static str, u64>,
}

/// A pipe as it is kept.
#[derive(Debug)]
struct Pipe {
    edge: Edge,
    /// Kind of the module that takes its frames.
    kind: &'static str,
    /// Number of frames lost.
    lost: Arc<AtomicU64>,
}

/// Number of modules of each kind that take the frames of a module.
pub(crate) type Takers = HashMap<NodeId, BTreeMap<&'static str, usize>>;

/// A module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Node {
    /// Its name.
    pub id: NodeId,
    /// Its kind, such as `loader`.
    pub kind: &'static str,
    /// Instance label, such as the asset's path.
    pub label: String,
}

/// A pipe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Edge {
    /// The module that sends frames.
    pub from: NodeId,
    /// The module that takes them.
    pub to: NodeId,
    /// Most runs of frames in the pipe.
    pub depth: usize,
    /// Frames that the module at its end was too slow for.
    pub lost: u64,
}

/// The graph at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Snapshot {
    /// The modules.
    pub modules: Vec<Node>,
    /// The pipes.
    pub pipes: Vec<Edge>,
}

/// Keeps a module in the registry until it is dropped.
#[derive(Debug)]
pub struct NodeGuard {
    registry: Registry,
    id: NodeId,
}

/// Keeps a pipe in the registry until it is dropped.
#[derive(Debug)]
pub(crate) struct EdgeGuard {
    registry: Registry,
    number: u64,
}

impl Registry {
    /// Adds a module.
    pub(crate) fn add(&self, kind: &'static str, label: impl Into<String>) -> NodeGuard {
        let mut inner = self.lock();
        let id = NodeId(inner.number());
        inner.nodes.insert(id, Node { id, kind, label: label.into() });
        drop(inner);
        NodeGuard { registry: self.clone(), id }
    }

    /// Returns the module of a number, and its kind.
    pub(crate) fn kind(&self, number: u64) -> Option<(NodeId, &'static str)> {
        self.lock().nodes.get(&NodeId(number)).map(|node| (node.id, node.kind))
    }

    /// Returns the modules and pipes there are now.
    pub fn snapshot(&self) -> Snapshot {
        let inner = self.lock();
        let edge = |pipe: &Pipe| Edge { lost: pipe.lost.load(Ordering::Relaxed), ..pipe.edge.clone() };
        Snapshot { modules: inner.nodes.values().cloned().collect(), pipes: inner.edges.values().map(edge).collect() }
    }

    /// Adds a pipe. `lost` counts the frames that it loses.
    pub(crate) fn connect(&self, from: NodeId, to: NodeId, depth: usize, lost: Arc<AtomicU64>) -> EdgeGuard {
        let mut inner = self.lock();
        let number = inner.number();
        let kind = inner.nodes.get(&to).map_or("", |node| node.kind);
        inner.edges.insert(number, Pipe { edge: Edge { from, to, depth, lost: 0 }, kind, lost });
        drop(inner);
        EdgeGuard { registry: self.clone(), number }
    }

    /// Leads a pipe to another module, which takes its frames from now on.
    fn redirect(&self, number: u64, to: NodeId) {
        let mut inner = self.lock();
        let kind = inner.nodes.get(&to).map_or("", |node| node.kind);
        if let Some(pipe) = inner.edges.get_mut(&number) {
            (pipe.edge.to, pipe.kind) = (to, kind);
        }
    }

    /// Returns the number of modules of each kind that take the frames of each module now.
    pub(crate) fn takers(&self) -> Takers {
        let mut takers = Takers::new();
        for Pipe { edge, kind, .. } in self.lock().edges.values() {
            *takers.entry(edge.from).or_default().entry(kind).or_default() += 1;
        }
        takers
    }

    /// Returns the number of frames that modules of each kind were too slow for, since the start.
    pub(crate) fn lost(&self) -> BTreeMap<&'static str, u64> {
        let inner = self.lock();
        let mut lost = inner.lost.clone();
        for pipe in inner.edges.values() {
            *lost.entry(pipe.kind).or_default() += pipe.lost.load(Ordering::Relaxed);
        }
        lost
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }
}

impl NodeId {
    /// The number, as the graph of the admin API shows it.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0
    }
}

impl NodeGuard {
    /// The module's name.
    pub fn id(&self) -> NodeId {
        self.id
    }
}

impl EdgeGuard {
    /// Leads the pipe to another module, which takes its frames from now on.
    pub(crate) fn redirect(&self, to: NodeId) {
        self.registry.redirect(self.number, to);
    }
}

impl Drop for NodeGuard {
    fn drop(&mut self) {
        self.registry.lock().nodes.remove(&self.id);
    }
}

impl Drop for EdgeGuard {
    fn drop(&mut self) {
        let mut inner = self.registry.lock();
        if let Some(pipe) = inner.edges.remove(&self.number) {
            *inner.lost.entry(pipe.kind).or_default() += pipe.lost.load(Ordering::Relaxed);
        }
    }
}

impl Snapshot {
    /// Returns it in the language of Graphviz.
    #[must_use]
    pub fn to_dot(&self) -> String {
        let mut text = String::from("digraph millpond {\n  rankdir=LR;\n  node [shape=box];\n");
        for Node { id, kind, label } in &self.modules {
            let label = label.replace('\\', "\\\\").replace('"', "\\\"");
            let _ = writeln!(text, "  n{} [label=\"{kind}\\n{label}\"];", id.0);
        }
        for Edge { from, to, depth, .. } in &self.pipes {
            let _ = writeln!(text, "  n{} -> n{} [label=\"{depth}\"];", from.0, to.0);
        }
        text + "}\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_is_gone_from_the_snapshot() {
        let registry = Registry::default();
        let (a, b) = (registry.add("loader", "film \"x\""), registry.add("transmission", "to me"));
        let edge = registry.connect(a.id(), b.id(), 8, Arc::new(3.into()));
        assert_eq!(registry.takers()[&a.id()], BTreeMap::from([("transmission", 1)]));
        let snapshot = registry.snapshot();
        assert_eq!((snapshot.modules.len(), snapshot.pipes.len()), (2, 1));
        let dot = snapshot.to_dot();
        assert!(
            dot.contains("n1 [label=\"loader\\nfilm \\\"x\\\"\"];") && dot.contains("n1 -> n2 [label=\"8\"];"),
            "{dot}"
        );
        let json = serde_json::to_value(&snapshot).unwrap();
        assert_eq!((&json["modules"][0]["kind"], &json["pipes"][0]["from"]), (&"loader".into(), &1.into()));
        drop((edge, a));
        let snapshot = registry.snapshot();
        assert_eq!((snapshot.modules.len(), snapshot.pipes.len()), (1, 0));
        assert!(registry.takers().is_empty());
        assert_eq!(registry.lost(), BTreeMap::from([("transmission", 3)]));
        drop(b);
        assert!(registry.snapshot().modules.is_empty());
    }
}
