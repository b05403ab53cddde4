//! Modules and publishers: a module whose stream begins to be published is begun at once.

use super::{Inner, Modules};
use crate::events::{Event, Events, Kind};
use std::sync::{Arc, Weak};

/// Tells modules of publishers, until the modules are gone.
pub(super) async fn follow(events: Arc<Events>, modules: Weak<Modules>) {
    let mut newest = events.follow();
    let mut position = 0;
    loop {
        while let Some(next) = events.after(position) {
            position = next.event.number();
            let Some(modules) = modules.upgrade() else { return };
            if next.skipped > 0 {
                modules.catch_up();
            }
            modules.take(&next.event);
        }
        if newest.changed().await.is_err() {
            return;
        }
    }
}

impl Modules {
    /// Takes the streams that are pushed now: events of publishers were missed.
    fn catch_up(self: &Arc<Self>) {
        let pushed = self.pushed();
        let mut inner = self.lock();
        inner.published = pushed.into_iter().collect();
        self.want_published(&mut inner);
    }

    fn take(self: &Arc<Self>, event: &Event) {
        let path = event.subject();
        let mut inner = self.lock();
        match event.kind() {
            Kind::PublisherBegan => {
                inner.published.insert(path.to_owned());
                self.want_patterns(&mut inner, path);
                inner.wake(path);
            }
            Kind::PublisherEnded => {
                inner.published.remove(path);
                inner.wake(path);
            }
            Kind::SourceBack => inner.wake(path),
            _ => {}
        }
    }
}

impl Inner {
    /// Wakes the modules of a stream that wait.
    fn wake(&self, path: &str) {
        self.all.values().filter(|entry| entry.line.stream == path).for_each(|entry| entry.wake());
    }
}
