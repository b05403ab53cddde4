//! Which families of a server's metrics have moved.

use super::{By, rows};
use crate::support::{Server, get};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// Far more than anything here takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);
/// Time between two looks.
const LOOK: Duration = Duration::from_millis(10);

/// Families of the text format, with their types.
pub(crate) fn families(text: &str) -> BTreeMap<&str, &str> {
    text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')).collect()
}

/// Samples with their labels, and the family of each.
fn samples(text: &str) -> BTreeMap<String, (String, String)> {
    let families = families(text);
    let of = |name: &str| {
        let parts = ["_bucket", "_sum", "_count"].into_iter().filter_map(|part| name.strip_suffix(part));
        let histogram = parts.into_iter().find(|base| families.get(base) == Some(&"histogram"));
        histogram.unwrap_or(name).to_owned()
    };
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| line.rsplit_once(' '))
        .map(|(sample, value)| (sample.to_owned(), (of(sample.split('{').next().unwrap_or(sample)), value.to_owned())))
        .collect()
}

/// Looks at a server's metrics all the time, so that gauges that go up and down are seen too.
pub(crate) struct Watch {
    moved: Arc<Mutex<BTreeSet<String>>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    pub(crate) fn begin(server: &Server) -> Self {
        let admin = server.admin;
        let first = samples(&get(admin, "/metrics", &[]).text());
        let (moved, over) = (Arc::<Mutex<BTreeSet<String>>>::default(), Arc::new(AtomicBool::new(false)));
        let (found, ends) = (moved.clone(), over.clone());
        let look = move || {
            while !ends.load(Ordering::Relaxed) {
                // A server that is stopped for a while answers later.
                if let Ok(reply) = std::panic::catch_unwind(|| get(admin, "/metrics", &[])) {
                    let now = samples(&reply.text());
                    let new = now.iter().filter(|(sample, value)| first.get(*sample) != Some(*value));
                    found.lock().unwrap().extend(new.map(|(_, (family, _))| family.clone()));
                }
                std::thread::sleep(LOOK);
            }
        };
        Self { moved, over, thread: Some(std::thread::spawn(look)) }
    }

    fn has(&self, family: &str) -> bool {
        self.moved.lock().unwrap().contains(family)
    }

    /// Repeats something until a family has moved, or for far too long: the end tells.
    pub(crate) fn until(&self, family: &str, mut again: impl FnMut()) {
        let began = Instant::now();
        while !self.has(family) && began.elapsed() < PATIENCE {
            again();
            std::thread::sleep(LOOK);
        }
    }

    /// Waits for the last looks, and checks the rows of a scenario.
    #[track_caller]
    pub(crate) fn end(self, by: By, server: &Server) {
        let rows = rows(by);
        assert!(!rows.is_empty());
        let began = Instant::now();
        while !rows.iter().all(|row| self.has(row)) && began.elapsed() < PATIENCE {
            std::thread::sleep(LOOK);
        }
        let still: Vec<_> = rows.iter().filter(|row| !self.has(row)).collect();
        assert!(still.is_empty(), "{by:?} does not move {still:?}: {}", server.log_text());
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
