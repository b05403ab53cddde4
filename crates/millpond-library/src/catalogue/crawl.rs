//! Reads the folders of a place, the upper ones first.

use super::{folder_pictures::FolderPictures, names::Names};
use crate::{
    folder::listed::ListedFolder,
    library::{Library, folder_path},
};
use futures_util::{StreamExt, stream::FuturesUnordered};
use millpond_media::Work;
use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::watch;

/// Folders that are listed at the same time.
const AT_ONCE: usize = 4;
/// Folders lie in each other at most this deep.
const DEPTH: usize = 32;
/// Interval at which those who wait see what was read.
const SHOWN: Duration = Duration::from_millis(250);
/// Entries of a folder that are sorted on a serving thread, at most.
const FEW: usize = 128;

/// Reading of a place.
pub(super) struct Crawl {
    pub(super) library: Arc<Library>,
    /// Gets the pictures of the folders.
    pub(super) pictures: FolderPictures,
    pub(super) place: Arc<str>,
    /// Text before each path.
    pub(super) prefix: String,
    /// Bound of the number of folders.
    pub(super) most_folders: usize,
    /// Bound of the memory of the names, in bytes.
    pub(super) most_bytes: u64,
}

impl Crawl {
    /// Reads all folders within the bounds. `shown` gets what was read, now and then.
    pub(super) async fn run(&self, shown: &watch::Sender<Arc<Names>>) -> Arc<Names> {
        let mut names = Names::default();
        let mut queue = VecDeque::from([(String::new(), 0)]);
        let mut begun = 0;
        let mut last = Instant::now();
        let mut running = FuturesUnordered::new();
        loop {
            while running.len() < AT_ONCE
                && begun < self.most_folders
                && names.heap_bytes() < self.most_bytes
                && let Some((folder, depth)) = queue.pop_front()
            {
                begun += 1;
                running.push(async move { (list(&self.library, &self.place, &self.prefix, &folder).await, depth) });
            }
            let Some((listed, depth)) = running.next().await else { break };
            let Some(listed) = listed else {
                names.failed += 1;
                continue;
            };
            names.add(&listed);
            self.pictures.learn(&self.place, &listed);
            for folder in &listed.folders {
                // More than will be read need not wait either.
                if depth >= DEPTH || queue.len() + begun >= self.most_folders {
                    names.is_cut = true;
                    break;
                }
                let inside = folder.strip_prefix(&self.prefix).unwrap_or(folder);
                queue.push_back((inside.trim_end_matches('/').to_owned(), depth + 1));
            }
            if last.elapsed() >= SHOWN {
                last = Instant::now();
                shown.send_replace(Arc::new(names.clone()));
            }
        }
        names.is_cut |= !queue.is_empty();
        names.is_read = true;
        Arc::new(names)
    }
}

/// Lists a folder of a place, whose paths begin with `prefix`; `None` where that fails.
pub(super) async fn list(library: &Library, place: &str, prefix: &str, folder: &str) -> Option<ListedFolder> {
    let path = folder_path(folder).ok()?;
    let listed = library.store.list(place, &path).await;
    let entries = listed.inspect_err(|error| tracing::debug!(folder, %error, "names are not read")).ok()?;
    let whole = format!("{prefix}{folder}");
    let whole = whole.trim_end_matches('/').to_owned();
    let grouped = library.titles(place);
    if entries.len() <= FEW {
        return Some(ListedFolder::of(&whole, &entries, grouped));
    }
    let job = move || ListedFolder::of(&whole, &entries, grouped);
    library.pool.run(&Work::unlimited(), job).await.ok()
}
