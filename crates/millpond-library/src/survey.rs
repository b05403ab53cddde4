//! A survey of a place for the operator at the start: assets, and media that is not served.

use crate::{
    copying::is_recent,
    folder::FolderContent,
    library::{Library, folder_path},
    names::{is_media, is_url_set},
};
use millpond_media::Foreign;
use millpond_store::{Entry, ObjectPath, OriginError};
use std::{
    collections::{BTreeMap, VecDeque},
    time::{Duration, Instant},
};
use tokio::time::timeout;

/// Most assets of a place that are counted.
const MOST_COUNTED: usize = 10_000;
/// Most folders of a place that wait to be listed.
const MOST_WAITING: usize = 10_000;
/// Most folders above a folder that is listed.
const DEPTH: usize = 8;
/// Longest search for assets to name in a place, its first folder not counted: the start waits for it.
const LONGEST: Duration = Duration::from_millis(500);
/// Most files that are opened to find out whether they are being copied.
const MOST_RECENT: usize = 32;

/// Content of a place: its folders near the root, and as many others as are listed in time.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// Name of the place; empty where it has none.
    pub place: String,
    /// Paths of the first assets, with the place, not percent-encoded.
    pub assets: Vec<String>,
    /// Number of further assets in the folders that were listed. A title of several files is one.
    pub more: usize,
    /// Whether counting ended at its bound, with at least one asset more than `more`.
    pub is_bounded: bool,
    /// Number of folders that were listed.
    pub listed: usize,
    /// Number of folders found and not listed.
    pub folders: usize,
    /// Files in formats that are not read: their number and the path of the first, by format.
    pub left_out: BTreeMap<Foreign, (usize, String)>,
    /// Files that were being copied.
    pub copying: Vec<String>,
    /// Number of files that are no media.
    pub others: usize,
    /// Why the place can't be listed.
    pub failed: Option<String>,
}

impl Survey {
    fn add(&mut self, folder: &str, content: FolderContent, most: usize) {
        let within =
            |name: &str| [folder, name].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
        let titles = content.titles.iter().map(|title| match (&title.files[..], title.path.as_deref()) {
            ([only], _) => within(only),
            (_, Some(path)) => within(path),
            (files, None) => within(files.first().map_or("", String::as_str)),
        });
        // Files that only their names make one title may turn out to be several: others are told first.
        let (lists, certain): (Vec<String>, Vec<String>) = titles.partition(|path| is_url_set(path));
        let manifests = content.manifests.iter().map(|name| within(name));
        for asset in certain.into_iter().chain(manifests).chain(lists) {
            if self.assets.len() < most { self.assets.push(asset) } else { self.more += 1 }
        }
        let counted = MOST_COUNTED.saturating_sub(self.assets.len());
        (self.is_bounded, self.more) = (self.more > counted, self.more.min(counted));
        for left in content.left_out {
            let (count, _) = self.left_out.entry(left.format).or_insert_with(|| (0, within(&left.name)));
            *count += 1;
        }
        self.others += content.others;
    }
}

impl Library {
    /// Lists the root of a place and, where the place is `local`, its folders. Names at most `most` assets, and counts others until
    /// `until`: the start waits for that, and no remote storage is asked for more than one folder.
    pub async fn survey(&self, place: &str, local: bool, most: usize, until: Instant) -> Survey {
        let mut survey = Survey { place: place.to_owned(), ..Survey::default() };
        let mut queue = VecDeque::from([(String::new(), 0)]);
        let (mut opens, began) = (MOST_RECENT, Instant::now());
        while let Some((folder, depth)) = queue.pop_front() {
            let end = if survey.assets.len() < most { began + LONGEST } else { until };
            let left = end.saturating_duration_since(Instant::now());
            let is_over = !local || survey.is_bounded || left.is_zero();
            let listed = match folder.is_empty() {
                true => Some(self.entries(place, &folder).await),
                false if is_over => None,
                false => timeout(left, self.entries(place, &folder)).await.ok(),
            };
            let Some(listed) = listed else {
                survey.folders += 1 + queue.len();
                break;
            };
            survey.listed += 1;
            let entries = match listed {
                Ok(entries) => entries,
                Err(error) if folder.is_empty() => {
                    survey.failed = Some(error.to_string());
                    continue;
                }
                Err(_) => continue,
            };
            opens = self.note_copies(place, &folder, &entries, opens, &mut survey).await;
            let grouped = self.titles(place);
            let Ok(content) = self.job(&ObjectPath::root(), move || FolderContent::of(&entries, grouped)).await else {
                continue;
            };
            let below = |name: &String| if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            let room = if depth < DEPTH { MOST_WAITING.saturating_sub(queue.len()) } else { 0 };
            queue.extend(content.folders.iter().take(room).map(|name| (below(name), depth + 1)));
            survey.folders += content.folders.len().saturating_sub(room);
            let shown = [place, &folder].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
            survey.add(&shown, content, most);
        }
        survey
    }

