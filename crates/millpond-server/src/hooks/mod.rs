//! Hooks: endpoints and a program of the operator that get the events of the server.
//!
//! Each hook is a task with a position of its own in the log of [`Events`](crate::events::Events). It delivers one event after the other, and repeats an
//! attempt that failed. A slow hook delays neither other hooks nor media. [`delivery`] decides, without a clock; [`post`] and [`program`] act.

mod delivery;
mod hook;
mod metrics;
mod post;
mod program;
mod settings;
mod signature;
mod target;

pub(crate) use metrics::HookMetrics;
pub use settings::HookSettings;
pub(crate) use settings::RUN;
pub use signature::HookSecret;

use crate::events::Events;
use hook::{Drops, Hook, Reached};
use millpond_outbound::{Client, Options};
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use target::{DeliveryOptions, Target};
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, timeout_at},
};

/// The hooks of a server.
pub(crate) struct Hooks {
    events: Arc<Events>,
    metrics: HookMetrics,
    /// A lock: taken at reloads and at the end.
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    running: Vec<Task>,
    /// Whether a configuration was in force before. Its first hooks get all events since the start.
    has_begun: bool,
}

/// The task of a hook, which ends when this is dropped.
struct Task {
    target: Target,
    options: watch::Sender<DeliveryOptions>,
    reached: watch::Receiver<Reached>,
    handle: JoinHandle<()>,
}

impl Drop for Task {
    fn drop(&mut self) {
        self.handle.abort();
    }
}

impl Hooks {
    /// Makes those of a server; none runs yet.
    pub(crate) fn new(events: Arc<Events>, metrics: &HookMetrics) -> Self {
        Self { events, metrics: metrics.clone(), inner: Mutex::default() }
    }

    /// Begins and ends hooks as a configuration has them. A hook that stays keeps its waiting events. One that had ended begins again. Called within a
    /// runtime.
    pub(crate) fn reconfigure(&self, settings: &HookSettings) {
        self.events.set_most(settings.queue);
        let HookSettings { secret, timeout, patience, .. } = settings;
        let options = DeliveryOptions { secret: secret.clone(), timeout: *timeout, patience: *patience };
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let position = if std::mem::replace(&mut inner.has_begun, true) { self.events.newest() } else { 0 };
        let before = std::mem::take(&mut inner.running);
        let labels: BTreeSet<String> = before.iter().map(|task| task.target.label()).collect();
        let mut before: Vec<_> = before.into_iter().filter(|task| !task.handle.is_finished()).collect();
        for target in Target::all(settings) {
            let known = before.iter().position(|task| task.target == target).map(|at| before.swap_remove(at));
            let task = match known {
                Some(task) => {
                    task.options.send_if_modified(|known| std::mem::replace(known, options.clone()) != options);
                    Some(task)
                }
                None => self.begin(target, &options, position),
            };
            inner.running.extend(task);
        }
        let stay: BTreeSet<String> = inner.running.iter().map(|task| task.target.label()).collect();
        labels.difference(&stay).for_each(|label| self.metrics.forget(label));
    }

    fn begin(&self, target: Target, options: &DeliveryOptions, position: u64) -> Option<Task> {
        let client = match Client::new(&Options::default()) {
            Ok(client) => client,
            Err(error) => {
                tracing::error!(hook = %target, error, "a hook can't begin");
                return None;
            }
        };
        let (options, of_hook) = watch::channel(options.clone());
        let (tells, reached) = watch::channel(Reached { position, fails: false });
        let metrics = self.metrics.of(&target.label());
        let hook = Hook {
            drops: Drops::default(),
            target: target.clone(),
            events: self.events.clone(),
            client,
            metrics,
            options: of_hook,
            reached: tells,
        };
        Some(Task { target, options, reached, handle: tokio::spawn(hook.run(position)) })
    }

    /// Waits until all hooks have the events so far, but not for those that fail, and for `limit` at most. All hooks end then.
    pub(crate) async fn finish(&self, limit: Duration) {
        let running = std::mem::take(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner).running);
        let (newest, end) = (self.events.newest(), Instant::now() + limit);
        let mut lost = 0;
        for task in &running {
            let mut reached = task.reached.clone();
            let _ = timeout_at(end, reached.wait_for(|reached| reached.position >= newest || reached.fails)).await;
            lost += newest.saturating_sub(reached.borrow().position);
        }
        if lost > 0 {
            tracing::warn!(count = lost, "events for hooks are lost at the end of the server");
        }
    }
}

impl std::fmt::Debug for Hooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hooks").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
