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
use std::{collections::HashMap, sync::Arc};

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
    /// Warnings about files that are left out.
    pub(crate) left_out: Vec<String>,
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
pub(crate) fn single(path: &ObjectPath, beside: &[Entry]) -> Recipe {
    let folder = path.parent();
    let title = names::stem(path.file_name());
    let found = subtitles(beside).filter(|name| name.strip_prefix(title).is_some_and(|rest| rest.starts_with('.')));
    let (kept, left_out) = nearest(found.collect(), path.as_str(), Some(title));
    let sidecars = kept.iter().filter_map(|name| sidecar(&folder, name, Some(title))).collect();
    Recipe { members: vec![Member::whole(path.clone())], sidecars, left_out, ..Recipe::default() }
}

/// The recipe of one programme of the file that a recipe is for.
pub(crate) fn of_programme(mut recipe: Recipe, programme: u16) -> Recipe {
    recipe.members.iter_mut().for_each(|member| member.programme = Some(programme));
    recipe
}

/// The recipe of a folder. Its media files are renditions of one title, and all of its subtitle files belong to it.
pub(crate) fn folder(path: &ObjectPath, entries: &[Entry], grouped: Titles) -> Result<Recipe, LibraryError> {
    let members = folder::media(entries);
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
    let (members, mut left_out) = renditions(path, members)?;
    let (kept, others) = nearest(subtitles(entries).collect(), &shown(path), None);
    left_out.extend(others);
    Ok(Recipe {
        by_name: members.len() > 1 && grouped == Titles::Alike,
        members: members.iter().filter_map(|name| path.join(name).ok().map(Member::whole)).collect(),
        sidecars: kept.iter().filter_map(|name| sidecar(path, name, None)).collect(),
        left_out,
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

/// Names of the subtitle files among entries.
fn subtitles(entries: &[Entry]) -> impl Iterator<Item = &str> {
    entries.iter().filter(|entry| !entry.folder && is_subtitle(&entry.name)).map(|entry| entry.name.as_str())
}

/// Whether media files are few enough for one title. Surplus sound beside pictures does not count, because it is left out.
pub(crate) fn is_one_title(media: &[&str]) -> bool {
    media.len() <= MOST_MEMBERS || {
        let pictures = media.iter().filter(|name| !names::is_sound(name)).count();
        (1..=MOST_MEMBERS).contains(&pictures)
    }
}

/// Returns the files of one title, and a warning about surplus sound files beside its pictures, which are left out.
fn renditions<'a>(folder: &ObjectPath, media: Vec<&'a str>) -> Result<(Vec<&'a str>, Vec<String>), LibraryError> {
    if !is_one_title(&media) {
        let (what, found) = ("media", media.len());
        return Err(LibraryError::TooMany { folder: shown(folder), what, found, most: MOST_MEMBERS });
    }
    if media.len() <= MOST_MEMBERS {
        return Ok((media, Vec::new()));
    }
    let (sound, mut kept): (Vec<&str>, Vec<&str>) = media.into_iter().partition(|name| names::is_sound(name));
    let room = MOST_MEMBERS - kept.len();
    let left_out = too_many(&shown(folder), "sound files beside pictures", sound.len(), room);
    kept.extend(in_order(sound).into_iter().take(room));
    Ok((kept, left_out))
}

/// Returns the subtitles that fit into a title, and a warning about the others. The first file of each language precedes the second
/// file of any language. `title` is the beginning of the names, if subtitles share the name of a media file.
fn nearest<'a>(subtitles: Vec<&'a str>, asset: &str, title: Option<&str>) -> (Vec<&'a str>, Vec<String>) {
    let found = subtitles.len();
    if found <= MOST_MEMBERS {
        return (subtitles, Vec::new());
    }
    let mut counts: HashMap<(String, bool), usize> = HashMap::new();
    let mut ranked = Vec::with_capacity(found);
    for name in in_order(subtitles) {
        let said = names::subtitle_name(name, title);
        let count = counts.entry((said.language, said.forced)).or_default();
        *count += 1;
        ranked.push((*count, name));
    }
    // The sort is stable.
    ranked.sort_by_key(|(count, _)| *count);
    let kept = ranked.into_iter().map(|(_, name)| name).take(MOST_MEMBERS).collect();
    (kept, too_many(asset, "subtitle files", found, MOST_MEMBERS))
}

/// Orders names by their dots, then as text: `film.srt` is nearer to `film.mp4` than `film.en.forced.srt`.
fn in_order(mut names: Vec<&str>) -> Vec<&str> {
    names.sort_by_key(|name| (name.matches('.').count(), *name));
    names
}

/// Warns that `found` files exceed `most`, if they do. The title takes the first `most` files.
pub(crate) fn too_many(title: &str, what: &str, found: usize, most: usize) -> Vec<String> {
    let left_out = found.saturating_sub(most);
    if left_out == 0 {
        return Vec::new();
    }
    vec![format!("{title}: found {found} {what}, expected at most {most}: {left_out} are left out")]
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
    let mut subtitles = 0;
    for entry in &parsed.entries {
        if recipe.members.len() > MOST_MEMBERS {
            return Err(wrong(format!("found more than {MOST_MEMBERS} media files, expected at most that")));
        }
        let member = path.parent().join(&entry.src).map_err(|e| wrong(format!("{}: {e}", entry.src)))?;
        if is_subtitle(&entry.src) {
            subtitles += 1;
            if subtitles > MOST_MEMBERS {
                continue;
            }
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
    recipe.left_out = too_many(path.as_str(), "subtitle files", subtitles, MOST_MEMBERS);
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
        assert!(
            matches!(error, LibraryError::NotOneTitle { .. }) && error.to_string().contains("3000 titles"),
            "{error}"
        );
        let error = folder(&films_folder, &films(3000), Titles::Folder).unwrap_err();
        let text = "films: found 3000 media files, expected at most 256 in a folder that is one asset";
        assert_eq!((error.to_string().as_str(), matches!(error, LibraryError::TooMany { .. })), (text, true));
    }

    #[test]
    fn a_title_plays_with_the_nearest_of_too_many_companions() {
        let mut texts: Vec<Entry> = (0..300).map(|n| entry(format!("film.en.{n}.vtt"))).collect();
        texts.extend(["film.srt", "film.z.z.z.de.srt"].map(|name| entry(name.to_owned())));
        let film = single(&path("films/film.mp4"), &texts);
        assert_eq!((film.members.len(), film.sidecars.len()), (1, MOST_MEMBERS));
        assert_eq!(film.sidecars[0].path.as_str(), "films/film.srt", "the name of the film alone");
        assert_eq!(film.sidecars[1].path.as_str(), "films/film.en.0.vtt");
        assert!(film.sidecars.iter().any(|file| file.language == "de"), "the first of each language");
        let told = "films/film.mp4: found 302 subtitle files, expected at most 256: 46 are left out";
        assert_eq!(film.left_out, [told]);
        let other = single(&path("films/other.mp4"), &texts);
        assert_eq!((other.sidecars, other.left_out), (Vec::new(), Vec::new()));

        texts.push(entry("film.mp4".to_owned()));
        let whole = folder(&path("films"), &texts, Titles::Alike).unwrap();
        assert_eq!((whole.members.len(), whole.sidecars.len(), whole.left_out.len()), (1, MOST_MEMBERS, 1));

        let mut sounds: Vec<Entry> = (0..300).map(|n| entry(format!("voice {n}.m4a"))).collect();
        sounds.push(entry("film.mp4".to_owned()));
        let dubbed = folder(&path("films"), &sounds, Titles::Alike).unwrap();
        assert_eq!((dubbed.members.len(), dubbed.members[0].path.as_str()), (MOST_MEMBERS, "films/film.mp4"));
        let told = "films: found 300 sound files beside pictures, expected at most 255: 45 are left out";
        assert_eq!(dubbed.left_out, [told]);
        let listed = folder::FolderContent::of(&sounds, Titles::Alike);
        assert!(listed.is_asset && listed.titles[0].path.as_deref() == Some(""), "the page lists it too");

        let texts: String = (0..300).map(|n| format!("<textstream src='{n}.vtt'/>")).collect();
        let text = format!("<smil><body><switch><video src='a.mp4'/>{texts}</switch></body></smil>");
        let named = manifest(&path("a.smil"), &text).unwrap();
        assert_eq!((named.members.len(), named.sidecars.len(), named.left_out.len()), (1, MOST_MEMBERS, 1));
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
