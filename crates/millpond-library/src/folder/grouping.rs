//! Which files make one asset: a single file, a folder of renditions, a server manifest, or a list in the URL.

use crate::{
    error::{IndexError, LibraryError},
    folder,
    names::{self, is_media, is_subtitle},
    options::Titles,
    uri,
    url_list::UrlList,
};
use millpond_media::{Movie, stitch::StitchClip};
use millpond_package::{NamedTrack, SourceObject, smil};
use millpond_store::{Entry, ObjectPath};
use std::sync::Arc;

/// Largest number of media files in one asset, and of subtitle files.
pub(crate) const MOST_MEMBERS: usize = 256;
/// Largest number of entries in a server manifest: several may name tracks of one file.
const MOST_ENTRIES: usize = 4096;

/// The files of an asset, before any of them was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Recipe {
    pub(crate) members: Vec<Member>,
    pub(crate) sidecars: Vec<SidecarFile>,
    /// Whether only their names make the members one title: their content has to agree.
    pub(crate) by_name: bool,
    /// Whether the members are renditions of an HLS multivariant playlist, whose timestamps share a clock.
    pub(crate) keeps_clock: bool,
    /// The items of a stitched title, which play one after the other; none where the members are renditions.
    pub(crate) items: Vec<RecipeItem>,
}

/// An item of a stitched title.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecipeItem {
    /// Place of its file in the members.
    pub(crate) member: usize,
    /// The part of the file that is shown.
    pub(crate) clip: StitchClip,
    /// Whether the item is a stretch of segments between two discontinuities.
    pub(crate) is_stretch: bool,
}

/// A file that holds tracks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) path: ObjectPath,
    pub(crate) language: Option<String>,
    /// Name of its sound for menus; `None` for the name in the file.
    pub(crate) name: Option<String>,
    pub(crate) named: Vec<NamedTrack>,
    pub(crate) bandwidth: Option<u64>,
    pub(crate) video: bool,
    pub(crate) audio: bool,
    pub(crate) text: bool,
    /// Number of the programme of a transport stream; `None` for the first one.
    pub(crate) programme: Option<u16>,
}

/// A file of subtitles beside the media.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SidecarFile {
    pub(crate) path: ObjectPath,
    pub(crate) language: String,
    /// Name for menus; empty to use the language.
    pub(crate) name: String,
    pub(crate) forced: bool,
}

impl Member {
    /// Returns a file with all of its tracks.
    pub(crate) fn whole(path: ObjectPath) -> Self {
        Self {
            path,
            language: None,
            name: None,
            named: Vec::new(),
            bandwidth: None,
            video: true,
            audio: true,
            text: true,
            programme: None,
        }
    }

    /// Returns the member as a source of a presentation; `movie` is the index of its file.
    pub(crate) fn source(&self, movie: Arc<Movie>) -> SourceObject {
        SourceObject {
            movie,
            label: self.path.file_name().to_owned(),
            language: self.language.clone(),
            named: self.named.clone(),
            bandwidth: self.bandwidth,
            use_video: self.video,
            use_audio: self.audio,
            use_text: self.text,
        }
    }
}

/// The recipe of one file. Subtitle files beside it whose names begin with its own belong to it (`film.mp4`,
/// `film.en.vtt`).
pub(crate) fn single(path: &ObjectPath, beside: &[Entry]) -> Result<Recipe, LibraryError> {
    let folder = path.parent();
    let title = names::stem(path.file_name());
    let sidecars: Vec<&Entry> = beside
        .iter()
        .filter(|e| !e.folder && is_subtitle(&e.name))
        .filter(|e| e.name.strip_prefix(title).is_some_and(|rest| rest.starts_with('.')))
        .collect();
    bounded(&folder, "subtitle", sidecars.len())?;
    let sidecars = sidecars.iter().filter_map(|e| sidecar(&folder, &e.name, Some(title))).collect();
    Ok(Recipe { members: vec![Member::whole(path.clone())], sidecars, ..Recipe::default() })
}

