//! The recipe of an HLS multivariant playlist: its variants are a ladder, with sound and subtitles beside them.

use crate::{
    error::LibraryError,
    folder::grouping::{MOST_MEMBERS, Member, Recipe, SidecarFile, too_many},
    names, uri,
};
use millpond_package::hls_playlist::{Rendition, RenditionKind, StoredMultivariant, StoredVariant};
use millpond_store::ObjectPath;
use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
};

/// Returns the recipe of the playlist at `path`, in a place whose storage has an `address`.
///
/// A variant without pictures is left out beside variants with pictures: they have its sound, or a rendition has it.
pub(crate) fn ladder(path: &ObjectPath, address: &str, found: &StoredMultivariant) -> Result<Recipe, LibraryError> {
    let reading = Reading { path, address, found };
    reading.recipe().map_err(|why| LibraryError::Manifest { manifest: path.to_string(), why })
}

struct Reading<'a> {
    path: &'a ObjectPath,
    address: &'a str,
    found: &'a StoredMultivariant,
}

impl Reading<'_> {
    fn recipe(&self) -> Result<Recipe, String> {
        let StoredMultivariant { variants, renditions } = self.found;
        let any_pictures = variants.iter().any(|variant| variant.has_pictures);
        let mut used: Vec<&StoredVariant> =
            variants.iter().filter(|variant| variant.has_pictures || !any_pictures).collect();
        // Of several tracks of sound that are alike, the first one is taken.
        used.sort_by_key(|variant| Reverse(variant.bandwidth));
        let mut recipe = Recipe { keeps_clock: true, ..Recipe::default() };
        let mut known = HashMap::new();
        for variant in &used {
            let (within, name, language) = self.sound_within(variant);
            let member = self.member(&mut recipe, &mut known, &variant.uri, variant.line)?;
            member.video = true;
            member.text = true;
            member.audio |= within;
            member.name = member.name.take().or(name);
            member.language = member.language.take().or(language);
        }
        let mut others = HashSet::new();
        for rendition in self.sounds(&used) {
            let Some(uri) = &rendition.uri else { continue };
            let file = self.file(uri, rendition.line)?;
            if recipe.members.len() >= MOST_MEMBERS && !known.contains_key(&file) {
                others.insert(file);
                continue;
            }
            let member = self.member(&mut recipe, &mut known, uri, rendition.line)?;
            member.audio = true;
            member.name = Some(rendition.name.clone()).filter(|name| !name.is_empty());
            member.language.clone_from(&rendition.language);
        }
        let found = recipe.members.len() + others.len();
        recipe.left_out = too_many(self.path.as_str(), "playlists of pictures and sound", found, MOST_MEMBERS);
        let pictures = renditions.iter().filter(|rendition| rendition.kind == RenditionKind::Video);
        recipe.left_out.extend(pictures.filter_map(|rendition| self.other_pictures(rendition)).take(MOST_MEMBERS));
        self.subtitles(&mut recipe)?;
        Ok(recipe)
    }

    /// Returns the member of a recipe for a playlist. A new member is added.
    fn member<'r>(
        &self,
        recipe: &'r mut Recipe,
        known: &mut HashMap<ObjectPath, usize>,
        uri: &str,
        line: u32,
    ) -> Result<&'r mut Member, String> {
        let file = self.file(uri, line)?;
        if !names::is_playlist(file.file_name()) {
            return Err(format!("line {line}: {uri:?}: expected the name of a media playlist (.m3u8)"));
        }
        let next = recipe.members.len();
        let place = *known.entry(file.clone()).or_insert(next);
        if place == next {
            if next >= MOST_MEMBERS {
                return Err(format!("line {line}: found more than {MOST_MEMBERS} playlists, expected at most that"));
            }
            recipe.members.push(Member { video: false, audio: false, text: false, ..Member::whole(file) });
        }
        recipe.members.get_mut(place).ok_or_else(|| format!("line {line}: found no playlist"))
    }

    fn file(&self, uri: &str, line: u32) -> Result<ObjectPath, String> {
        uri::in_playlist(self.path, self.address, uri).map_err(|why| format!("line {line}: {why}"))
    }

    /// Returns whether sound within a variant is used, with its name and language. A rendition without a playlist of its own states these
    /// (RFC 8216 4.3.4.2.1).
    fn sound_within(&self, variant: &StoredVariant) -> (bool, Option<String>, Option<String>) {
        let mut group = self.group(variant.audio.as_deref()).peekable();
        if group.peek().is_none() {
            return (true, None, None);
        }
        match group.find(|rendition| rendition.uri.is_none()) {
            Some(Rendition { name, language, .. }) => {
                (true, Some(name.clone()).filter(|name| !name.is_empty()), language.clone())
            }
            None => (false, None, None),
        }
    }

    /// Returns the audio renditions of variants: the groups in the order of the variants, and defaults first.
    fn sounds(&self, variants: &[&StoredVariant]) -> Vec<&Rendition> {
        let mut sounds: Vec<&Rendition> = Vec::new();
        let mut groups: Vec<&str> = Vec::new();
        for group in variants.iter().filter_map(|variant| variant.audio.as_deref()) {
            if groups.contains(&group) {
                continue;
            }
            groups.push(group);
            let (first, others): (Vec<_>, Vec<_>) = self.group(Some(group)).partition(|rendition| rendition.is_default);
            sounds.extend(first.into_iter().chain(others));
        }
        sounds
    }

    /// Returns the audio renditions of a group; none without a group.
    fn group(&self, name: Option<&str>) -> impl Iterator<Item = &Rendition> {
        let sounds = self.found.renditions.iter().filter(|rendition| rendition.kind == RenditionKind::Audio);
        sounds.filter(move |rendition| name == Some(rendition.group.as_str()))
    }

    /// Warns about pictures that no variant has; `None` for an entry that names the pictures of a variant.
    fn other_pictures(&self, Rendition { line, uri, .. }: &Rendition) -> Option<String> {
        let uri = uri.as_deref().filter(|uri| self.found.variants.iter().all(|variant| variant.uri != *uri))?;
        Some(format!(
            "{}: line {line}: found EXT-X-MEDIA with TYPE=VIDEO, expected sound or subtitles: {uri} is left out. A title has the \
             pictures of its variants only, and other pictures are a title of their own",
            self.path
        ))
    }

    fn subtitles(&self, recipe: &mut Recipe) -> Result<(), String> {
        let (mut known, mut nameless) = (HashSet::new(), 0);
        for rendition in self.found.renditions.iter().filter(|rendition| rendition.kind == RenditionKind::Subtitles) {
            let line = rendition.line;
            let Some(uri) = &rendition.uri else {
                nameless += 1;
                if nameless <= MOST_MEMBERS {
                    let why = "found subtitles without the attribute URI, expected the URI of a playlist";
                    recipe.left_out.push(format!("{}: line {line}: {why}", self.path));
                }
                continue;
            };
            let path = self.file(uri, line)?;
            if !known.insert(path.clone()) || known.len() > MOST_MEMBERS {
                continue;
            }
            recipe.sidecars.push(SidecarFile {
                path,
                language: rendition.language.clone().unwrap_or_else(|| "und".to_owned()),
                name: rendition.name.clone(),
                forced: rendition.is_forced,
            });
        }
        let warnings = too_many(self.path.as_str(), "subtitles", known.len(), MOST_MEMBERS);
        recipe.left_out.extend(warnings);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_package::hls_playlist::{self, StoredPlaylist};

    fn recipe(lines: &str) -> Result<Recipe, String> {
        let StoredPlaylist::Multivariant(found) = hls_playlist::parse(&format!("#EXTM3U\n{lines}\n")).unwrap() else {
            panic!("a media playlist")
        };
        let path = ObjectPath::parse("films/show/main.m3u8").unwrap();
        ladder(&path, "/srv", &found).map_err(|error| error.to_string())
    }

    type Described<'a> = (&'a str, bool, bool, Option<&'a str>, Option<&'a str>);

    /// Path, use of video and audio, name and language of each file.
    fn members(recipe: &Recipe) -> Vec<Described<'_>> {
        let mut all = Vec::new();
        for Member { path, video, audio, name, language, .. } in &recipe.members {
            all.push((path.as_str(), *video, *audio, name.as_deref(), language.as_deref()));
        }
        all
    }

    #[test]
    fn variants_with_sound_are_a_ladder() {
        let found = recipe(
            "#EXT-X-STREAM-INF:BANDWIDTH=1,CODECS=\"mp4a.40.2\"\naudio.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=2,CODECS=\"avc1.4d,mp4a.40.2\"\n\
             low.m3u8?x=1\n#EXT-X-STREAM-INF:BANDWIDTH=9\nhigh/v.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=3\nlow.m3u8?x=2",
        );
        let found = found.unwrap();
        assert!(found.keeps_clock && !found.by_name && found.items.is_empty());
        let expected =
            [("films/show/high/v.m3u8", true, true, None, None), ("films/show/low.m3u8", true, true, None, None)];
        assert_eq!(members(&found), expected);
        let sound = recipe("#EXT-X-STREAM-INF:BANDWIDTH=1,CODECS=\"mp4a.40.2\"\na.m3u8").unwrap();
        assert_eq!(members(&sound), [("films/show/a.m3u8", true, true, None, None)]);
    }

    #[test]
    fn sound_and_subtitles_stand_beside_the_variants() {
        let found = recipe(
            "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"Deutsch\",LANGUAGE=\"de\",URI=\"de.m3u8\"\n\
             #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"English\",LANGUAGE=\"en\",DEFAULT=YES,URI=\"../en.m3u8\"\n\
             #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"unused\",NAME=\"x\",URI=\"x.m3u8\"\n\
             #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"w\",NAME=\"Within\",LANGUAGE=\"fr\"\n\
             #EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID=\"s\",NAME=\"English\",LANGUAGE=\"en\",FORCED=YES,URI=\"en.vtt.m3u8\"\n\
             #EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID=\"t\",NAME=\"English\",LANGUAGE=\"en\",URI=\"en.vtt.m3u8\"\n\
             #EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO=\"a\"\nlow.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=2,AUDIO=\"w\"\nhigh.m3u8",
        );
        let found = found.unwrap();
        let expected = [
            ("films/show/high.m3u8", true, true, Some("Within"), Some("fr")),
            ("films/show/low.m3u8", true, false, None, None),
            ("films/en.m3u8", false, true, Some("English"), Some("en")),
            ("films/show/de.m3u8", false, true, Some("Deutsch"), Some("de")),
        ];
        assert_eq!(members(&found), expected);
        let subtitles: Vec<_> =
            found.sidecars.iter().map(|file| (file.path.as_str(), &*file.language, &*file.name, file.forced)).collect();
        assert_eq!(subtitles, [("films/show/en.vtt.m3u8", "en", "English", true)]);
    }

    #[test]
    fn variants_that_are_no_playlists_of_the_place_are_refused() {
        let error = recipe("#EXT-X-STREAM-INF:BANDWIDTH=1\nfilm.mp4").unwrap_err();
        assert!(error.ends_with("line 3: \"film.mp4\": expected the name of a media playlist (.m3u8)"), "{error}");
        let error = recipe("#EXT-X-STREAM-INF:BANDWIDTH=1\n../../../v.m3u8").unwrap_err();
        assert!(error.contains("line 3: \"../../../v.m3u8\": found a path above the top of the place"), "{error}");
        let many: String = (0..=MOST_MEMBERS).map(|n| format!("#EXT-X-STREAM-INF:BANDWIDTH=1\n{n}.m3u8\n")).collect();
        assert!(recipe(&many).unwrap_err().contains("found more than 256 playlists"));
    }

    #[test]
    fn a_title_plays_without_other_pictures_and_subtitles_that_are_nowhere() {
        // RFC 8216 8.7, with the codecs filled in.
        let rfc = "#EXT-X-MEDIA:TYPE=VIDEO,GROUP-ID=\"low\",NAME=\"Main\",DEFAULT=YES,URI=\"low/main/audio-video.m3u8\"\n\
             #EXT-X-MEDIA:TYPE=VIDEO,GROUP-ID=\"low\",NAME=\"Centerfield\",DEFAULT=NO,URI=\"low/centerfield/audio-video.m3u8\"\n\
             #EXT-X-MEDIA:TYPE=VIDEO,GROUP-ID=\"low\",NAME=\"Dugout\",DEFAULT=NO,URI=\"low/dugout/audio-video.m3u8\"\n\
             #EXT-X-STREAM-INF:BANDWIDTH=1280000,CODECS=\"avc1.4d401e,mp4a.40.2\",VIDEO=\"low\"\nlow/main/audio-video.m3u8\n\
             #EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID=\"s\",NAME=\"n\"";
        let found = recipe(rfc).unwrap();
        assert_eq!(members(&found), [("films/show/low/main/audio-video.m3u8", true, true, None, None)]);
        let [centerfield, dugout, subtitles] = &found.left_out[..] else { panic!("{:?}", found.left_out) };
        assert!(
            centerfield.contains("main.m3u8: line 3: found EXT-X-MEDIA with TYPE=VIDEO, expected sound"),
            "{centerfield}"
        );
        assert!(dugout.contains("low/dugout/audio-video.m3u8 is left out"), "{dugout}");
        assert!(subtitles.contains("line 7: found subtitles without the attribute URI"), "{subtitles}");
    }

    #[test]
    fn a_title_plays_without_the_last_of_too_many_renditions() {
        let variant = "#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO=\"a\"\nv.m3u8";
        let media = |kind: &str, n: usize| {
            format!("#EXT-X-MEDIA:TYPE={kind},GROUP-ID=\"a\",NAME=\"{n}\",URI=\"{kind}{n}.m3u8\"\n")
        };
        let both: String = (0..300).map(|n| media("AUDIO", n) + &media("SUBTITLES", n)).collect();
        let found = recipe(&format!("{both}{variant}")).unwrap();
        assert_eq!((found.members.len(), found.sidecars.len()), (MOST_MEMBERS, MOST_MEMBERS));
        let told = [
            "films/show/main.m3u8: found 301 playlists of pictures and sound, expected at most 256: 45 are left out",
            "films/show/main.m3u8: found 300 subtitles, expected at most 256: 44 are left out",
        ];
        assert_eq!(found.left_out, told);
    }
}
