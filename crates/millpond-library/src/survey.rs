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

/// Most folders of a local place that are listed.
const MOST_FOLDERS: usize = 32;
/// Most folders above a folder that is listed.
const DEPTH: usize = 3;
/// Longest survey of a place, its first folder not counted: the start waits for it.
const LONGEST: Duration = Duration::from_millis(500);
/// Most files that are opened to find out whether they are being copied.
const MOST_RECENT: usize = 32;

/// Content of a place near its root.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// Name of the place; empty where it has none.
    pub place: String,
    /// Paths of the first assets, with the place, not percent-encoded.
    pub assets: Vec<String>,
    /// Number of further assets found.
    pub more: usize,
    /// Folders found and not listed.
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
        for left in content.left_out {
            let (count, _) = self.left_out.entry(left.format).or_insert_with(|| (0, within(&left.name)));
            *count += 1;
        }
        self.others += content.others;
    }
}

impl Library {
    /// Lists the root of a place and, where the place is `local`, some of its folders. Names at most `most` assets.
    pub async fn survey(&self, place: &str, local: bool, most: usize) -> Survey {
        let mut survey = Survey { place: place.to_owned(), ..Survey::default() };
        let mut queue = VecDeque::from([(String::new(), 0)]);
        let (mut looked, mut opens, began) = (0, MOST_RECENT, Instant::now());
        while let Some((folder, depth)) = queue.pop_front() {
            let enough = looked >= MOST_FOLDERS || survey.assets.len() >= most || began.elapsed() > LONGEST;
            if looked > 0 && (enough || !local) {
                survey.folders += 1 + queue.len();
                break;
            }
            looked += 1;
            let entries = match self.entries(place, &folder).await {
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
            if depth < DEPTH {
                queue.extend(content.folders.iter().take(MOST_FOLDERS).map(|name| (below(name), depth + 1)));
                survey.folders += content.folders.len().saturating_sub(MOST_FOLDERS);
            } else {
                survey.folders += content.folders.len();
            }
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
