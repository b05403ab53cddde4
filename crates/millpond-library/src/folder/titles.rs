//! Which files of a folder are one title, judged by their names.
//!
//! Names of a title's renditions differ in size, bitrate, codec, kind of track and language. Words for these are removed
//! from each name, and files with the same rest are one title. `E01` and `E02` are no such words.

use crate::names::{is_sound, title_stem};
use millpond_package::language;
use std::collections::{HashMap, HashSet};

/// Heights of pictures that stand in names without a `p`.
const HEIGHTS: &[&str] =
    &["144", "180", "240", "270", "288", "360", "432", "480", "540", "576", "720", "1080", "1440", "2160", "4320"];

/// Words for renditions and their tracks.
#[rustfmt::skip]
const WORDS: &[&str] = &[
    "2k", "4k", "8k", "a", "audio", "aud", "commentary", "default", "description", "dub", "dubbed", "fhd", "hd", "hi", "high",
    "highest", "hq", "large", "ld", "lo", "low", "lowest", "lq", "main", "medium", "mid", "middle", "mobile", "original",
    "qhd", "quality", "sd", "small", "sound", "text", "uhd", "v", "vid", "video", "web", "xhd", "kbps",
];

/// Words for codings. A name of these alone is that of a sample of a coding, and no rendition.
#[rustfmt::skip]
const CODINGS: &[&str] = &[
    "aac", "ac3", "av1", "avc", "avc1", "cmaf", "dash", "eac3", "flac", "fmp4", "frag", "fragmented", "h264", "h265", "hdr",
    "hdr10", "hevc", "hlg", "hls", "mono", "mp3", "opus", "sdr", "stereo", "surround", "vp8", "vp9", "x264", "x265", "8bit",
    "10bit",
];

/// Names of languages in their own tongue, as in file names.
#[rustfmt::skip]
const OWN_NAMES: &[&str] = &[
    "cestina", "cesky", "dansk", "deutsch", "espanol", "español", "francais", "français", "hrvatski", "italiano", "latino",
    "magyar", "nederlands", "norsk", "polski", "portugues", "português", "romana", "slovenski", "suomi", "svenska",
    "turkce", "türkçe", "русский",
];

/// Language codes that mean a day or a month in names of broadcasts.
const DATES: &[&str] = &["mon", "sun", "mar", "may"];

/// Files of one title, as indices of the list of names.
pub(crate) type Group = Vec<usize>;

/// Groups the media files of a folder by title, in the order of their first files, in linear time.
///
/// Where all video is one title, sound belongs to it whatever its name is: `film.mp4` and `commentary of the
/// director.m4a`. Names of nothing but such words are one title where the folder has no other video, and each says more
/// than a coding: `360p.mp4` and `720p.mp4`, but not `av1_1080p_aac.mp4` and `opus.mp4`.
pub(crate) fn titles(names: &[&str]) -> Vec<Group> {
    let mut groups = by_key(names, |_| true);
    if groups.len() < 2 || !names.iter().any(|name| is_sound(name)) {
        return groups;
    }
    let pictures = by_key(names, |name| !is_sound(name));
    if pictures.len() == 1 {
        groups = vec![(0..names.len()).collect()];
    }
    groups
}

fn by_key(names: &[&str], counts: impl Fn(&str) -> bool) -> Vec<Group> {
    let keys: Vec<(usize, Key)> =
        names.iter().enumerate().filter(|(_, name)| counts(name)).map(|(place, name)| (place, Key::of(name))).collect();
    // `clip 239`, `clip 240`: where one number is no height, none is.
    let counted = keys.iter().filter(|(_, key)| key.number.as_ref().is_some_and(|n| !HEIGHTS.contains(&n.as_str())));
    let counted: HashSet<&str> = counted.map(|(_, key)| key.words.as_str()).collect();
    // Of files with the same name in several containers, none is a rendition of another: they are copies, or different films.
    let mut known = HashSet::new();
    let twins = keys.iter().filter(|(_, key)| !known.insert((key.base.as_str(), key.is_sound)));
    let twins: HashSet<&str> = twins.map(|(_, key)| key.words.as_str()).collect();
    let joins_bare = keys.iter().all(|(_, key)| key.words.is_empty() && key.says_rendition);
    let mut groups: Vec<Group> = Vec::new();
    let mut known = HashMap::new();
    for (place, key) in &keys {
        let number = key.number.as_deref().filter(|_| counted.contains(key.words.as_str()));
        let alone = Some(*place).filter(|_| key.words.is_empty() && !joins_bare);
        let container = Some(key.extension.as_str()).filter(|_| twins.contains(key.words.as_str()));
        let group = *known.entry((key.words.as_str(), number, alone, container)).or_insert(groups.len());
        match groups.get_mut(group) {
            Some(group) => group.push(*place),
            None => groups.push(vec![*place]),
        }
    }
    groups
}