/// The recipe of one programme of the file that a recipe is for.
pub(crate) fn of_programme(mut recipe: Recipe, programme: u16) -> Recipe {
    recipe.members.iter_mut().for_each(|member| member.programme = Some(programme));
    recipe
}

/// The recipe of a folder. Its media files are renditions of one title, and all of its subtitle files belong to it.
pub(crate) fn folder(path: &ObjectPath, entries: &[Entry], grouped: Titles) -> Result<Recipe, LibraryError> {
    let members = folder::media(entries);
    bounded(path, "media", members.len())?;
    let titles = folder::groups(&members, grouped);
    if titles.len() > 1 {
        let names: Vec<&str> = titles.iter().filter_map(|title| title.first().copied()).take(3).collect();
        let found =
            format!("{} titles ({}{})", titles.len(), names.join(", "), if titles.len() > 3 { " ..." } else { "" });
        let first = titles.first().and_then(|files| folder::path(files));
        let cure = first.map_or_else(String::new, |first| cure(&first));
        return Err(LibraryError::NotOneTitle { folder: shown(path), found, cure });
    }
    if members.is_empty() {
        foreign_only(path, entries)?;
    }
    let sidecars: Vec<&Entry> = entries.iter().filter(|e| !e.folder && is_subtitle(&e.name)).collect();
    bounded(path, "subtitle", sidecars.len())?;
    Ok(Recipe {
        by_name: members.len() > 1 && grouped == Titles::Alike,
        members: members.iter().filter_map(|name| path.join(name).ok().map(Member::whole)).collect(),
        sidecars: sidecars.iter().filter_map(|e| sidecar(path, &e.name, None)).collect(),
        ..Recipe::default()
    })
}

/// Returns the sentence with the address of a title in a folder that is no title itself.
pub(crate) fn cure(title: &str) -> String {
    format!(". Each is at an address of its own, such as {}/index.m3u8 in this folder", uri::encode(title))
}

/// Fails where a folder has media files, all in formats that are not read.
fn foreign_only(path: &ObjectPath, entries: &[Entry]) -> Result<(), LibraryError> {
    let left_out = folder::FolderContent::of(entries, Titles::Alike).left_out;
    let Some(first) = left_out.first() else { return Ok(()) };
    let more = if left_out.len() > 1 { format!("{} files like ", left_out.len()) } else { String::new() };
    let found = format!("{more}{}, which {}", first.name, IndexError::explained(&first.name, first.format));
    Err(LibraryError::OnlyForeign { folder: shown(path), found })
}

fn shown(folder: &ObjectPath) -> String {
    if folder.is_root() { "the top folder".to_owned() } else { folder.to_string() }
}

fn bounded(folder: &ObjectPath, what: &'static str, found: usize) -> Result<(), LibraryError> {
    if found <= MOST_MEMBERS {
        return Ok(());
    }
    Err(LibraryError::TooMany { folder: shown(folder), what, found, most: MOST_MEMBERS })
}

fn sidecar(folder: &ObjectPath, name: &str, title: Option<&str>) -> Option<SidecarFile> {
    let said = names::subtitle_name(name, title);
    let path = folder.join(name).ok()?;
    Some(SidecarFile { path, language: said.language, name: String::new(), forced: said.forced })
}

/// The recipe of a list in the URL, `PREFIX,MIDDLE1,MIDDLE2,SUFFIX.urlset`.
pub(crate) fn url_set(path: &ObjectPath) -> Result<Recipe, LibraryError> {
    let bad = |why: &str| LibraryError::BadPath { path: path.to_string(), why: why.to_owned() };
    let list =
        UrlList::parse(path.as_str()).ok_or_else(|| bad("a list has the form PREFIX,NAME1,NAME2,SUFFIX.urlset"))?;
    if list.files.len() > MOST_MEMBERS {
        return Err(bad("a list names 1 to 256 files between its first and last comma"));
    }
    let mut members = Vec::with_capacity(list.files.len());
    for name in &list.files {
        if !is_media(name) {
            return Err(bad("a list names media files"));
        }
        let member = ObjectPath::parse(name).map_err(|e| bad(&e.to_string()))?;
        members.push(Member::whole(member));
    }
    // Listings make such lists by name alone. Other lists are an operator's decision.
    let names: Vec<&str> = list.files.iter().map(|file| file.rsplit('/').next().unwrap_or(file)).collect();
    let by_name = names.len() > 1 && folder::groups(&names, Titles::Alike).len() == 1;
    Ok(Recipe { members, by_name, ..Recipe::default() })
}

