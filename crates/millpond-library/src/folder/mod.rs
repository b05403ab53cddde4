//! Content of a folder, by names alone: titles, manifests, and files that are not served.

mod artwork;
pub(crate) mod grouping;
pub(crate) mod listed;
pub(crate) mod renditions;
mod titles;

use crate::{
    folder::grouping::{MOST_MEMBERS, is_one_title},
    names,
    options::Titles,
    url_list::UrlList,
};
use millpond_media::Foreign;
use millpond_store::Entry;
use std::collections::{HashMap, HashSet};

/// Names of server manifests that describe their folder as an asset.
pub(crate) const OWN_MANIFESTS: [&str; 2] = ["index.smil", "index.ism"];

/// Content of a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FolderContent {
    /// Titles among the media files, in the order of their first files.
    pub titles: Vec<Title>,
    /// Server manifests and HLS playlists.
    pub manifests: Vec<String>,
    /// Subtitle files.
    pub subtitles: Vec<String>,
    /// Media files in formats that are not read.
    pub left_out: Vec<LeftOut>,
    /// Folders.
    pub folders: Vec<String>,
    /// Number of files that are none of these.
    pub others: usize,
    /// Whether the folder itself is an asset, judged by names.
    pub is_asset: bool,
}

/// Media files that are one title, judged by their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Title {
    /// Names of the files.
    pub files: Vec<String>,
    /// Path of the title as an asset, relative to the folder: empty for the folder itself. `None` where it has more
    /// files than a list in a URL names, so that it needs a server manifest.
    pub path: Option<String>,
}

/// A media file that is not served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Name of the file.
    pub name: String,
    /// Format that its name stands for.
    pub format: Foreign,
}

impl FolderContent {
    /// Sorts the entries of a folder. Takes linear time, and reads no file.
    #[must_use]
    pub fn of(entries: &[Entry], grouped: Titles) -> Self {
        let mut content = Self::default();
        let media = media(entries);
        let files = || entries.iter().filter(|entry| !entry.folder).map(|entry| entry.name.as_str());
        let has_playlist = has_playlist(entries);
        content.folders = entries.iter().filter(|entry| entry.folder).map(|entry| entry.name.clone()).collect();
        for name in files().filter(|name| !is_title(name, has_playlist)) {
            match Foreign::of_name(name) {
                _ if names::is_manifest(name) || names::is_playlist(name) => content.manifests.push(name.to_owned()),
                _ if names::is_subtitle(name) => content.subtitles.push(name.to_owned()),
                Some(format) => content.left_out.push(LeftOut { name: name.to_owned(), format }),
                None => content.others += 1,
            }
        }
        let own = content.manifests.iter().any(|name| OWN_MANIFESTS.contains(&name.as_str()));
        let groups = groups(&media, grouped);
        content.is_asset = own || (groups.len() == 1 && is_one_title(&media));
        let whole = content.is_asset && !own;
        content.titles = groups
            .into_iter()
            .map(|files| {
                let path = if whole { Some(String::new()) } else { path(&files) };
                Title { files: files.into_iter().map(str::to_owned).collect(), path }
            })
            .collect();
        content
    }
}

/// Whether a folder has an HLS playlist. Transport streams beside it are its segments.
pub(crate) fn has_playlist(entries: &[Entry]) -> bool {
    entries.iter().any(|entry| !entry.folder && names::is_playlist(&entry.name))
}

/// Whether a file of this name is media by itself, and no segment of a playlist in its folder.
pub(crate) fn is_title(name: &str, has_playlist: bool) -> bool {
    names::is_media(name) && !(has_playlist && names::is_segment(name))
}

/// Returns the media files of a folder. An index file replaces the file that it was made from: `a.mkv.dref.mp4` replaces `a.mkv`, and
/// `a.dref.mp4` replaces the only file with the stem `a`. If several files have the stem, `a.dref.mp4` replaces none.
pub(crate) fn media(entries: &[Entry]) -> Vec<&str> {
    let has_playlist = has_playlist(entries);
    let is_file = |entry: &&Entry| !entry.folder && is_title(&entry.name, has_playlist);
    let all = || entries.iter().filter(is_file).map(|entry| entry.name.as_str());
    let indexed: HashSet<&str> = all().filter_map(|name| name.strip_suffix(".dref.mp4")).collect();
    let mut stems: HashMap<&str, usize> = HashMap::new();
    all().for_each(|name| *stems.entry(names::stem(name)).or_default() += 1);
    let is_replaced = |name: &&str| {
        let stem = names::stem(name);
        indexed.contains(*name) || (indexed.contains(stem) && stems.get(stem) == Some(&1))
    };
    all().filter(|name| !is_replaced(name)).collect()
}