/// The part of a name that is not about the rendition.
#[derive(Debug)]
struct Key {
    /// The name without its extension, in lower case.
    base: String,
    extension: String,
    is_sound: bool,
    /// Its words in lower case, without the last number.
    words: String,
    /// The last number that stands alone: the height of a rendition, or that of an episode.
    number: Option<String>,
    /// Whether a word for more than a coding was removed, or the number may be a height.
    says_rendition: bool,
}

impl Key {
    fn of(name: &str) -> Self {
        let base = title_stem(name);
        let extension = name.get(base.len()..).unwrap_or_default().to_lowercase();
        let base = base.to_lowercase();
        let words: Vec<&str> = base.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
        let alone = words.len() == 1 && !is_sound(name);
        let mut kept: Vec<&str> = Vec::new();
        let (mut place, mut says_rendition) = (0, false);
        while let Some(word) = words.get(place) {
            let next = words.get(place + 1).copied().unwrap_or_default();
            place += 1;
            if is_fraction(word, next) {
                (place, says_rendition) = (place + 1, true);
            } else if is_rendition(word) || (!alone && is_language(word)) {
                // `It.mp4` and `No.mp4` are films, though these are languages too.
                says_rendition = true;
            } else if !CODINGS.contains(word) {
                kept.push(without_height(word));
            }
        }
        let number = kept.iter().rposition(|word| is_number(word)).map(|place| kept.remove(place).to_owned());
        let says_rendition = says_rendition || number.is_some();
        let words = kept.join(" ");
        Self { is_sound: is_sound(name), extension, words, number, says_rendition, base }
    }
}

/// Whether two words are a number with a point: 5.1 channels, 2.5 Mbit/s.
fn is_fraction(word: &str, next: &str) -> bool {
    let digit = word.len() == 1 && word.bytes().all(|b| b.is_ascii_digit());
    digit && ((matches!(word, "5" | "7") && next == "1") || amount(next, &["m", "mb", "mbps", "mbit"]))
}

fn is_rendition(word: &str) -> bool {
    WORDS.contains(&word)
        || amount(
            word,
            &["p", "i", "k", "kb", "kbps", "kbit", "kbits", "m", "mb", "mbps", "mbit", "fps", "ch", "hz", "khz"],
        )
        || word.split_once('x').is_some_and(|(width, height)| is_size(width) && is_size(height))
        || word
            .split_once('p')
            .is_some_and(|(height, rate)| is_size(height) && matches!(rate.len(), 2 | 3) && is_number(rate))
}

/// A number with a unit behind it.
fn amount(word: &str, units: &[&str]) -> bool {
    units.iter().any(|unit| word.strip_suffix(unit).is_some_and(|number| number.len() <= 6 && is_number(number)))
}