/// The recipe of a server manifest. Its paths are relative to the manifest's folder.
pub(crate) fn manifest(path: &ObjectPath, text: &str) -> Result<Recipe, LibraryError> {
    let wrong = |why: String| LibraryError::Manifest { manifest: path.to_string(), why };
    let parsed = smil::parse(text).map_err(|e| wrong(e.to_string()))?;
    if parsed.entries.len() > MOST_ENTRIES {
        return Err(wrong(format!("it has {} entries, expected at most {MOST_ENTRIES}", parsed.entries.len())));
    }
    if parsed.is_sequence {
        return sequence(path, &parsed.entries).map_err(wrong);
    }
    let any_audio = parsed.entries.iter().any(|e| e.kind == smil::EntryKind::Audio);
    let mut recipe = Recipe::default();
    for entry in &parsed.entries {
        if recipe.members.len().max(recipe.sidecars.len()) > MOST_MEMBERS {
            return Err(wrong(format!("found more than {MOST_MEMBERS} files of one kind, expected at most that")));
        }
        let member = path.parent().join(&entry.src).map_err(|e| wrong(format!("{}: {e}", entry.src)))?;
        if is_subtitle(&entry.src) {
            let said = names::subtitle_name(member.file_name(), None);
            let language = entry.language.clone().unwrap_or(said.language);
            recipe.sidecars.push(SidecarFile { path: member, language, name: String::new(), forced: said.forced });
            continue;
        }
        let known = recipe.members.iter().position(|m| m.path == member);
        let at = known.unwrap_or_else(|| {
            let fresh = Member { video: false, audio: false, text: false, ..Member::whole(member) };
            recipe.members.push(fresh);
            recipe.members.len() - 1
        });
        let Some(member) = recipe.members.get_mut(at) else { continue };
        member.named.extend(entry.track_id.map(|id| NamedTrack { id, language: entry.language.clone() }));
        match entry.kind {
            smil::EntryKind::Video => {
                member.video = true;
                member.bandwidth = entry.bitrate.or(member.bandwidth);
                // Manifests that name no audio mean the audio inside the video files.
                member.audio |= !any_audio;
            }
            smil::EntryKind::Audio => {
                member.audio = true;
                if entry.track_id.is_none() {
                    member.language = entry.language.clone().or_else(|| member.language.take());
                }
            }
            smil::EntryKind::Text => member.text = true,
        }
    }
    if recipe.members.is_empty() {
        return Err(wrong("it names no media file".to_owned()));
    }
    Ok(recipe)
}

