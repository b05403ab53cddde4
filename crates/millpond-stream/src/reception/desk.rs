//! Where the publishers of a stream meet its reception.

use crate::reception::{
    Conflict, PublishedMedia,
    publication::{Presence, PublicationEnd, Queue},
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::Notify;

/// Hands publications to the reception of a run, one at a time.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    /// A lock: taken when a publication begins, and by the reception between publications.
    inner: Mutex<Inner>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    next: Option<Entry>,
    /// The publication that entered last.
    current: Weak<Presence>,
    is_closed: bool,
}

/// A publication as its reception gets it.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) media: PublishedMedia,
    pub(crate) queue: Queue,
    pub(crate) presence: Arc<Presence>,
}

/// Why a publication can't enter.
#[derive(Debug)]
pub(crate) enum NoEntry {
    /// Another publication is under way.
    Taken,
    /// The reception has ended. A new run takes the publication.
    Closed(Box<Entry>),
}

impl Desk {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a publication is under way that only a replacement can end.
    pub(crate) fn is_taken(&self) -> bool {
        self.lock().current.upgrade().is_some_and(|current| current.is_active())
    }

    /// Path of the stream whose frames a module publishes here; `None` for other publishers.
    pub(crate) fn stream(&self) -> Option<Arc<str>> {
        self.lock().current.upgrade().filter(|current| current.is_active())?.stream().cloned()
    }

    /// Ends the publication that is under way. Returns whether there was one.
    pub(crate) fn end(&self, why: PublicationEnd) -> bool {
        let current = self.lock().current.upgrade().filter(|current| current.is_active());
        current.inspect(|current| current.end(why)).is_some()
    }

    /// Gives a publication to the reception.
    ///
    /// # Errors
    /// Another one is under way and is not replaced, or the reception has ended.
    pub(crate) fn enter(&self, entry: Entry, conflict: Conflict) -> Result<(), NoEntry> {
        let mut inner = self.lock();
        if inner.is_closed {
            return Err(NoEntry::Closed(Box::new(entry)));
        }
        if let Some(current) = inner.current.upgrade() {
            if current.is_active() && conflict == Conflict::Refuse {
                return Err(NoEntry::Taken);
            }
            current.end(PublicationEnd::Replaced);
        }
        inner.current = Arc::downgrade(&entry.presence);
        // While the lock is held: the end of this publication can't be posted before its beginning.
        entry.presence.post_beginning();
        inner.next = Some(entry);
        drop(inner);
        self.changed.notify_one();
        Ok(())
    }

    /// Waits for the next publication. Cancel safe.
    pub(crate) async fn next(&self) -> Entry {
        loop {
            if let Some(entry) = self.lock().next.take() {
                return entry;
            }
            self.changed.notified().await;
        }
    }

    /// Waits until there is a next publication. Cancel safe.
    pub(crate) async fn has_next(&self) {
        while self.lock().next.is_none() {
            self.changed.notified().await;
        }
    }

    /// Whether frames of a module are the next publication: they follow at once.
    pub(crate) fn goes_on(&self) -> bool {
        self.lock().next.as_ref().is_some_and(|next| matches!(next.media, PublishedMedia::Frames(_)))
    }

    /// Takes no further publication. Returns `false` where one entered just now.
    pub(crate) fn close(&self) -> bool {
        let mut inner = self.lock();
        inner.is_closed = inner.next.is_none();
        inner.is_closed
    }
}