fn is_size(text: &str) -> bool {
    (2..=5).contains(&text.len()) && is_number(text)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn is_language(word: &str) -> bool {
    word == "und" || (language::is_known(word) && !DATES.contains(&word)) || OWN_NAMES.contains(&word)
}

/// `film720p`: a height may stand right behind a word.
fn without_height(word: &str) -> &str {
    let Some(rest) = word.strip_suffix('p') else { return word };
    let height = HEIGHTS.iter().filter_map(|height| rest.strip_suffix(height)).min_by_key(|stem| stem.len());
    height.filter(|stem| stem.ends_with(char::is_alphabetic)).unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(names: &[&str]) -> Vec<Vec<usize>> {
        titles(names)
    }

    #[test]
    fn ladders_are_one_title() {
        for names in [
            &["360p.mp4", "720p.mp4", "1080p60.mp4"][..],
            &["film_240.mp4", "film_480.mp4", "film_de.m4a"],
            &["film-600k.mp4", "film-1500k.mp4", "film-2.5M.mp4"],
            &["Film (1080p, HEVC).mov", "Film (480p, H264).mp4"],
            &["film_1920x1080.mp4", "film_640x360.mp4"],
            &["film_video.mp4", "film_audio.m4a", "film_audio_fra.mp4"],
            &["film720p.mp4", "film360p.mp4"],
            &["Film.en.mp4", "film.de.mp4", "film.mp4"],
            &["480p.mp4", "240p.mp4", "deutsch.m4a"],
            &["film.mp4", "the director speaks.m4a", "5.1.m4a"],
            &["film hd.mp4", "film sd.mp4", "film_low.dref.mp4"],
            &["a.m4a", "v.mp4"],
            &["av1_1080p_aac.mp4", "h264_720p_aac.mp4", "opus.m4a"],
            &["2001 a film 1080.mp4", "2001 a film 720.mp4"],
        ] {
            assert_eq!(groups(names).len(), 1, "{names:?}: {:?}", titles(names));
        }
    }

    #[test]
    fn episodes_parts_and_other_films_are_not() {
        for names in [
            &["Show.S01E01.720p.mp4", "Show.S01E02.720p.mp4"][..],
            &["E01.mp4", "E02.mp4"],
            &["1.mp4", "2.mp4"],
            &["part1.mp4", "part2.mp4"],
            &["film.mp4", "film trailer.mp4"],
            &["Film (1931).mp4", "Film (1958).mp4"],
            &["It.mp4", "No.mp4"],
            &["IMG_0001.MOV", "IMG_0002.MOV"],
            &["track 01.m4a", "track 02.m4a"],
            &["folge eins.mp4", "folge zwei.mp4"],
            &["news_mon.mp4", "news_sun.mp4"],
            &["clip 239.mp4", "clip 240.mp4", "clip 480.mp4"],
            &["第1話.mp4", "第2話.mp4"],
            &["av1_1080p_aac.mp4", "opus.mp4", "h264_720p_aac.mp4", "flac.m4a"],
            &["aac.mp4", "opus.mp4"],
            &["360p.mp4", "720p.mp4", "trailer.mp4"],
            &["Solaris.mkv", "Solaris.mp4", "solaris.ts"],
            &["song.m4a", "song.opus", "song.mp3"],
        ] {
            assert_eq!(groups(names).len(), names.len(), "{names:?}: {:?}", titles(names));
        }
    }

    #[test]
    fn a_title_in_two_containers_is_two_titles() {
        assert_eq!(groups(&["f_360p.mp4", "f_720p.mp4", "f_720p.mkv", "f_360p.mkv"]), [vec![0, 1], vec![2, 3]]);
        assert_eq!(groups(&["f_360p.webm", "f_720p.mp4"]), [[0, 1]], "renditions may have containers of their own");
        assert_eq!(groups(&["film.mp4", "film.m4a"]), [[0, 1]], "sound of the picture");
    }

    #[test]
    fn a_season_with_ladders_has_a_title_an_episode() {
        let names =
            ["S01E01_360p.mp4", "S01E01_720p.mp4", "S01E01_deu.m4a", "S01E02_360p.mp4", "S01E02_720p.mp4", "extra.m4a"];
        assert_eq!(groups(&names), [vec![0, 1, 2], vec![3, 4], vec![5]]);
    }

    #[test]
    fn sixty_thousand_names_take_no_time_to_speak_of() {
        let names: Vec<String> = (0..60_000).map(|n| format!("clip {n} 720p.mp4")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let started = std::time::Instant::now();
        assert_eq!(titles(&names).len(), 60_000);
        assert!(started.elapsed() < std::time::Duration::from_secs(60));
    }
}
