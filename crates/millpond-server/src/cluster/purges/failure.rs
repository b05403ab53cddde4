//! Why the cluster is not purged, and the cure.

use super::super::{RegistryError, state::Membership};

/// Why the cluster is not purged.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PurgeFailure {
    /// The purge can't be written.
    #[error("{0}")]
    Entry(#[from] millpond_cluster::PurgeEntryError),
    /// There are too many purges.
    #[error("too many purges of the last day: try again in a minute, or purge folders instead of files")]
    Full,
    /// The keys belong to another cluster, or another node has this node's name.
    #[error("the cluster was not purged, because this node is none of it. {0}")]
    Outside(String),
    /// The node has not joined yet, or its lease is over.
    #[error(
        "the cluster was not purged, because this node is not registered ({0}). Try again when the cluster's status shows it as a member, or \
         ask another node"
    )]
    Unregistered(String),
    /// The registry refuses.
    #[error("the cluster was not purged, because {registry} refuses it: {error}", registry = .0.registry(), error = .0)]
    Refused(RegistryError),
    /// etcd has not answered.
    #[error(
        "etcd: {error}. The purge {key} was being written and may still be done, by all nodes. Repeat it once etcd answers: a purge may be done \
         twice"
    )]
    Unsure {
        /// The key of the purge.
        key: String,
        /// The error.
        error: RegistryError,
    },
}

impl PurgeFailure {
    /// The reason for which a node does not purge; `None` for a member.
    pub(super) fn of_node(membership: &Membership) -> Option<Self> {
        match membership {
            Membership::Member => None,
            Membership::Joining | Membership::Lost => Some(Self::Unregistered(membership.to_string())),
            Membership::Taken { by } => {
                let cure = "give it another name with the setting node";
                Some(Self::Outside(format!("The node at {by} has the same name: {cure}")))
            }
            Membership::Foreign { .. } => Some(Self::Outside(membership.to_string())),
        }
    }

    /// The failure of writing the key of a purge.
    pub(super) fn of_write(key: &[u8], error: RegistryError) -> Self {
        // Of several members, the one before the last may have written it.
        match error.is_unsure() {
            true => Self::Unsure { key: String::from_utf8_lossy(key).into_owned(), error },
            false => Self::Refused(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_etcd::EtcdError;
    use std::time::Duration;

    #[test]
    fn only_members_purge_and_others_are_told_the_cure() {
        let told = |membership: &Membership| PurgeFailure::of_node(membership).map(|failure| failure.to_string());
        assert_eq!(told(&Membership::Member), None);
        assert!(told(&Membership::Lost).unwrap().contains("not registered (lost)"));
        assert!(told(&Membership::Joining).unwrap().contains("ask another node"));
        let taken = told(&Membership::Taken { by: "http://h:1".into() }).unwrap();
        assert!(taken.contains("http://h:1") && taken.contains("the setting node"), "{taken}");
        let foreign = Membership::Foreign { own: "west".into(), id: "east".into(), prefix: "/m/".into() };
        let foreign = told(&foreign).unwrap();
        assert!(foreign.contains("was not purged") && foreign.contains("set another cluster-prefix"), "{foreign}");
    }

    #[test]
    fn a_write_without_a_reply_may_still_be_done() {
        let (member, limit) = ("h:2379".to_owned(), Duration::from_secs(2));
        let unsure = PurgeFailure::of_write(
            b"/m/purge/7",
            RegistryError::Etcd(EtcdError::TimedOut { member: member.clone(), limit }),
        );
        let words = unsure.to_string();
        assert!(words.contains("/m/purge/7 was being written and may still be done"), "{words}");
        let message = "permission denied".to_owned();
        let refused =
            PurgeFailure::of_write(b"/m/purge/7", RegistryError::Etcd(EtcdError::Refused { member, code: 7, message }));
        assert!(refused.to_string().contains("etcd refuses it: h:2379: permission denied"), "{refused}");
    }
}
