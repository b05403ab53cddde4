//! Subtitles beside the media: a file, or the WebVTT segments of an HLS playlist.

use crate::{
    asset::JoinedSegments,
    error::LibraryError,
    folder::grouping::SidecarFile,
    library::{
        Library,
        building::{Building, MEMORY_A_BYTE, MOST_TEXT},
        segments::{JoinedPlaylist, JoinedStretch, SegmentKind},
    },
    names,
};
use millpond_package::{
    Sidecar,
    text::{self, Subtitles},
};
use millpond_store::ObjectPath;
use std::sync::Arc;

impl Library {
    /// Reads subtitles. `zero` is the timestamp of the time 0 of the presentation, in ticks of 90 kHz.
    pub(super) async fn sidecar(
        &self,
        place: &str,
        file: &SidecarFile,
        zero: u64,
        building: &mut Building,
    ) -> Result<Sidecar, LibraryError> {
        let mut subtitles = match names::is_playlist(file.path.file_name()) {
            true => self.segmented(place, &file.path, zero, building).await?,
            false => self.subtitle_file(place, &file.path, building).await?,
        };
        for warning in &subtitles.warnings {
            tracing::warn!(file = %file.path, %warning, "subtitles");
        }
        // The list may have room for twice as many.
        subtitles.cues.shrink_to_fit();
        Ok(Sidecar {
            language: file.language.clone(),
            name: file.name.clone(),
            cues: Arc::new(subtitles.cues),
            default: false,
            forced: file.forced,
        })
    }

    async fn subtitle_file(
        &self,
        place: &str,
        path: &ObjectPath,
        building: &mut Building,
    ) -> Result<Subtitles, LibraryError> {
        let bytes = self.read_text(place, path, building).await?;
        let parse =
            if path.file_name().to_ascii_lowercase().ends_with(".srt") { text::srt::parse } else { text::vtt::parse };
        let parsed = self.job(path, move || parse(&bytes)).await?;
        parsed.map_err(|error| LibraryError::Manifest { manifest: path.to_string(), why: error.to_string() })
    }

    /// Reads the segments of a playlist.
    async fn segmented(
        &self,
        place: &str,
        path: &ObjectPath,
        zero: u64,
        building: &mut Building,
    ) -> Result<Subtitles, LibraryError> {
        let wrong = |why: String| LibraryError::Manifest { manifest: path.to_string(), why };
        let JoinedPlaylist { playlist, stretches } = self.joined(place, path, SegmentKind::Text).await?;
        let mut all = stretches.into_iter();
        let (first, second) = (all.next(), all.next());
        let Some(JoinedStretch { object, starts, heap_bytes, .. }) = first else {
            return Err(wrong("found no segment, expected WebVTT".to_owned()));
        };
        if let Some(JoinedStretch { line, .. }) = second {
            return Err(wrong(format!("line {line}: found a discontinuity, expected subtitles without one")));
        }
        let len = object.meta().len;
        if len > MOST_TEXT {
            return Err(wrong(format!("its segments have {len} bytes, expected at most {MOST_TEXT}")));
        }
        let refused = |error| LibraryError::Refused { asset: path.to_string(), error };
        building.charge(&self.pool, len * MEMORY_A_BYTE).await.map_err(refused)?;
        let bytes = self.store.read_all(&object, 0..len).await?;
        building.depend(playlist);
        building.join(JoinedSegments { object, heap_bytes });
        let parsed = self.job(path, move || {
            let ends = starts.iter().skip(1).copied().chain([len]);
            let at = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
            let segments = starts.iter().zip(ends).filter_map(|(start, end)| bytes.get(at(*start)..at(end)));
            text::vtt_segments::parse(segments, zero)
        });
        parsed.await?.map_err(|error| wrong(error.to_string()))
    }
}