/// Groups media files by title.
pub(crate) fn groups<'a>(media: &[&'a str], grouped: Titles) -> Vec<Vec<&'a str>> {
    match grouped {
        Titles::Folder if media.is_empty() => Vec::new(),
        Titles::Folder => vec![media.to_vec()],
        Titles::File => media.iter().map(|name| vec![*name]).collect(),
        Titles::Alike => {
            let named = |group: titles::Group| group.iter().filter_map(|place| media.get(*place).copied()).collect();
            titles::titles(media).into_iter().map(named).collect()
        }
    }
}

/// Returns the path of a title in a folder of several: its only file, or a list in the URL.
fn path(files: &[&str]) -> Option<String> {
    let (first, rest) = files.split_first()?;
    if rest.is_empty() {
        return Some((*first).to_owned());
    }
    if files.len() > MOST_MEMBERS { None } else { UrlList::of(files) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(names: &[&str]) -> FolderContent {
        let entry = |name: &&str| Entry {
            name: name.trim_end_matches('/').to_owned(),
            folder: name.ends_with('/'),
            len: 1,
            modified: None,
        };
        FolderContent::of(&names.iter().map(entry).collect::<Vec<_>>(), Titles::Alike)
    }

    fn paths(content: &FolderContent) -> Vec<&str> {
        content.titles.iter().map(|title| title.path.as_deref().unwrap_or("none")).collect()
    }

    #[test]
    fn a_ladder_is_its_folder_and_a_season_is_not() {
        let film = content(&["240p.mp4", "480p.mp4", "deu.m4a", "en.vtt", "cover.jpg", "extras/", "480p.dref.mp4"]);
        assert!(film.is_asset);
        assert_eq!((paths(&film), film.titles[0].files.len(), film.others), (vec![""], 3, 1));
        assert_eq!((film.subtitles, film.folders), (vec!["en.vtt".to_owned()], vec!["extras".to_owned()]));
        let of_two = content(&["film.mkv", "film.mp4", "film.mkv.dref.mp4", "other.avi", "other.dref.mp4"]);
        assert_eq!(paths(&of_two), ["film.mp4", "film.mkv.dref.mp4", "other.dref.mp4"]);
        assert_eq!(paths(&content(&["film.mkv", "film.mp4", "film.dref.mp4"])).len(), 3, "its name tells no file");
        let season = content(&["E01_360p.mp4", "E01_720p.mp4", "E02.mp4", "E03,.mp4", "E03, 240p.mp4"]);
        assert!(!season.is_asset);
        assert_eq!(paths(&season), ["E01_,360p,720p,.mp4.urlset", "E02.mp4", "E03%2C,, 240p,.mp4.urlset"]);
    }

    #[test]
    fn what_is_left_out_is_named() {
        let mixed = content(&["a.mxf", "b.WMV", "c.txt", "d.mp4", "e.ts"]);
        let left: Vec<_> = mixed.left_out.iter().map(|left| (left.name.as_str(), left.format)).collect();
        assert_eq!(left, [("a.mxf", Foreign::Mxf), ("b.WMV", Foreign::Asf)]);
        assert_eq!(paths(&mixed), ["d.mp4", "e.ts"]);
        let ready = content(&["index.m3u8", "1.ts", "2.ts", "a.wmv"]);
        assert_eq!((ready.left_out.len(), ready.others, ready.is_asset), (1, 2, false));
        assert_eq!((paths(&ready).len(), &ready.manifests[..]), (0, &["index.m3u8".to_owned()][..]));
        let fragments = content(&["film.m3u8", "init.mp4", "film0.m4s", "film.mp4"]);
        assert_eq!((paths(&fragments), fragments.others, fragments.is_asset), (vec![""], 2, true));
    }

    #[test]
    fn a_manifest_of_its_own_says_what_a_folder_is() {
        let season = content(&["E01.mp4", "E02.mp4", "index.smil"]);
        assert_eq!((season.is_asset, paths(&season)), (true, vec!["E01.mp4", "E02.mp4"]));
        let entries =
            ["a.mp4", "b.mp4"].map(|name| Entry { name: name.to_owned(), folder: false, len: 1, modified: None });
        let whole = FolderContent::of(&entries, Titles::Folder);
        assert_eq!((whole.is_asset, paths(&whole)), (true, vec![""]));
        let apart = FolderContent::of(&entries[..1], Titles::File);
        assert_eq!((apart.is_asset, paths(&apart)), (true, vec![""]));
    }
}