/// The recipe of a server manifest whose entries play one after the other.
fn sequence(path: &ObjectPath, entries: &[smil::ManifestEntry]) -> Result<Recipe, String> {
    if entries.len() > MOST_MEMBERS {
        return Err(format!("found {} items in <seq>, expected at most {MOST_MEMBERS}", entries.len()));
    }
    let mut recipe = Recipe::default();
    for (number, smil::ManifestEntry { src, clip, .. }) in (1..).zip(entries) {
        if !is_media(src) && !names::is_playlist(src) {
            return Err(format!(
                "item {number}: found {src}, expected a media file: stitched titles don't contain others"
            ));
        }
        let file = path.parent().join(src).map_err(|error| format!("item {number}: {src}: {error}"))?;
        let known = recipe.members.iter().position(|member| member.path == file);
        let member = known.unwrap_or(recipe.members.len());
        if known.is_none() {
            recipe.members.push(Member::whole(file));
        }
        recipe.items.push(RecipeItem { member, clip: *clip, is_stretch: false });
    }
    Ok(recipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: String) -> Entry {
        Entry { name, folder: false, len: 1, modified: None }
    }

    fn path(text: &str) -> ObjectPath {
        ObjectPath::parse(text).unwrap()
    }

    #[test]
    fn a_folder_of_too_many_files_is_not_one_asset() {
        let films = |count: usize| (0..count).map(|n| entry(format!("film{n}.mp4"))).collect::<Vec<_>>();
        let films_folder = path("films");
        let ladder: Vec<Entry> = (0..MOST_MEMBERS).map(|n| entry(format!("film{n}k.mp4"))).collect();
        assert!(folder(&films_folder, &ladder, Titles::Alike).is_err(), "film1k is a word");
        assert_eq!(folder(&films_folder, &ladder, Titles::Folder).unwrap().members.len(), MOST_MEMBERS);
        let error = folder(&films_folder, &films(3), Titles::Alike).unwrap_err();
        let text = "films: found 3 titles (film0.mp4, film1.mp4, film2.mp4), expected one title in a folder that is an asset. \
            Each is at an address of its own, such as film0.mp4/index.m3u8 in this folder";
        assert_eq!((error.to_string().as_str(), matches!(error, LibraryError::NotOneTitle { .. })), (text, true));
        let error = folder(&films_folder, &films(3000), Titles::Alike).unwrap_err();
        let text = "films: found 3000 media files, expected at most 256 in a folder that is one asset";
        assert_eq!((error.to_string().as_str(), matches!(error, LibraryError::TooMany { .. })), (text, true));

        let texts: Vec<Entry> = (0..300).map(|n| entry(format!("film.en.{n}.vtt"))).collect();
        assert!(matches!(folder(&films_folder, &texts, Titles::Alike), Err(LibraryError::TooMany { found: 300, .. })));
        assert!(matches!(single(&path("films/film.mp4"), &texts), Err(LibraryError::TooMany { found: 300, .. })));
        assert_eq!(single(&path("films/other.mp4"), &texts).unwrap().sidecars, []);
    }

    #[test]
    fn a_sequence_opens_each_file_once() {
        let text = "<smil><body><seq><video src='a.mp4'/><video src='b/c.mov' clipEnd='9s'/><video src='a.mp4'/></seq></body></smil>";
        let recipe = manifest(&path("films/evening.smil"), text).unwrap();
        assert_eq!(
            recipe.members.iter().map(|m| m.path.as_str()).collect::<Vec<_>>(),
            ["films/a.mp4", "films/b/c.mov"]
        );
        assert_eq!(recipe.items.iter().map(|item| item.member).collect::<Vec<_>>(), [0, 1, 0]);
        let refused = |items: &str| {
            let text = format!("<smil><body><seq>{items}</seq></body></smil>");
            manifest(&path("evening.smil"), &text).unwrap_err().to_string()
        };
        let error = refused("<video src='a.mp4'/><video src='evening.smil'/>");
        assert_eq!(
            error,
            "evening.smil: item 2: found evening.smil, expected a media file: stitched titles don't contain others"
        );
        let error = refused(&"<video src='a.mp4'/>".repeat(300));
        assert_eq!(error, "evening.smil: found 300 items in <seq>, expected at most 256");
    }

    #[test]
    fn an_index_file_stands_for_its_media_however_many_there_are() {
        let pair = |n: usize| [entry(format!("f_{n}k.mp4")), entry(format!("f_{n}k.dref.mp4"))];
        let pairs: Vec<Entry> = (0..MOST_MEMBERS).flat_map(pair).collect();
        let recipe = folder(&path("films"), &pairs, Titles::Alike).unwrap();
        assert!(recipe.by_name);
        assert_eq!(recipe.members.len(), MOST_MEMBERS);
        assert!(recipe.members.iter().all(|m| m.path.as_str().ends_with(".dref.mp4")));

        // Looking each name up in a list took minutes here.
        let started = std::time::Instant::now();
        let many: Vec<Entry> = (0..200_000).flat_map(pair).collect();
        assert!(matches!(
            folder(&path("films"), &many, Titles::Alike),
            Err(LibraryError::TooMany { found: 200_000, .. })
        ));
        assert!(started.elapsed() < std::time::Duration::from_secs(60));
    }
}
