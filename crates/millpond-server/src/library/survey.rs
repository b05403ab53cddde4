//! A look at a place for the first words to an operator: assets, and media that is not served.

use super::{FolderContent, Library, copying::is_recent, folder_path};
use crate::http::request::uri::encode;
use millpond_media::Foreign;
use millpond_store::{Entry, ObjectPath, OriginError};
use std::{
    collections::{BTreeMap, VecDeque},
    time::{Duration, Instant},
};

/// Most folders of a local place that are looked into.
const MOST_FOLDERS: usize = 32;
/// How deep they lie at most.
const DEPTH: usize = 3;
/// Longest look at a place, its first folder not counted: the start waits for it.
const LONGEST: Duration = Duration::from_millis(500);
/// Most files that are opened to see whether they are being copied.
const MOST_RECENT: usize = 32;

/// What a place holds near its top.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// Name of the place; empty where it has none.
    pub place: String,
    /// Paths of the first assets, with the place, not percent-encoded.
    pub assets: Vec<String>,
    /// Number of further assets that were seen.
    pub more: usize,
    /// Folders that were seen and not looked into.
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
    /// The path of an asset as URLs have it.
    #[must_use]
    pub fn encoded(asset: &str) -> String {
        encode(asset)
    }

    fn add(&mut self, folder: &str, content: FolderContent, most: usize) {
        let within =
            |name: &str| [folder, name].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
        let titles = content.titles.iter().map(|title| match (&title.files[..], title.path.as_deref()) {
            ([only], _) => within(only),
            (_, Some(path)) => within(path),
            (files, None) => within(files.first().map_or("", String::as_str)),
        });
        for asset in titles.chain(content.manifests.iter().map(|name| within(name))) {
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
    /// Looks at the top of a place, and into some of its folders where it is `local`: there that costs no request.
    pub(crate) async fn survey(&self, place: &str, local: bool, most: usize) -> Survey {
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

    /// Notes files that are being copied, of `most` that changed lately; gives what is left of `most`.
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

    /// The files of a folder that are being copied, of the first that changed lately.
    pub(crate) async fn being_copied(&self, place: &str, folder: &ObjectPath, entries: &[Entry]) -> Vec<String> {
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

/// Media files that changed lately.
fn recent(entries: &[Entry]) -> impl Iterator<Item = &Entry> {
    entries.iter().filter(|entry| !entry.folder && super::is_media(&entry.name) && is_recent(entry.modified))
}
