//! The recorded files of a server: what there is, what is kept, and what waits for its upload.

use super::{
    RecordSettings,
    folder::{RecordFolder, RecordedFile, Recovered},
    metrics::RecordingMetrics,
    retention::{self, DiskState, Kept, Limits, Reason},
};
use crate::events::{Events, Kind};
use arc_swap::ArcSwap;
use serde_json::json;
use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    io,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::sync::Notify;

/// Free bytes of the disk below which the oldest files are deleted, where files are deleted at all.
const MIN_FREE: u64 = 256 << 20;
/// Most uploaded files that are still listed.
const UPLOADED: usize = 10_000;

/// The recorded files of a server.
pub(crate) struct Shelf {
    folder: RecordFolder,
    settings: ArcSwap<RecordSettings>,
    events: Arc<Events>,
    metrics: RecordingMetrics,
    /// Told when a file is complete.
    changed: Notify,
    /// A lock: taken for each complete file, and for lists.
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    files: BTreeMap<String, Arc<RecordedFile>>,
    /// Files that are in the bucket only.
    uploaded: VecDeque<Arc<RecordedFile>>,
    /// Bytes of the files that are written.
    written: u64,
    /// The file that is uploaded now.
    busy: Option<String>,
    /// Names of files that were deleted during their upload.
    orphans: Vec<String>,
}

/// A complete file, and where it is.
#[derive(Clone, Debug)]
pub(crate) struct ShelvedFile {
    pub(crate) file: Arc<RecordedFile>,
    /// `kept`, `waiting` or `uploaded`.
    pub(crate) state: &'static str,
}

impl Shelf {
    /// Makes that of a folder. Nothing is read yet.
    pub(super) fn new(
        folder: PathBuf,
        settings: RecordSettings,
        events: Arc<Events>,
        metrics: &RecordingMetrics,
    ) -> Self {
        Self {
            folder: RecordFolder::new(folder),
            settings: ArcSwap::from_pointee(settings),
            events,
            metrics: metrics.clone(),
            changed: Notify::new(),
            inner: Mutex::default(),
        }
    }

    pub(super) fn settings(&self) -> Arc<RecordSettings> {
        self.settings.load_full()
    }

    pub(super) fn reconfigure(&self, settings: RecordSettings) {
        self.settings.store(Arc::new(settings));
    }