    async fn entries(&self, place: &str, folder: &str) -> Result<Vec<Entry>, OriginError> {
        let Ok(path) = folder_path(folder) else { return Ok(Vec::new()) };
        self.store.list(place, &path).await
    }

    /// Adds files that are being copied, among the first `most` that changed lately. Returns the rest of `most`.
    async fn note_copies(
        &self,
        place: &str,
        folder: &str,
        entries: &[Entry],
        most: usize,
        survey: &mut Survey,
    ) -> usize {
        let Ok(path) = folder_path(folder) else { return most };
        let looked = recent(entries).count().min(most);
        for name in self.copied_of(place, &path, entries, most).await {
            let parts = [place, folder, &name].into_iter().filter(|part| !part.is_empty());
            survey.copying.push(parts.collect::<Vec<_>>().join("/"));
        }
        most - looked
    }

    /// Returns the files of a folder that are being copied, among the first that changed lately.
    pub async fn being_copied(&self, place: &str, folder: &ObjectPath, entries: &[Entry]) -> Vec<String> {
        self.copied_of(place, folder, entries, MOST_RECENT).await
    }

    async fn copied_of(&self, place: &str, folder: &ObjectPath, entries: &[Entry], most: usize) -> Vec<String> {
        let mut copied = Vec::new();
        for entry in recent(entries).take(most) {
            let Ok(path) = folder.join(&entry.name) else { continue };
            if self.is_being_copied(place, &path).await {
                copied.push(entry.name.clone());
            }
        }
        copied
    }
}

/// Returns media files that changed lately.
fn recent(entries: &[Entry]) -> impl Iterator<Item = &Entry> {
    entries.iter().filter(|entry| !entry.folder && is_media(&entry.name) && is_recent(entry.modified))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        LibraryOptions,
        work::{PoolOptions, WorkPool},
    };
    use millpond_store::{MemoryOrigin, Store, StoreOptions};
    use std::{collections::HashMap, sync::Arc};

    async fn surveyed(paths: impl IntoIterator<Item = String>, local: bool, time: Duration) -> Survey {
        let store = Store::new(&StoreOptions::default()).unwrap();
        let origin = MemoryOrigin::new("films");
        paths.into_iter().for_each(|path| origin.put(&path, vec![0]));
        store.add_place("films", Arc::new(origin));
        let pool = Arc::new(WorkPool::new(PoolOptions { threads: 2 }, store.memory()).unwrap());
        let options = LibraryOptions {
            segment_duration: Duration::from_secs(4),
            index_folder: None,
            cache_size: 0,
            lists_thumbnails: false,
            places: HashMap::new(),
        };
        Library::new(store, pool, options).survey("films", local, 5, Instant::now() + time).await
    }

    #[tokio::test]
    async fn assets_of_all_folders_are_counted_within_bounds() {
        let hour = Duration::from_secs(3600);
        let deep = || (0..50).flat_map(|n| ["a.mp4", "b.mp4"].map(|name| format!("deep/er/{n}/{name}")));
        let all = surveyed(deep(), true, hour).await;
        let found = |survey: &Survey| (survey.assets.len(), survey.more, survey.is_bounded, survey.folders);
        assert_eq!((found(&all), all.listed), ((5, 95, false, 0), 53));
        // The assets to name are searched for longer.
        let late = surveyed(deep(), true, Duration::ZERO).await;
        assert!(late.assets.len() <= 5 && late.more <= 1 && late.folders >= 47, "{:?}", found(&late));
        let top = ["x.mp4".to_owned(), "y.mp4".to_owned()];
        let remote = surveyed(deep().chain(top), false, hour).await;
        assert_eq!((found(&remote), remote.listed), ((2, 0, false, 1), 1));
        let many = (0..10_001).map(|n| format!("{}/{n}.mp4", n % 7));
        let many = surveyed(many, true, hour).await;
        assert_eq!((many.assets.len() + many.more, many.is_bounded), (MOST_COUNTED, true));
        let just = (0..10_000).map(|n| format!("{}/{n}.mp4", n % 7));
        let just = surveyed(just, true, hour).await;
        assert_eq!((just.assets.len() + just.more, just.is_bounded), (MOST_COUNTED, false));
    }
}
