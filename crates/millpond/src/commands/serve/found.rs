//! The start's report on the places: assets with their URLs, and media that is not served.

use millpond_library::{Survey, uri::encode};
use millpond_logging::escape::Escaping;
use std::fmt::{self, Write as _};

/// Most assets of each place that are told.
pub(super) const MOST_ASSETS: usize = 5;
/// Most assets of all places that are told.
const MOST_OF_ALL: usize = 10;
/// Places of whose first asset all URLs are told. Each other asset has one.
const MOST_PLACES: usize = 2;

/// Appends lines about all places.
pub(super) fn tell(text: &mut String, surveys: &[Survey], base: &str, rtsp: &str) -> fmt::Result {
    let mut room = MOST_OF_ALL;
    for (index, survey) in surveys.iter().enumerate() {
        let shown = survey.assets.len().min(room);
        room -= shown;
        assets(text, (survey, shown), index < MOST_PLACES, (base, rtsp))?;
        place(text, survey)?;
    }
    Ok(())
}

/// Appends lines about the first assets of a place, `shown` of them.
fn assets(
    text: &mut String,
    (survey, shown): (&Survey, usize),
    is_detailed: bool,
    (base, rtsp): (&str, &str),
) -> fmt::Result {
    for (index, asset) in survey.assets.iter().take(shown).enumerate() {
        let path = encode(asset);
        let slash = if path.is_empty() { "" } else { "/" };
        writeln!(text, "  {}", Escaped(if asset.is_empty() { "all files as one title" } else { asset }))?;
        writeln!(text, "    HLS     {base}/{path}{slash}index.m3u8")?;
        if is_detailed && index == 0 {
            writeln!(text, "    HLS TS  {base}/{path}{slash}ts/index.m3u8")?;
            writeln!(text, "    DASH    {base}/{path}{slash}index.mpd")?;
            writeln!(text, "    RTSP    {rtsp}/{path}")?;
        }
    }
    let more = survey.more + survey.assets.len() - shown;
    let assets = if more == 1 { "asset" } else { "assets" };
    let (than, counted) = (if survey.is_bounded { "more than " } else { "" }, Counted(survey));
    match (more, shown) {
        (0, _) => Ok(()),
        (_, 0) => writeln!(text, "  {than}{more} {assets} of {}{counted}: {base}/", Escaped(&survey.place)),
        _ => writeln!(text, "  and {than}{more} more {assets}{counted}: {base}/"),
    }
}

/// The folders whose assets were counted, where these are not all.
struct Counted<'a>(&'a Survey);

impl fmt::Display for Counted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Survey { is_bounded: true, .. } | Survey { folders: 0, .. } => Ok(()),
            Survey { listed: 0 | 1, .. } => f.write_str(" in the top folder, without those below it"),
            Survey { listed, .. } => write!(f, " in the first {listed} folders, without the others"),
        }
    }
}

/// Appends lines about the other files of a place.
fn place(text: &mut String, survey: &Survey) -> fmt::Result {
    let name = if survey.place.is_empty() { String::new() } else { format!("{}: ", survey.place) };
    for file in &survey.copying {
        writeln!(text, "  {}: still being copied; it plays when all of it is there", Escaped(file))?;
    }
    for (format, (count, first)) in &survey.left_out {
        let shown = Escaped(first);
        let files = match count {
            1 => format!("{shown} is"),
            2 => format!("{shown} and 1 file more are"),
            count => format!("{shown} and {} files more are", count - 1),
        };
        writeln!(text, "  left out: {files} {}", format.name())?;
        let file = first.rsplit('/').next().unwrap_or(first);
        if let Some(command) = format.command(file) {
            writeln!(text, "    to make an MP4 file of it: {command}")?;
        }
    }
    if let Some(why) = &survey.failed {
        writeln!(text, "  {name}can't be listed, assets play by their paths: {why}")?;
    } else if survey.assets.is_empty() && survey.copying.is_empty() {
        writeln!(text, "  {name}found no media that is served (MP4, MOV, MKV, WebM ...), {}", rest(survey))?;
    }
    Ok(())
}

