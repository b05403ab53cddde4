//! One module that is wanted, and what has become of it.

use super::ModuleLine;
use millpond_stream::{Attached, AttachmentEnd, ModuleCounts, ModuleResults};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{Notify, watch},
    task::AbortHandle,
    time::timeout,
};

/// Longest wait for the results of a module, such as its file. They are completed later too.
const COMPLETION: Duration = Duration::from_secs(10);

/// A module as it is listed.
#[derive(Clone, Debug)]
pub(crate) struct ListedModule {
    pub(crate) id: u64,
    pub(crate) line: ModuleLine,
    /// Whether it is one of the configuration.
    pub(crate) is_configured: bool,
    /// `starting`, `waiting`, `running`, `ended`, `failed` or `removed`.
    pub(crate) state: &'static str,
    /// Its module in the graph, while it runs.
    pub(crate) node: Option<u64>,
    /// Why it waits or has ended.
    pub(crate) why: Option<String>,
    /// Frames and bytes that the module has passed on since it was attached; `None` where it does not count them.
    pub(crate) counts: Option<ModuleCounts>,
}

/// A module that is wanted.
pub(super) struct Entry {
    pub(super) id: u64,
    pub(super) line: ModuleLine,
    pub(super) is_configured: bool,
    /// The line of the configuration that it comes from, where that is for all streams of a place. It is wanted while its stream is
    /// published.
    pub(super) pattern: Option<ModuleLine>,
    /// Whether it is begun again when it ends.
    is_kept: bool,
    /// Tells that it needs not wait longer.
    wake: Notify,
    /// A lock: taken for changes and reports.
    inner: Mutex<Inner>,
}

struct Inner {
    course: Course,
    /// The task that begins it again and again.
    task: Option<AbortHandle>,
}

/// The state of a module that was asked for.
enum Course {
    Starting,
    /// It is begun again later.
    Waiting(String),
    Attached(RunningModule),
    Removed,
}

/// A module that was attached.
pub(super) struct RunningModule {
    pub(super) attached: Attached,
    pub(super) results: Option<Arc<dyn ModuleResults>>,
}

/// The end of a module that was attached, and the part of it that outlives it.
pub(super) type Watched = (watch::Receiver<Option<AttachmentEnd>>, Option<Arc<dyn ModuleResults>>);

impl RunningModule {
    pub(super) fn watched(&self) -> Watched {
        (self.attached.end(), self.results.clone())
    }
}

impl Entry {
    /// Makes one of the configuration.
    pub(super) fn configured(id: u64, line: ModuleLine, pattern: Option<ModuleLine>) -> Self {
        Self { is_configured: true, pattern, ..Self::added(id, line, true) }
    }

    /// Makes one that an operator adds.
    pub(super) fn added(id: u64, line: ModuleLine, is_kept: bool) -> Self {
        let inner = Mutex::new(Inner { course: Course::Starting, task: None });
        Self { id, line, is_configured: false, pattern: None, is_kept, wake: Notify::new(), inner }
    }

    /// The line of the configuration that it comes from.
    pub(super) fn configured_line(&self) -> &ModuleLine {
        self.pattern.as_ref().unwrap_or(&self.line)
    }

    /// Ends its wait, or the next one.
    pub(super) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Waits until it need not wait longer.
    pub(super) async fn woken(&self) {
        self.wake.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the task that keeps it, unless it was removed before.
    pub(super) fn set_task(&self, task: AbortHandle) {
        let mut inner = self.lock();
        match inner.course {
            Course::Removed => task.abort(),
            _ => inner.task = Some(task),
        }
    }

    /// Notes that it runs. Returns whether it is still wanted.
    pub(super) fn run(&self, running: RunningModule) -> bool {
        let mut inner = self.lock();
        let is_wanted = !matches!(inner.course, Course::Removed);
        if is_wanted {
            inner.course = Course::Attached(running);
        }
        is_wanted
    }

    /// Notes why it is begun again later. Returns whether the reason is another one than before.
    pub(super) fn wait(&self, why: String) -> bool {
        let mut inner = self.lock();
        let is_new = !matches!(&inner.course, Course::Waiting(known) if *known == why);
        if !matches!(inner.course, Course::Removed) {
            inner.course = Course::Waiting(why);
        }
        is_new
    }

    /// Whether it runs no more, and is not begun again.
    pub(super) fn has_ended(&self) -> bool {
        !self.is_kept
            && matches!(&self.lock().course, Course::Attached(running) if running.attached.end().borrow().is_some())
    }

    /// Detaches it, and waits until its results are complete.
    pub(super) async fn remove(&self) {
        let (task, course) = {
            let mut inner = self.lock();
            (inner.task.take(), std::mem::replace(&mut inner.course, Course::Removed))
        };
        task.inspect(AbortHandle::abort);
        let Course::Attached(RunningModule { attached, results }) = course else { return };
        if let Some(results) = &results {
            results.stopping();
        }
        drop(attached);
        if let Some(results) = results {
            let _ = timeout(COMPLETION, results.complete()).await;
        }
    }

    pub(super) fn listed(&self) -> ListedModule {
        let (state, node, why) = match &self.lock().course {
            Course::Starting => ("starting", None, None),
            Course::Waiting(why) => ("waiting", None, Some(why.clone())),
            Course::Removed => ("removed", None, None),
            Course::Attached(running) => match &*running.attached.end().borrow() {
                None => ("running", Some(running.attached.node().number()), None),
                Some(end) => (state(end), None, Some(words(end, running.results.as_deref()))),
            },
        };
        let Self { id, line, is_configured, .. } = self;
        let counts = match &self.lock().course {
            Course::Attached(RunningModule { results: Some(results), .. }) => results.counts(),
            _ => None,
        };
        ListedModule { id: *id, line: line.clone(), is_configured: *is_configured, state, node, why, counts }
    }
}

fn state(end: &AttachmentEnd) -> &'static str {
    match end {
        AttachmentEnd::Failed(_) => "failed",
        AttachmentEnd::Done | AttachmentEnd::Output(_) => "ended",
    }
}

/// The reason of an end in words: that of the module's results, if they know more.
pub(super) fn words(end: &AttachmentEnd, results: Option<&dyn ModuleResults>) -> String {
    match end {
        AttachmentEnd::Done => {
            let why = results.and_then(ModuleResults::why);
            why.unwrap_or_else(|| "its stream ended, or it was done".to_owned())
        }
        AttachmentEnd::Failed(why) => why.clone(),
        AttachmentEnd::Output(why) => format!("its output ended: {why}"),
    }
}
