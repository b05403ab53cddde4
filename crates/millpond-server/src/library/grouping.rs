//! Which files make one asset: a single file, a folder of renditions, a server manifest, or a list in the URL.

use super::{
    LibraryError,
    names::{self, is_media, is_subtitle},
};
use millpond_package::{NamedTrack, smil};
use millpond_store::{Entry, ObjectPath};

/// Largest number of files in one asset.
const MOST_MEMBERS: usize = 256;

/// The files of an asset, before any of them was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Recipe {
    pub(super) members: Vec<Member>,
    pub(super) sidecars: Vec<SidecarFile>,
}

/// A file that holds tracks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) path: ObjectPath,
    pub(super) language: Option<String>,
    pub(super) named: Vec<NamedTrack>,
    pub(super) bandwidth: Option<u64>,
    pub(super) video: bool,
    pub(super) audio: bool,
    pub(super) text: bool,
}

/// A file of subtitles beside the media.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SidecarFile {
    pub(super) path: ObjectPath,
    pub(super) language: String,
    pub(super) forced: bool,
}

impl Member {
    fn whole(path: ObjectPath) -> Self {
        Self { path, language: None, named: Vec::new(), bandwidth: None, video: true, audio: true, text: true }
    }
}

/// One file; subtitle files beside it whose names begin with its own (`film.mp4`, `film.en.vtt`) belong to it.
pub(super) fn single(path: &ObjectPath, beside: &[Entry]) -> Recipe {
    let folder = path.parent();
    let title = names::stem(path.file_name());
    let sidecars = beside
        .iter()
        .filter(|e| !e.folder && is_subtitle(&e.name))
        .filter(|e| e.name.strip_prefix(title).is_some_and(|rest| rest.starts_with('.')))
        .filter_map(|e| sidecar(&folder, &e.name, Some(title)))
        .collect();
    Recipe { members: vec![Member::whole(path.clone())], sidecars }
}

/// A folder: every media file in it is a rendition of one title, every subtitle file belongs to it. An index file
/// (`a.dref.mp4`) stands for the file it was made from, where both are there.
pub(super) fn folder(path: &ObjectPath, entries: &[Entry]) -> Recipe {
    let media: Vec<&Entry> = entries.iter().filter(|e| !e.folder && is_media(&e.name)).collect();
    let shadowed = |name: &str| {
        let dref = format!("{}.dref.mp4", names::stem(name));
        media.iter().any(|e| e.name == dref)
    };
    Recipe {
        members: media
            .iter()
            .filter(|e| !shadowed(&e.name))
            .filter_map(|e| path.join(&e.name).ok().map(Member::whole))
            .collect(),
        sidecars: entries
            .iter()
            .filter(|e| !e.folder && is_subtitle(&e.name))
            .filter_map(|e| sidecar(path, &e.name, None))
            .collect(),
    }
}

fn sidecar(folder: &ObjectPath, name: &str, title: Option<&str>) -> Option<SidecarFile> {
    let said = names::subtitle_name(name, title);
    Some(SidecarFile { path: folder.join(name).ok()?, language: said.language, forced: said.forced })
}

/// A list in the URL, `PREFIX,MIDDLE1,MIDDLE2,SUFFIX.urlset`: the files `PREFIXMIDDLE1SUFFIX` and so on.
pub(super) fn url_set(path: &ObjectPath) -> Result<Recipe, LibraryError> {
    let bad = |why: &str| LibraryError::BadPath { path: path.to_string(), why: why.to_owned() };
    let text = path.as_str();
    let text = text.strip_suffix(".urlset").unwrap_or(text);
    let parts: Vec<&str> = text.split(',').collect();
    let [prefix, middles @ .., suffix] = parts.as_slice() else {
        return Err(bad("a list has the form PREFIX,NAME1,NAME2,SUFFIX.urlset"));
    };
    if middles.is_empty() || middles.len() > MOST_MEMBERS {
        return Err(bad("a list names 1 to 256 files between its first and last comma"));
    }
    let mut members = Vec::with_capacity(middles.len());
    for middle in middles {
        let name = format!("{prefix}{middle}{suffix}");
        if !is_media(&name) {
            return Err(bad("a list names media files"));
        }
        let member = ObjectPath::parse(&name).map_err(|e| bad(&e.to_string()))?;
        members.push(Member::whole(member));
    }
    Ok(Recipe { members, sidecars: Vec::new() })
}

/// A server manifest: its entries, with paths relative to the manifest's folder.
pub(super) fn manifest(path: &ObjectPath, text: &str) -> Result<Recipe, LibraryError> {
    let wrong = |why: String| LibraryError::Manifest { manifest: path.to_string(), why };
    let parsed = smil::parse(text).map_err(|e| wrong(e.to_string()))?;
    let any_audio = parsed.entries.iter().any(|e| e.kind == smil::Kind::Audio);
    let mut recipe = Recipe::default();
    for entry in &parsed.entries {
        let member = path.parent().join(&entry.src).map_err(|e| wrong(format!("{}: {e}", entry.src)))?;
        if is_subtitle(&entry.src) {
            let said = names::subtitle_name(member.file_name(), None);
            let language = entry.language.clone().unwrap_or(said.language);
            recipe.sidecars.push(SidecarFile { path: member, language, forced: said.forced });
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
            smil::Kind::Video => {
                member.video = true;
                member.bandwidth = entry.bitrate.or(member.bandwidth);
                // Manifests that name no audio mean the audio inside the video files.
                member.audio |= !any_audio;
            }
            smil::Kind::Audio => {
                member.audio = true;
                if entry.track_id.is_none() {
                    member.language = entry.language.clone().or_else(|| member.language.take());
                }
            }
            smil::Kind::Text => member.text = true,
        }
    }
    if recipe.members.is_empty() {
        return Err(wrong("it names no media file".to_owned()));
    }
    if recipe.members.len() > MOST_MEMBERS {
        return Err(wrong(format!("it names {} files, more than {MOST_MEMBERS}", recipe.members.len())));
    }
    Ok(recipe)
}
