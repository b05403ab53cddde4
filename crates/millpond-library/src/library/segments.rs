//! The segments of an HLS playlist as one object: joined in order, transport streams are one transport stream, and an init section with
//! fragments is one fragmented MP4 file.

use crate::{
    error::{IndexError, LibraryError},
    library::{Library, building::beside, index::HEAD},
    names,
};
use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use millpond_media::ByteRange;
use millpond_package::hls_playlist::{self, MOST_BYTES, SegmentRange, StoredPlaylist};
use millpond_store::{JoinedRanges, JoinedSource, Object, ObjectPath, OriginError};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

/// Most files of a playlist: each takes a request before the first segment is served. A day of segments has 14,400 of six seconds.
const MOST_FILES: usize = 16_384;
/// Files that are opened at a time.
const AT_ONCE: usize = 16;
/// Files of which the requests are prepared together.
const BATCH: usize = 256;
/// Bytes of memory for each byte of a playlist: the text, and a range for each of its lines.
const MEMORY_A_BYTE: u64 = 16;
/// Most playlists that an error names.
const MOST_NAMED: usize = 8;
/// Extensions of segments without a container of tracks.
const BARE: [&str; 8] = ["aac", "adts", "mp3", "ac3", "ec3", "vtt", "webvtt", "srt"];

/// A playlist, and its segments as one object.
pub(super) struct JoinedPlaylist {
    pub(super) playlist: Arc<Object>,
    pub(super) object: Arc<Object>,
    /// Offsets at which its segments begin.
    pub(super) starts: Arc<[u64]>,
    /// Bytes of memory that the list of segments takes.
    pub(super) heap_bytes: u64,
}

/// The files of a playlist, and the ranges of them that it names.
#[derive(Debug, Default)]
struct Segments {
    /// Path of each file, and the first line that names it.
    files: Vec<(ObjectPath, u32)>,
    ranges: Vec<NamedRange>,
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

impl Library {
    /// Opens a playlist and all of its segments, some at a time.
    pub(super) async fn joined(&self, place: &str, path: &ObjectPath) -> Result<JoinedPlaylist, LibraryError> {
        let wrong = |why: String| LibraryError::Manifest { manifest: path.to_string(), why };
        let playlist = self.store.open(place, path).await?;
        let len = playlist.meta().len;
        if len > MOST_BYTES as u64 {
            return Err(wrong(format!("it has {len} bytes, expected at most {MOST_BYTES} in an HLS playlist")));
        }
        let refused = |error| LibraryError::Refused { asset: path.to_string(), error };
        let _charge = self.pool.charge(len * MEMORY_A_BYTE).await.map_err(refused)?;
        let text = self.store.read_all(&playlist, 0..len).await?;
        let of = path.clone();
        let segments = self.job(path, move || Segments::read(&of, &text)).await?.map_err(wrong)?;
        let sources = self.sources_of(place, &segments).await?;
        let sources = sources.map_err(wrong)?;
        let ranges = self.job(path, move || segments.joined(&sources)).await?.map_err(wrong)?;
        let (starts, heap_bytes) = (ranges.starts(), ranges.heap_bytes());
        let object = self.store.joined(&playlist, ranges);
        Ok(JoinedPlaylist { playlist, object, starts, heap_bytes })
    }

    /// Opens the files of a playlist, and notes their versions. The inner error names a missing file.
    async fn sources_of(
        &self,
        place: &str,
        segments: &Segments,
    ) -> Result<Result<Vec<JoinedSource>, String>, LibraryError> {
        let mut sources = Vec::with_capacity(segments.files.len());
        for batch in segments.files.chunks(BATCH) {
            let opening: Vec<_> = batch.iter().map(|(path, _)| self.store.open_head(place, path, HEAD)).collect();
            let mut opened = stream::iter(opening).buffered(AT_ONCE);
            for (path, line) in batch {
                match opened.next().await {
                    Some(Ok(object)) => sources.push(JoinedSource::of(&object)),
                    // A link that leads out of the place is said to be absent, as elsewhere.
                    Some(Err(
                        OriginError::NotFound { .. } | OriginError::NotAFile { .. } | OriginError::Outside { .. },
                    ))
                    | None => {
                        return Ok(Err(format!(
                            "line {line}: {path}: not found, expected a file with the segment at that path"
                        )));
                    }
                    Some(Err(error)) => return Err(LibraryError::Index(IndexError::Origin(error))),
                }
            }
        }
        Ok(Ok(sources))
    }
}

impl Segments {
    /// Reads the playlist at `path`. The error has no path.
    fn read(path: &ObjectPath, text: &Bytes) -> Result<Self, String> {
        let text = String::from_utf8_lossy(text);
        let ranges = match hls_playlist::parse(&text).map_err(|error| error.to_string())? {
            StoredPlaylist::Media(ranges) => ranges,
            StoredPlaylist::Multivariant(names) => return Err(multivariant(&names)),
        };
        let mut segments = Self::default();
        let mut known = HashMap::new();
        for SegmentRange { line, uri, bytes } in ranges {
            let found = beside(path, &uri, "the playlist").and_then(|found| checked(found, &uri));
            let file = found.map_err(|why| format!("line {line}: {why}"))?;
            let next = segments.files.len();
            let file = *known.entry(file.clone()).or_insert_with(|| {
                segments.files.push((file, line));
                next
            });
            if segments.files.len() > MOST_FILES {
                return Err(format!("line {line}: found more than {MOST_FILES} files, expected at most that"));
            }
            segments.ranges.push(NamedRange { line, file, bytes });
        }
        Ok(segments)
    }

