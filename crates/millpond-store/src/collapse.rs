//! Many asking for one thing at the same moment: one does the work, all get its result.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt;
use futures_util::future::{Shared, WeakShared};

use crate::origin::BoxFuture;

/// Work under way, by what it is for.
///
/// The work runs inside whoever waits for it, so it goes on while anybody waits, and ends when nobody does. Nothing
/// is kept of a finished work.
pub(crate) struct Collapse<K, T: Clone> {
    under_way: Arc<Mutex<HashMap<K, Work<T>>>>,
}

struct Work<T: Clone> {
    /// Tells this work from a later one of the same key.
    token: Arc<()>,
    shared: WeakShared<BoxFuture<'static, T>>,
}

impl<K, T> Collapse<K, T>
where
    K: Clone + Eq + Hash + Send + 'static,
    T: Clone + Send + Sync + 'static,
{
    pub(crate) fn new() -> Self {
        Self { under_way: Arc::default() }
    }

    /// The result of the work under way for `key`, or of the work that `start` makes. Says also whether it joined.
    pub(crate) async fn run(&self, key: K, start: impl FnOnce() -> BoxFuture<'static, T>) -> (T, bool) {
        let (shared, joined) = self.join(key, start);
        (shared.await, joined)
    }

    fn join(&self, key: K, start: impl FnOnce() -> BoxFuture<'static, T>) -> (Shared<BoxFuture<'static, T>>, bool) {
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shared) = under_way.get(&key).and_then(|work| work.shared.upgrade()) {
            return (shared, true);
        }
        let token = Arc::new(());
        let entry = Forget { under_way: self.under_way.clone(), key: key.clone(), token: token.clone() };
        let work = start();
        let future: BoxFuture<'static, T> = Box::pin(async move {
            let result = work.await;
            drop(entry);
            result
        });
        let shared = future.shared();
        if let Some(shared) = shared.downgrade().map(|shared| Work { token, shared }) {
            under_way.insert(key, shared);
        }
        (shared, false)
    }
}

/// Takes a work off the list when it ends or is given up.
struct Forget<K: Eq + Hash, T: Clone> {
    under_way: Arc<Mutex<HashMap<K, Work<T>>>>,
    key: K,
    token: Arc<()>,
}

impl<K: Eq + Hash, T: Clone> Drop for Forget<K, T> {
    fn drop(&mut self) {
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        let ours = |work: &Work<T>| Arc::ptr_eq(&work.token, &self.token);
        if under_way.get(&self.key).is_some_and(ours) {
            under_way.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn all_get_one_result() {
        let collapse = Arc::new(Collapse::<u32, u32>::new());
        let started = Arc::new(AtomicU32::new(0));
        let tasks: Vec<_> = (0..50)
            .map(|_| {
                let (collapse, started) = (collapse.clone(), started.clone());
                tokio::spawn(async move {
                    let work = move || -> BoxFuture<'static, u32> {
                        let number = started.fetch_add(1, Ordering::Relaxed);
                        Box::pin(async move {
                            tokio::time::sleep(Duration::from_millis(20)).await;
                            number
                        })
                    };
                    collapse.run(1, work).await
                })
            })
            .collect();
        let mut joined = 0;
        for task in tasks {
            let (result, other) = task.await.unwrap();
            assert_eq!(result, 0);
            joined += u32::from(other);
        }
        assert_eq!(joined, 49);
        assert!(collapse.under_way.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn work_survives_its_first_waiter_and_not_its_last() {
        let collapse = Arc::new(Collapse::<u32, u32>::new());
        let slow = || -> BoxFuture<'static, u32> {
            Box::pin(async {
                tokio::time::sleep(Duration::from_millis(50)).await;
                7
            })
        };
        let first = {
            let collapse = collapse.clone();
            tokio::spawn(async move { collapse.run(1, slow).await })
        };
        tokio::time::sleep(Duration::from_millis(10)).await;
        let second = {
            let collapse = collapse.clone();
            tokio::spawn(async move { collapse.run(1, || unreachable!()).await })
        };
        tokio::time::sleep(Duration::from_millis(10)).await;
        first.abort();
        assert_eq!(second.await.unwrap(), (7, true));

        let alone = {
            let collapse = collapse.clone();
            tokio::spawn(async move { collapse.run(2, slow).await })
        };
        tokio::time::sleep(Duration::from_millis(10)).await;
        alone.abort();
        alone.await.unwrap_err();
        assert!(collapse.under_way.lock().unwrap().is_empty());
    }
}
