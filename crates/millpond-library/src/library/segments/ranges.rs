//! The files of a playlist, and the ranges of them that it names.

use crate::{names, uri};
use bytes::Bytes;
use millpond_media::ByteRange;
use millpond_package::hls_playlist::{self, SegmentRange, StoredPlaylist, Stretch};
use millpond_store::{JoinedRanges, JoinedSource, ObjectPath};
use std::collections::HashMap;

/// Most files of a playlist: each takes a request before the first segment is served. A day of segments has 14,400 of six seconds.
const MOST_FILES: usize = 16_384;
/// Most stretches of a playlist: as many as a title has items.
const MOST_STRETCHES: usize = 256;
/// Longest init section of a playlist with several stretches, in bytes. Each stretch reads its own again.
const MOST_INIT: u64 = 1 << 20;
/// Extensions of segments without a container of tracks.
const BARE: [&str; 8] = ["aac", "adts", "mp3", "ac3", "ec3", "vtt", "webvtt", "srt"];

/// Media that a playlist is read for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::library) enum SegmentKind {
    /// Tracks in transport streams or fragmented MP4.
    Tracks,
    /// WebVTT.
    Text,
}

/// The content of a playlist.
#[derive(Debug, Default)]
pub(super) struct Segments {
    /// Path of each file, and the first line that names it.
    pub(super) files: Vec<(ObjectPath, u32)>,
    stretches: Vec<NamedStretch>,
}

/// A stretch of segments.
#[derive(Debug, Default)]
struct NamedStretch {
    init: Option<NamedRange>,
    segments: Vec<NamedRange>,
}

/// A range of a file that a line names.
#[derive(Debug, PartialEq, Eq)]
struct NamedRange {
    line: u32,
    /// Place of the file in the list of files.
    file: usize,
    /// Bytes of the file; `None` for all of them.
    bytes: Option<ByteRange>,
}

/// Numbers the files of a playlist.
#[derive(Default)]
struct Numbering {
    known: HashMap<ObjectPath, usize>,
    files: Vec<(ObjectPath, u32)>,
}

impl Segments {
    /// Reads the playlist at `path`, in a place whose storage has an `address`. The error has no path.
    pub(super) fn read(path: &ObjectPath, address: &str, kind: SegmentKind, text: &Bytes) -> Result<Self, String> {
        let text = String::from_utf8_lossy(text);
        let found = match hls_playlist::parse(&text).map_err(|error| error.to_string())? {
            StoredPlaylist::Media(stretches) => stretches,
            StoredPlaylist::Multivariant(_) => {
                let found = "found a multivariant playlist, expected a media playlist";
                return Err(format!("{found}. The multivariant playlist is a title of its own"));
            }
        };
        let mut numbering = Numbering::default();
        let mut stretches = Vec::with_capacity(found.len().min(MOST_STRETCHES));
        for Stretch { map, segments } in found {
            let line = segments.first().map_or(0, |segment| segment.line);
            if stretches.len() >= MOST_STRETCHES {
                return Err(format!(
                    "line {line}: found more than {MOST_STRETCHES} stretches between discontinuities, expected at most that"
                ));
            }
            if let (Some(map), SegmentKind::Text) = (&map, kind) {
                return Err(format!("line {}: found an init section, expected segments of WebVTT", map.line));
            }
            let mut named = |range: SegmentRange| -> Result<NamedRange, String> {
                let SegmentRange { line, uri, bytes } = range;
                let file = uri::in_playlist(path, address, &uri).and_then(|file| checked(file, &uri, kind));
                let file = numbering.number(file.map_err(|why| format!("line {line}: {why}"))?, line)?;
                Ok(NamedRange { line, file, bytes })
            };
            let init = map.map(&mut named).transpose()?;
            let segments = segments.into_iter().map(named).collect::<Result<_, _>>()?;
            stretches.push(NamedStretch { init, segments });
        }
        Ok(Self { files: numbering.files, stretches })
    }

    /// Returns the ranges of open files for each stretch, with the line at which it begins.
    pub(super) fn joined(&self, sources: &[JoinedSource]) -> Result<Vec<(u32, JoinedRanges)>, String> {
        let mut all = Vec::with_capacity(self.stretches.len());
        // Bytes of all segments.
        let mut found: u64 = 0;
        for NamedStretch { init, segments } in &self.stretches {
            let mut joined = JoinedRanges::default();
            if let Some(init) = init {
                self.push(&mut joined, init, sources)?;
                if self.stretches.len() > 1 && joined.length() > MOST_INIT {
                    let (line, len) = (init.line, joined.length());
                    return Err(format!(
                        "line {line}: found an init section of {len} bytes, expected at most {MOST_INIT} beside discontinuities"
                    ));
                }
            }
            let begin = joined.length();
            for segment in segments {
                self.push(&mut joined, segment, sources)?;
            }
            found = found.saturating_add(joined.length() - begin);
            let line = segments.first().map_or(0, |segment| segment.line);
            if joined.length() == begin {
                return Err(format!("line {line}: found segments without bytes, expected media"));
            }
            all.push((line, joined));
        }
        // A short playlist that names its files again and again would claim any length.
        let files = sources.iter().map(JoinedSource::length).fold(0, u64::saturating_add);
        if found > files {
            return Err(format!("found {found} bytes of segments in files of {files} bytes, expected each byte once"));
        }
        Ok(all)
    }