/// A name in one line, whatever is in it.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl std::fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        Escaping::line(f).write_str(self.0)
    }
}

/// Returns a sentence about the other files.
fn rest(survey: &Survey) -> String {
    let counted = |count: usize, one: &str, many: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        count => Some(format!("{count} {many}")),
    };
    let left_out = survey.left_out.values().map(|(count, _)| count).sum();
    let parts = [
        counted(left_out, "media file in another format", "media files in another format"),
        counted(survey.others, "other file", "other files"),
        counted(survey.folders, "folder that was not looked into", "folders that were not looked into"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "and nothing else".to_owned() } else { format!("but {}", parts.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn every_kind_of_place_has_its_lines() {
        let lines = |survey: Survey| {
            let mut text = String::new();
            tell(&mut text, &[survey], "http://h", "rtsp://h").unwrap();
            text
        };
        let empty = lines(Survey { place: "films".into(), ..Survey::default() });
        assert_eq!(empty, "  films: found no media that is served (MP4, MOV, MKV, WebM ...), and nothing else\n");
        let nested = lines(Survey { folders: 3, others: 1, ..Survey::default() });
        assert!(nested.ends_with("but 1 other file, 3 folders that were not looked into\n"), "{nested}");
        let film = Survey { assets: vec!["a film.mp4".into()], more: 2, ..Survey::default() };
        let counted = |folders, listed, is_bounded| lines(Survey { folders, listed, is_bounded, ..film.clone() });
        for (survey, end) in [
            (counted(0, 9, false), "  and 2 more assets: http://h/\n"),
            (counted(7, 1, false), "  and 2 more assets in the top folder, without those below it: http://h/\n"),
            (counted(7, 40, false), "  and 2 more assets in the first 40 folders, without the others: http://h/\n"),
            (counted(7, 40, true), "  and more than 2 more assets: http://h/\n"),
        ] {
            assert!(survey.ends_with(end), "{survey}");
        }
        let film = lines(film);
        assert!(film.contains("  a film.mp4\n") && film.contains("http://h/a%20film.mp4/index.m3u8"), "{film}");
        assert!(film.ends_with("  and 2 more assets: http://h/\n"), "{film}");
        let left_out = BTreeMap::from([(millpond_media::Foreign::Asf, (3, "x/a.wmv".to_owned()))]);
        let left_out = lines(Survey { left_out, ..Survey::default() });
        assert!(left_out.contains("left out: x/a.wmv and 2 files more are Windows Media (ASF)\n"), "{left_out}");
        assert!(left_out.contains("ffmpeg -i a.wmv ") && left_out.contains("but 3 media files in another format"));
        let first = film.matches("a%20film").count();
        assert_eq!(first, 4, "{film}");
        let whole = lines(Survey { assets: vec![String::new()], ..Survey::default() });
        assert!(whole.contains("http://h/index.m3u8"), "{whole}");
    }

    #[test]
    fn many_places_take_a_screenful() {
        let assets = |place: &str| ["1", "2", "3", "4", "5"].map(|name| format!("{place}/{name}.mp4")).to_vec();
        let survey = |place: &str| Survey { place: place.into(), assets: assets(place), more: 2, ..Survey::default() };
        let mut text = String::new();
        tell(&mut text, &["a", "b", "c"].map(survey), "http://h", "rtsp://h").unwrap();
        assert_eq!(text.matches("rtsp://").count(), 2, "{text}");
        assert!(
            text.contains("  b/5.mp4\n    HLS     http://h/b/5.mp4/index.m3u8\n  and 2 more assets: http://h/\n"),
            "{text}"
        );
        assert!(text.ends_with("  7 assets of c: http://h/\n"), "{text}");
        assert!(text.lines().count() < 30, "{text}");
    }
}
