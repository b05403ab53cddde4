//! Classes of nodes: those with the same version and prints.

use super::{Node, Prints};
use std::{collections::HashMap, sync::Arc};

/// The nodes that may be given work of a place, by their classes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Agreement(Vec<bool>);

/// Finds the class of each of some nodes, and a node of each class.
pub(crate) fn classes(nodes: &[Node]) -> (Vec<usize>, Vec<&Node>) {
    let (mut known, mut firsts) = (HashMap::new(), Vec::new());
    let class = |node| {
        *known.entry(key(node)).or_insert_with(|| {
            firsts.push(node);
            firsts.len() - 1
        })
    };
    let of: Vec<usize> = nodes.iter().map(class).collect();
    (of, firsts)
}

fn key(node: &Node) -> (Option<&str>, Option<&Prints>) {
    (node.version.as_deref(), node.prints.as_deref())
}

/// The prints of a node, where they must be compared with those of the node `own`. Nodes of two versions are not compared, so that a cluster is one while it is
/// upgraded; neither are nodes without prints.
pub(crate) fn compared(own: &Node, node: &Node) -> Option<Arc<Prints>> {
    let are_comparable = own.prints.is_some() && own.version.is_some() && own.version == node.version;
    node.prints.clone().filter(|prints| are_comparable && own.prints.as_ref() != Some(prints))
}

impl Agreement {
    /// The agreement by classes. Without one that disagrees, it is that of all.
    pub(crate) fn new(by_class: impl Iterator<Item = bool>) -> Self {
        let by_class: Vec<_> = by_class.collect();
        if by_class.contains(&false) { Self(by_class) } else { Self::default() }
    }

    /// Whether nodes of a class may be given the work.
    pub(crate) fn has(&self, class: usize) -> bool {
        self.0.get(class).is_none_or(|agrees| *agrees)
    }

    /// Whether all nodes may be given the work.
    pub(crate) fn is_of_all(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bitrate, Print};

    fn node(version: &str, text: &str) -> Node {
        let prints = Some(Prints::new(Print::of([text]), [].into()).into());
        let version = Some(version.into());
        Node { version, prints, ..Node::new("a".parse().unwrap(), Bitrate::from_mbps(1)) }
    }

    #[test]
    fn only_nodes_of_one_version_with_prints_are_compared() {
        let own = node("1", "x");
        assert_eq!(compared(&own, &node("1", "y")), node("1", "y").prints);
        let older = Node { prints: None, ..node("1", "y") };
        let oldest = Node { version: None, ..node("1", "y") };
        for other in [node("1", "x"), node("2", "y"), older, oldest] {
            assert!(compared(&own, &other).is_none() && compared(&other, &own).is_none(), "{other:?}");
        }
        assert!(compared(&Node { version: None, ..own.clone() }, &Node { version: None, ..node("1", "y") }).is_none());
        let nodes = [node("1", "x"), node("2", "x"), node("1", "x"), node("1", "y")];
        let (of, firsts) = classes(&nodes);
        assert_eq!((of, firsts.len()), (vec![0, 1, 0, 2], 3));
    }

    #[test]
    fn an_agreement_is_by_class() {
        let some = Agreement::new([true, false].into_iter());
        assert!(some.has(0) && !some.has(1) && !some.is_of_all());
        assert!(Agreement::new([true, true].into_iter()).is_of_all() && Agreement::default().has(7));
    }
}