    pub(super) fn folder(&self) -> &RecordFolder {
        &self.folder
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a complete file. `reason` is why it ended. Blocks.
    pub(super) fn add(&self, name: &str, reason: &str) {
        let Some(file) = self.folder.read(name) else {
            tracing::error!(file = name, "a recorded file can't be read again");
            return;
        };
        let seconds = file.tail.duration.as_secs_f64();
        tracing::info!(
            stream = file.stream,
            file = name,
            bytes = file.bytes,
            seconds,
            reason,
            "a recorded file is complete"
        );
        let path = self.folder.path(name).display().to_string();
        let data = json!({ "file": path, "files": 1, "bytes": file.bytes, "seconds": seconds, "reason": reason });
        self.events.emit(Kind::RecordingComplete, &file.stream, data);
        self.metrics.completed();
        let mut inner = self.lock();
        inner.files.insert(name.to_owned(), Arc::new(file));
        self.measure(&inner);
        drop(inner);
        self.changed.notify_one();
    }

    fn measure(&self, inner: &Inner) {
        self.metrics.has(inner.files.len(), inner.files.values().map(|file| file.bytes).sum());
    }

    /// Reads the folder again, completes files that no process writes any more, and deletes what is not kept. Blocks.
    pub(super) fn tend(&self) {
        self.tend_at(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
    }

    fn tend_at(&self, now: Duration) {
        let known = self.lock().files.clone();
        let scan = match self.folder.scan(&known) {
            Ok(scan) => scan,
            Err(error) => {
                let folder = self.folder.root().display();
                tracing::warn!(%folder, %error, "the folder of recordings can't be read");
                return;
            }
        };
        let mut recovered = Vec::new();
        let mut written = 0;
        for (part, bytes) in &scan.parts {
            match self.folder.recover(part) {
                Ok(Recovered::Complete { name, cut }) => {
                    tracing::warn!(
                        file = name,
                        cut,
                        "a recorded file was not complete: it ends with its last whole fragment"
                    );
                    recovered.push(name);
                }
                Ok(Recovered::Written) => written += bytes,
                Ok(Recovered::Removed) => {}
                Err(error) => tracing::warn!(file = %part.display(), %error, "a recorded file can't be completed"),
            }
        }
        {
            let mut inner = self.lock();
            // Files that were completed meanwhile are not in the scan.
            let newer: Vec<_> = inner.files.keys().filter(|name| !known.contains_key(*name)).cloned().collect();
            let newer: Vec<_> = newer.into_iter().filter_map(|name| inner.files.remove_entry(&name)).collect();
            let gone: HashSet<_> = inner.uploaded.iter().map(|file| file.name.clone()).collect();
            inner.files = scan.files;
            inner.files.retain(|name, _| !gone.contains(name));
            inner.files.extend(newer);
            inner.orphans = scan.orphans;
            inner.written = written;
            self.measure(&inner);
        }
        recovered.iter().for_each(|name| self.add(name, "recovered"));
        self.delete(now);
        self.changed.notify_one();
    }

    /// Deletes the files that are not kept.
    fn delete(&self, now: Duration) {
        let RecordSettings { keep, keep_size, to, spool, .. } = &*self.settings();
        let is_spool = to.is_some();
        let limits = match is_spool {
            true => Limits { age: None, bytes: Some(*spool), free: Some(MIN_FREE) },
            false if keep.is_none() && keep_size.is_none() => return,
            false => Limits { age: *keep, bytes: *keep_size, free: Some(MIN_FREE) },
        };
        let (files, written) = {
            let inner = self.lock();
            let files: Vec<_> =
                inner.files.values().filter(|file| inner.busy.as_ref() != Some(&file.name)).cloned().collect();
            (files, inner.written)
        };
        let free = free(self.folder.root());
        let kept = |file: &Arc<RecordedFile>| Kept { began: file.began, ended: file.ended(), bytes: file.bytes };
        let all: Vec<_> = files.iter().map(kept).collect();
        for (index, reason) in retention::doomed(&all, DiskState { now, written, free }, limits) {
            if let Some(file) = files.get(index) {
                self.delete_one(file, reason, is_spool);
            }
        }
    }

    fn delete_one(&self, file: &RecordedFile, reason: Reason, is_spool: bool) {
        let RecordedFile { name, stream, bytes, .. } = file;
        if let Err(error) = self.folder.remove(name) {
            tracing::error!(file = name, %error, "a recorded file can't be deleted");
            return;
        }
        let mut inner = self.lock();
        inner.files.remove(name);
        self.measure(&inner);
        drop(inner);
        let reason = reason.name();
        self.metrics.deleted(reason);
        if is_spool {
            tracing::error!(
                stream,
                file = name,
                bytes,
                reason,
                "a recorded file is lost: it waited for its upload, and the spool is full"
            );
            let seconds = file.tail.duration.as_secs_f64();
            let data = json!({ "file": name, "bytes": bytes, "seconds": seconds, "reason": reason });
            self.events.emit(Kind::RecordingDropped, stream, data);
        } else {
            tracing::info!(stream, file = name, bytes, reason, "a recorded file is deleted");
        }
    }

    /// Returns the oldest file, which is uploaded next. It is not deleted before [`uploaded`](Self::uploaded) or
    /// [`not_uploaded`](Self::not_uploaded).
    pub(super) fn next_upload(&self) -> Option<Arc<RecordedFile>> {
        let mut inner = self.lock();
        let file = inner.files.values().min_by_key(|file| (file.began, file.name.clone())).cloned();
        inner.busy = file.as_ref().map(|file| file.name.clone());
        file
    }

    /// Returns the names of files that were deleted during their upload.
    pub(super) fn orphans(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().orphans)
    }

    /// Forgets a file that is not in the folder any more, or has another name.
    pub(super) fn forget(&self, name: &str) {
        let mut inner = self.lock();
        inner.files.remove(name);
        inner.busy = None;
        self.measure(&inner);
    }

    /// Gives a file another name. Blocks.
    pub(super) fn rename(&self, name: &str, new: &str) -> io::Result<()> {
        self.folder.rename(name, new)?;
        self.forget(name);
        let file = self.folder.read(new).map(Arc::new);
        let mut inner = self.lock();
        inner.files.extend(file.map(|file| (new.to_owned(), file)));
        self.measure(&inner);
        Ok(())
    }

    /// Waits until a file is complete.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Notes that a file stays for now.
    pub(super) fn not_uploaded(&self) {
        self.lock().busy = None;
        self.metrics.upload_failed();
    }

    /// Removes a file that is in the bucket, as the object `key`. Blocks.
    pub(super) fn uploaded(&self, file: &Arc<RecordedFile>, url: &str) {
        if let Err(error) = self.folder.remove(&file.name) {
            tracing::error!(file = file.name, %error, "an uploaded file can't be removed");
        }
        // Only then: a file with a note and an object of its length is known as uploaded.
        self.folder.remove_note(&file.name);
        let mut inner = self.lock();
        inner.busy = None;
        inner.files.remove(&file.name);
        inner.uploaded.push_back(file.clone());
        if inner.uploaded.len() > UPLOADED {
            inner.uploaded.pop_front();
        }
        self.measure(&inner);
        drop(inner);
        self.metrics.uploaded(file.bytes);
        let seconds = file.tail.duration.as_secs_f64();
        tracing::info!(stream = file.stream, file = file.name, bytes = file.bytes, "a recorded file is uploaded");
        let data = json!({ "file": file.name, "url": url, "bytes": file.bytes, "seconds": seconds });
        self.events.emit(Kind::RecordingUploaded, &file.stream, data);
    }

    /// Lists the complete files, by streams and times.
    pub(crate) fn list(&self) -> Vec<ShelvedFile> {
        let inner = self.lock();
        let state = if self.settings.load().to.is_some() { "waiting" } else { "kept" };
        let here = inner.files.values().map(|file| ShelvedFile { file: file.clone(), state });
        let there = inner.uploaded.iter().map(|file| ShelvedFile { file: file.clone(), state: "uploaded" });
        let mut all: Vec<_> = here.chain(there).collect();
        drop(inner);
        all.sort_by(|a, b| {
            (&a.file.stream, a.file.began, &a.file.name).cmp(&(&b.file.stream, b.file.began, &b.file.name))
        });
        all
    }
}

/// Free bytes of a folder's disk.
fn free(folder: &std::path::Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(folder).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Interval between looks at the folder, for files of a length.
pub(super) fn interval(file_length: Duration) -> Duration {
    (file_length / 4).clamp(Duration::from_secs(1), Duration::from_secs(60))
}

#[cfg(test)]
mod tests;