    fn push(&self, joined: &mut JoinedRanges, range: &NamedRange, sources: &[JoinedSource]) -> Result<(), String> {
        let NamedRange { line, file, bytes } = range;
        let Some((source, (path, _))) = sources.get(*file).zip(self.files.get(*file)) else { return Ok(()) };
        let len = source.length();
        let ByteRange { start, end } = bytes.unwrap_or(ByteRange::new(0, len));
        if end > len {
            return Err(format!("line {line}: {path}: found {len} bytes, expected the bytes {start} to {end}"));
        }
        joined.push(source, start..end);
        Ok(())
    }
}

impl Numbering {
    /// Returns the number of a file that a line names.
    fn number(&mut self, file: ObjectPath, line: u32) -> Result<usize, String> {
        let next = self.files.len();
        let number = *self.known.entry(file.clone()).or_insert(next);
        if number == next {
            if next >= MOST_FILES {
                return Err(format!("line {line}: found more than {MOST_FILES} files, expected at most that"));
            }
            self.files.push((file, line));
        }
        Ok(number)
    }
}

/// Returns the path of a segment, if its name is not that of another kind of file.
fn checked(path: ObjectPath, uri: &str, kind: SegmentKind) -> Result<ObjectPath, String> {
    let name = path.file_name().to_ascii_lowercase();
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    if names::is_playlist(&name) {
        return Err(format!("{uri:?}: found a playlist, expected a media segment"));
    }
    if kind == SegmentKind::Tracks && BARE.contains(&extension) {
        return Err(format!(
            "{uri:?}: found a segment without container (.{extension}), expected transport streams or fragmented MP4"
        ));
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_as(lines: &str, kind: SegmentKind) -> Result<Segments, String> {
        let text = format!("#EXTM3U\n#EXT-X-TARGETDURATION:4\n{lines}\n#EXT-X-ENDLIST\n");
        Segments::read(&ObjectPath::parse("films/show.m3u8").unwrap(), "/srv", kind, &Bytes::from(text))
    }

    fn read(lines: &str) -> Result<Segments, String> {
        read_as(lines, SegmentKind::Tracks)
    }

    /// The lines of the ranges of each stretch, and the numbers of their files.
    fn order(segments: &Segments) -> Vec<Vec<(u32, usize)>> {
        let of = |stretch: &NamedStretch| {
            stretch.init.iter().chain(&stretch.segments).map(|range| (range.line, range.file)).collect()
        };
        segments.stretches.iter().map(of).collect()
    }

    #[test]
    fn files_are_opened_once() {
        let segments = read(
            "#EXT-X-MAP:URI=\"s/init.mp4\"\n./s/a%201.m4s?token=1\ns/2.m4s\n#EXT-X-DISCONTINUITY\n../films/s/a%201.m4s?token=2",
        );
        let segments = segments.unwrap();
        let files: Vec<_> = segments.files.iter().map(|(path, line)| (path.as_str(), *line)).collect();
        assert_eq!(files, [("films/s/init.mp4", 3), ("films/s/a 1.m4s", 4), ("films/s/2.m4s", 5)]);
        assert_eq!(order(&segments), [vec![(3, 0), (4, 1), (5, 2)], vec![(3, 0), (7, 1)]]);
    }

    #[test]
    fn names_that_are_no_segments_of_the_place_are_refused() {
        let place = "expected a file of the playlist's place";
        for (line, expected) in [
            ("../../up.ts", format!("line 3: \"../../up.ts\": found a path above the top of the place, {place}")),
            ("https://b.example/1.ts", format!("line 3: \"https://b.example/1.ts\": found another server, {place}")),
            ("%ff.ts", "line 3: \"%ff.ts\" is not UTF-8".to_owned()),
            ("show.m3u8?x", "line 3: \"show.m3u8?x\": found a playlist, expected a media segment".to_owned()),
            (
                "1.vtt",
                "line 3: \"1.vtt\": found a segment without container (.vtt), expected transport streams or fragmented MP4"
                    .to_owned(),
            ),
        ] {
            assert_eq!(read(line).unwrap_err(), expected);
        }
        let many: String = (0..=MOST_FILES).map(|number| format!("{number}.ts\n")).collect();
        assert_eq!(read(&many).unwrap_err(), "line 16387: found more than 16384 files, expected at most that");
        let many = "1.ts\n#EXT-X-DISCONTINUITY\n".repeat(MOST_STRETCHES + 1);
        let error = read(&many).unwrap_err();
        assert_eq!(error, "line 515: found more than 256 stretches between discontinuities, expected at most that");
        let text = Bytes::from("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nlow.m3u8\n");
        let path = ObjectPath::parse("main.m3u8").unwrap();
        let error = Segments::read(&path, "/srv", SegmentKind::Tracks, &text).unwrap_err();
        assert!(error.starts_with("found a multivariant playlist, expected a media playlist"), "{error}");
    }

    #[test]
    fn subtitles_are_segments_without_an_init_section() {
        assert_eq!(read_as("1.vtt\n2.webvtt", SegmentKind::Text).unwrap().files.len(), 2);
        let error = read_as("#EXT-X-MAP:URI=\"i.mp4\"\n1.m4s", SegmentKind::Text).unwrap_err();
        assert_eq!(error, "line 3: found an init section, expected segments of WebVTT");
    }
}
