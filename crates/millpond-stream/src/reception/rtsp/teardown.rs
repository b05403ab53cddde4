//! TEARDOWN of sessions whose task ended.

use crate::reception::{rtsp::link::Link, source::TeardownPolicy};
use tokio::runtime::Handle;

/// Tears a session down when it is dropped, even with the task that it runs in: a task of its own does it.
pub(in crate::reception) struct TeardownGuard {
    /// `None` once it was dropped.
    link: Option<Link>,
    policy: TeardownPolicy,
    runtime: Handle,
}

impl TeardownGuard {
    /// Guards a session. Must be called on a runtime.
    pub(in crate::reception) fn new(link: Link, policy: TeardownPolicy) -> Self {
        Self { link: Some(link), policy, runtime: Handle::current() }
    }

    /// The session.
    pub(in crate::reception) fn link(&mut self) -> &mut Link {
        self.link.as_mut().expect("only a drop takes it")
    }
}

impl Drop for TeardownGuard {
    fn drop(&mut self) {
        if let Some(link) = self.link.take().filter(Link::is_open)
            && self.policy == TeardownPolicy::Send
        {
            self.runtime.spawn(link.leave());
        }
    }
}
