//! The wait until a node that drains has no sessions.

use super::seen::SeenNode;
use std::time::{Duration, Instant};

/// Time for which a node must have none: nodes publish their load at most once in three seconds.
const SETTLED: Duration = Duration::from_secs(4);

/// Tells when a node that drains is empty. Pure: times are arguments.
#[derive(Debug, Default)]
pub(super) struct Emptying {
    since: Option<Instant>,
}

impl Emptying {
    /// Notes how a node is seen, and returns whether it is empty.
    pub(super) fn is_empty(&mut self, node: &SeenNode, now: Instant) -> bool {
        if node.is_busy() {
            self.since = None;
            return false;
        }
        now.saturating_duration_since(*self.since.get_or_insert(now)) >= SETTLED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_empty_once_it_had_no_sessions_for_a_while() {
        let (mut emptying, began) = (Emptying::default(), Instant::now());
        let at = |seconds: u64| began + Duration::from_secs(seconds);
        let node = |drains, sessions| SeenNode { drains, sessions, ..SeenNode::default() };
        assert!(!emptying.is_empty(&node(false, 0), at(0)) && !emptying.is_empty(&node(false, 0), at(9)));
        assert!(!emptying.is_empty(&node(true, 0), at(10)));
        assert!(!emptying.is_empty(&node(true, 1), at(13)), "a load of before the drain came later");
        assert!(!emptying.is_empty(&node(true, 0), at(14)) && !emptying.is_empty(&node(true, 0), at(17)));
        assert!(emptying.is_empty(&node(true, 0), at(18)));
    }
}