    /// Returns the ranges of open files.
    fn joined(&self, sources: &[JoinedSource]) -> Result<JoinedRanges, String> {
        let mut joined = JoinedRanges::default();
        for NamedRange { line, file, bytes } in &self.ranges {
            let Some((source, (path, _))) = sources.get(*file).zip(self.files.get(*file)) else { continue };
            let len = source.length();
            let ByteRange { start, end } = bytes.unwrap_or(ByteRange::new(0, len));
            if end > len {
                return Err(format!("line {line}: {path}: found {len} bytes, expected the bytes {start} to {end}"));
            }
            joined.push(source, start..end);
        }
        if joined.length() == 0 {
            return Err("found segments without bytes, expected media".to_owned());
        }
        // A short playlist that names its files again and again would claim any length.
        let files = sources.iter().map(JoinedSource::length).fold(0, u64::saturating_add);
        if joined.length() > files {
            let found = joined.length();
            return Err(format!("found {found} bytes of segments in files of {files} bytes, expected each byte once"));
        }
        Ok(joined)
    }
}

/// Returns the path of a segment, if its name is not that of another kind of file.
fn checked(path: ObjectPath, uri: &str) -> Result<ObjectPath, String> {
    let name = path.file_name().to_ascii_lowercase();
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    if names::is_playlist(&name) {
        return Err(format!("{uri:?}: found a playlist, expected a media segment"));
    }
    if BARE.contains(&extension) {
        return Err(format!(
            "{uri:?}: found a segment without container (.{extension}), expected transport streams or fragmented MP4"
        ));
    }
    Ok(path)
}

/// Describes a multivariant playlist.
fn multivariant(names: &[String]) -> String {
    // Variants that share a playlist name it several times.
    let mut known = HashSet::new();
    let names = names.iter().map(String::as_str).filter(|name| known.insert(*name));
    let mut shown: Vec<&str> = names.take(MOST_NAMED + 1).collect();
    let more = if shown.len() > MOST_NAMED { " ..." } else { "" };
    shown.truncate(MOST_NAMED);
    format!(
        "found a multivariant playlist, expected a media playlist. Those that it names are titles: {}{more}. To make one title of \
         them, name them in a .smil file",
        shown.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &str) -> Result<Segments, String> {
        let text = format!("#EXTM3U\n#EXT-X-TARGETDURATION:4\n{lines}\n#EXT-X-ENDLIST\n");
        Segments::read(&ObjectPath::parse("films/show.m3u8").unwrap(), &Bytes::from(text))
    }

    #[test]
    fn files_are_opened_once() {
        let segments = read("#EXT-X-MAP:URI=\"s/init.mp4\"\n./s/a%201.m4s\ns/2.m4s\ns/a%201.m4s").unwrap();
        let files: Vec<_> = segments.files.iter().map(|(path, line)| (path.as_str(), *line)).collect();
        assert_eq!(files, [("films/s/init.mp4", 3), ("films/s/a 1.m4s", 4), ("films/s/2.m4s", 5)]);
        let order: Vec<_> = segments.ranges.iter().map(|range| (range.line, range.file)).collect();
        assert_eq!(order, [(3, 0), (4, 1), (5, 2), (6, 1)]);
    }

    #[test]
    fn names_that_are_no_segments_of_the_place_are_refused() {
        for (line, expected) in [
            ("../up.ts", "line 3: \"../up.ts\": path \"../up.ts\" has a component `..`, which is not allowed"),
            ("%2e%2e/up.ts", "line 3: \"%2e%2e/up.ts\": path \"../up.ts\" has a component `..`, which is not allowed"),
            ("/etc/passwd.ts", "line 3: \"/etc/passwd.ts\": expected a path relative to the playlist"),
            ("https://b.example/1.ts", "line 3: \"https://b.example/1.ts\": expected a path relative to the playlist"),
            ("%ff.ts", "line 3: \"%ff.ts\" is not UTF-8"),
            ("show.m3u8", "line 3: \"show.m3u8\": found a playlist, expected a media segment"),
            (
                "1.vtt",
                "line 3: \"1.vtt\": found a segment without container (.vtt), expected transport streams or fragmented MP4",
            ),
        ] {
            assert_eq!(read(line).unwrap_err(), expected);
        }
        let many: String = (0..=MOST_FILES).map(|number| format!("{number}.ts\n")).collect();
        assert_eq!(read(&many).unwrap_err(), "line 16387: found more than 16384 files, expected at most that");
        let text =
            Bytes::from("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nlow.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=2\nlow.m3u8\n");
        let error = Segments::read(&ObjectPath::parse("main.m3u8").unwrap(), &text).unwrap_err();
        assert!(error.contains("titles: low.m3u8. To make one title of them"), "{error}");
    }
}
