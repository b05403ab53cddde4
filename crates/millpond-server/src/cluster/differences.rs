//! Nodes with other settings: in the log, once for each change, as a metric, and for the status.

use super::Cluster;
use millpond_cluster::{DifferingSettings, Node, NodeDifference, Prints, View};
use serde::Serialize;
use std::sync::{Arc, PoisonError};
use utoipa::ToSchema;

/// Most lines of the log for one change.
const LINES: usize = 16;

/// Settings that are not the same on all nodes of one version.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct DifferenceStatus {
    /// `server`, `places` (all of them), or `place`.
    subject: &'static str,
    /// Name of the place; null where the difference is not that of one.
    place: Option<String>,
    /// Version of the nodes that are compared.
    version: String,
    /// Nodes that have other settings than most.
    differing: Vec<String>,
    /// Nodes that lack the place.
    lacking: Vec<String>,
    /// The same as a sentence.
    text: String,
}

impl DifferenceStatus {
    pub(super) fn of(difference: &NodeDifference) -> Self {
        let (subject, place) = match &difference.subject {
            DifferingSettings::Server => ("server", None),
            DifferingSettings::Places => ("places", None),
            DifferingSettings::Place(name) => ("place", Some(name.clone())),
        };
        let [differing, lacking] =
            [&difference.differing, &difference.lacking].map(|names| names.iter().map(ToString::to_string).collect());
        Self { subject, place, version: difference.version.to_string(), differing, lacking, text: told(difference) }
    }
}

/// A difference as a sentence. That of the server names its settings: an operator compares them.
fn told(difference: &NodeDifference) -> String {
    let settings = match difference.subject {
        DifferingSettings::Server => " (segment-duration or thumbnails): they share no place with the others",
        DifferingSettings::Places | DifferingSettings::Place(_) => "",
    };
    format!("{difference}{settings}")
}

impl Cluster {
    /// Takes the settings of this node over, which a reload may have changed. They are registered at once.
    pub(crate) fn set_prints(&self, prints: Prints) {
        let is_new = self.prints.send_if_modified(|known| {
            let is_new = known.as_deref() != Some(&prints);
            if is_new {
                *known = Some(Arc::new(prints));
            }
            is_new
        });
        if is_new {
            let old = self.view();
            let mut loads = self.loads.lock().unwrap_or_else(PoisonError::into_inner);
            self.put_view(&mut loads, (*self.view()).clone());
            drop(loads);
            self.tell_differences(&old, &self.view());
        }
    }

    /// The node as others may compare it.
    pub(super) fn own_node(&self) -> Node {
        Node { prints: self.prints.borrow().clone(), ..self.own.clone() }
    }

    /// Tells of the differences that a view has and the one before had not, and of those that are gone.
    pub(super) fn tell_differences(&self, old: &View, new: &View) {
        let (before, now) = (old.differences(), new.differences());
        for difference in now.iter().filter(|difference| !before.contains(difference)).take(LINES) {
            let version = &difference.version;
            let difference = told(difference);
            tracing::warn!(difference, %version, "nodes of the cluster have different settings: they send each other no viewers of that");
        }
        let is_same = |one: &NodeDifference, other: &NodeDifference| {
            (&one.subject, &one.version) == (&other.subject, &other.version)
        };
        let gone = before.iter().filter(|known| !now.iter().any(|difference| is_same(known, difference)));
        for NodeDifference { subject, version, .. } in gone.take(LINES) {
            tracing::info!(%subject, %version, "nodes of the cluster have the same settings again");
        }
    }
}
