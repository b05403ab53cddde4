//! Pictures of folders for cards. A card costs remote storage no listing: its folder was listed for another reason, or has no picture.

use super::crawl::list;
use crate::{folder::listed::ListedFolder, library::Library};
use millpond_store::Cache;
use std::{fmt, sync::Arc};

/// Memory of an entry beside its texts, in bytes.
const ENTRY: u64 = 160;

/// The picture of a folder, as far as its list tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FolderPicture {
    /// Path of an image file: that of the folder, else the first one of its titles.
    pub image: Option<String>,
    /// Path of the first title, where there is no image file and the storage is local.
    pub first: Option<String>,
}

impl FolderPicture {
    fn of(listed: &ListedFolder) -> Self {
        let of_titles = || listed.rows.iter().find_map(|row| row.artwork.picture.as_ref());
        let name = listed.artwork.picture.as_ref().or_else(of_titles);
        let image = name.map(|name| format!("{}{name}", listed.prefix));
        let first = listed.rows.first().filter(|_| image.is_none()).map(|row| row.path.clone());
        Self { image, first }
    }
}

/// The pictures of folders that were listed. Entries of the memory budget.
#[derive(Clone)]
pub(super) struct FolderPictures {
    library: Arc<Library>,
    /// Image files of remote folders, by the paths of the folders with a slash at the end.
    known: Cache<String, Arc<str>>,
}

impl FolderPictures {
    pub(super) fn new(library: Arc<Library>) -> Self {
        let known = Cache::of(library.store.memory(), "folder pictures");
        Self { library, known }
    }

    /// Notes the image file of a folder of remote storage that was listed.
    pub(super) fn learn(&self, place: &str, listed: &ListedFolder) {
        if self.library.store.is_local(place) {
            return;
        }
        match FolderPicture::of(listed).image {
            Some(image) => {
                let weight = ENTRY + (image.len() + listed.prefix.len()) as u64;
                self.known.insert(listed.prefix.clone(), image.into(), weight);
            }
            None => drop(self.known.remove(&listed.prefix)),
        }
    }

    /// Returns the picture of the folder `inside` a place, whose paths begin with `prefix`. Local storage is listed.
    pub(super) async fn get(&self, place: &str, prefix: &str, inside: &str) -> FolderPicture {
        if self.library.store.is_local(place) {
            let listed = list(&self.library, place, prefix, inside).await;
            return listed.as_ref().map(FolderPicture::of).unwrap_or_default();
        }
        let folder = format!("{prefix}{inside}");
        let image = self.known.get(&format!("{}/", folder.trim_end_matches('/'))).map(|image| image.to_string());
        FolderPicture { image, first: None }
    }

    pub(super) fn clear(&self) {
        self.known.clear();
    }
}

impl fmt::Debug for FolderPictures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FolderPictures").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Titles;
    use millpond_store::Entry;

    #[test]
    fn a_folder_has_its_own_picture_or_that_of_its_first_title() {
        let entry = |name: &&str| Entry { name: (*name).to_owned(), folder: false, len: 1, modified: None };
        let of = |names: &[&str]| {
            let entries: Vec<Entry> = names.iter().map(entry).collect();
            let FolderPicture { image, first } = FolderPicture::of(&ListedFolder::of("tv", &entries, Titles::Alike));
            (image, first)
        };
        let image = |name: &str| (Some(format!("tv/{name}")), None);
        assert_eq!(of(&["a.mp4", "a.jpg", "b.mp4", "Folder.png"]), image("Folder.png"));
        assert_eq!(of(&["a.mp4", "b.mp4", "b-poster.webp"]), image("b-poster.webp"));
        assert_eq!(of(&["a.mp4", "b.mkv"]), (None, Some("tv/a.mp4".to_owned())));
        assert_eq!(of(&["notes.txt"]), (None, None));
    }
}
