//! The segments of an HLS playlist as one object for each stretch between discontinuities: joined in order, transport streams are one
//! transport stream, and an init section with fragments is one fragmented MP4 file.

mod ranges;

pub(super) use ranges::SegmentKind;

use crate::{
    error::{IndexError, LibraryError},
    library::{Library, building::Building, index::HEAD},
};
use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use millpond_package::hls_playlist::{self, MOST_BYTES, StoredMultivariant, StoredPlaylist};
use millpond_store::{JoinedSource, Object, ObjectPath, OriginError};
use ranges::Segments;
use std::sync::Arc;

/// Files that are opened at a time.
const AT_ONCE: usize = 16;
/// Files of which the requests are prepared together.
const BATCH: usize = 256;
/// Bytes of memory for each byte of a playlist: the text, and a range for each of its lines.
const MEMORY_A_BYTE: u64 = 16;

/// A playlist, and its segments.
pub(super) struct JoinedPlaylist {
    pub(super) playlist: Arc<Object>,
    /// Stretches of segments in order; at least one.
    pub(super) stretches: Vec<JoinedStretch>,
}

/// Segments without a discontinuity, as one object.
pub(super) struct JoinedStretch {
    /// Line of its first segment.
    pub(super) line: u32,
    pub(super) object: Arc<Object>,
    /// Offsets at which its segments begin.
    pub(super) starts: Arc<[u64]>,
    /// Bytes of memory that the list of segments takes.
    pub(super) heap_bytes: u64,
}

impl Library {
    /// Opens a playlist and all of its segments, some at a time.
    pub(super) async fn joined(
        &self,
        place: &str,
        path: &ObjectPath,
        kind: SegmentKind,
    ) -> Result<JoinedPlaylist, LibraryError> {
        let wrong = |why: String| LibraryError::Manifest { manifest: path.to_string(), why };
        let playlist = self.store.open(place, path).await?;
        let len = playlist.meta().len;
        if len > MOST_BYTES as u64 {
            return Err(wrong(format!("it has {len} bytes, expected at most {MOST_BYTES} in an HLS playlist")));
        }
        let refused = |error| LibraryError::Refused { asset: path.to_string(), error };
        let _charge = self.pool.charge(len * MEMORY_A_BYTE).await.map_err(refused)?;
        let text = self.store.read_all(&playlist, 0..len).await?;
        let (of, list) = (path.clone(), playlist.clone());
        let segments =
            self.job(path, move || Segments::read(&of, list.address(), kind, &text)).await?.map_err(wrong)?;
        let sources = self.sources_of(place, &segments).await?;
        let sources = sources.map_err(wrong)?;
        let joined = self.job(path, move || segments.joined(&sources)).await?.map_err(wrong)?;
        let stretches = joined.into_iter().map(|(line, ranges)| {
            let (starts, heap_bytes) = (ranges.starts(), ranges.heap_bytes());
            JoinedStretch { line, object: self.store.joined(&playlist, ranges), starts, heap_bytes }
        });
        let stretches = stretches.collect();
        Ok(JoinedPlaylist { playlist, stretches })
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

    /// Reads a playlist if it is multivariant, and returns it with the address of its place's storage. `None` for other playlists, and for
    /// playlists that are too long.
    pub(crate) async fn multivariant(
        &self,
        place: &str,
        path: &ObjectPath,
        building: &mut Building,
    ) -> Result<Option<(StoredMultivariant, String)>, LibraryError> {
        let playlist = self.store.open_head(place, path, HEAD).await?;
        let len = playlist.meta().len;
        if len > MOST_BYTES as u64 {
            return Ok(None);
        }
        let refused = |error| LibraryError::Refused { asset: path.to_string(), error };
        let _charge = self.pool.charge(len * MEMORY_A_BYTE).await.map_err(refused)?;
        let text = self.store.read_all(&playlist, 0..len).await?;
        let found = self.job(path, move || multivariant(&text)).await?;
        let found = found.map_err(|why| LibraryError::Manifest { manifest: path.to_string(), why })?;
        Ok(found.map(|found| {
            let address = playlist.address().to_owned();
            building.depend(playlist);
            (found, address)
        }))
    }
}

/// Reads a text as a multivariant playlist; `None` for other playlists. The error has no path.
fn multivariant(text: &Bytes) -> Result<Option<StoredMultivariant>, String> {
    let text = String::from_utf8_lossy(text);
    if !hls_playlist::is_multivariant(&text) {
        return Ok(None);
    }
    match hls_playlist::parse(&text).map_err(|error| error.to_string())? {
        StoredPlaylist::Multivariant(found) => Ok(Some(found)),
        StoredPlaylist::Media(_) => Ok(None),
    }
}
