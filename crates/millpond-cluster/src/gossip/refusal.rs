//! The refusal of a question whose asker has the secret of the cluster.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Why a node does not answer another one. It is the body of its answer, as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "refusal", rename_all = "kebab-case")]
pub enum GossipRefusal {
    /// The times of both nodes differ too much.
    Clock {
        /// Time of the node that answers: milliseconds since 1970.
        time: u64,
    },
    /// The node was asked at an address that is none of its own: somebody else there passed the question on.
    Address,
}

impl GossipRefusal {
    /// The refusal as JSON.
    ///
    /// # Panics
    /// Never: it is a plain structure.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("plain structures are JSON")
    }

    /// Reads a refusal; `None` where it is of a later version.
    #[must_use]
    pub fn from_json(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    /// The refusal in words with its cure, for the node that asked at `asked` and whose time is `own`.
    #[must_use]
    pub fn words(&self, asked: &str, own: Duration) -> String {
        match self {
            Self::Clock { time } => {
                let time = Duration::from_millis(*time);
                let side = if time > own { "ahead of" } else { "behind" };
                let difference = span(time.abs_diff(own));
                format!(
                    "its clock is {difference} {side} that of this node, and passes are valid for 10 min: set both clocks, with NTP"
                )
            }
            Self::Address => format!(
                "the node that answers knows itself by other addresses than {asked}: list it by its cluster-http (cluster-node-url beside \
                 cluster-node-listen), unless a stranger at {asked} passes questions on"
            ),
        }
    }
}

/// A time in words, in its two greatest units.
fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    match (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60) {
        (0, 0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (0, hours, minutes, _) => format!("{hours} h {minutes} min"),
        (days, hours, ..) => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_told_with_a_cure() {
        let clock = GossipRefusal::Clock { time: 7_260_000 };
        assert_eq!(clock.to_json(), r#"{"refusal":"clock","time":7260000}"#);
        for refusal in [clock.clone(), GossipRefusal::Address] {
            assert_eq!(GossipRefusal::from_json(refusal.to_json().as_bytes()), Some(refusal));
        }
        assert_eq!(GossipRefusal::from_json(br#"{"refusal":"mood"}"#), None);
        let words = |own| clock.words("a:1", Duration::from_secs(own));
        assert!(words(0).starts_with("its clock is 2 h 1 min ahead of that of this node"), "{}", words(0));
        assert!(words(8000).contains("12 min 20 s behind") && words(300_000).contains("3 d 9 h behind"));
        assert!(GossipRefusal::Address.words("a:1", Duration::ZERO).contains("than a:1: list it by its cluster-http"));
    }
}
