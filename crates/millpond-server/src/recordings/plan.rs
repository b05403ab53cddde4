//! The files of a recording without an end: their names, borders and marks.

use super::{RecordSettings, borders, shelf::Shelf};
use millpond_media::recorded::{FileHead, FileTail};
use millpond_stream::{FilePlan, RecordingEnd, WrittenFile};
use std::{fmt, fs::File, io, path::PathBuf, sync::Arc, time::Duration};

/// Names the files of one stream, and gives complete ones to the shelf.
pub(super) struct ShelfPlan {
    stream: String,
    shelf: Arc<Shelf>,
}

impl ShelfPlan {
    pub(super) fn new(stream: &str, shelf: Arc<Shelf>) -> Self {
        Self { stream: stream.to_owned(), shelf }
    }
}

impl fmt::Debug for ShelfPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShelfPlan").field("stream", &self.stream).finish_non_exhaustive()
    }
}

impl FilePlan for ShelfPlan {
    fn create(&mut self, began: Duration) -> io::Result<(File, PathBuf)> {
        let RecordSettings { name, .. } = &*self.shelf.settings();
        self.shelf.folder().create(&name.name(&self.stream, began))
    }

    fn ends(&self, began: Duration, at: Duration, lasts: Duration) -> bool {
        borders::ends(self.shelf.settings().file_length, began, at, lasts)
    }

    fn head(&self, began: Duration) -> Vec<u8> {
        FileHead { stream: self.stream.clone(), began }.write()
    }

    fn tail(&self, file: &WrittenFile) -> Vec<u8> {
        let WrittenFile { duration, frames, lost, gaps, .. } = file;
        FileTail { duration: *duration, frames: *frames, lost: *lost, gaps: gaps.clone() }.write()
    }

    fn complete(&mut self, file: &WrittenFile, end: Option<&RecordingEnd>) -> io::Result<()> {
        // The rest of a file that could not be written is completed as that of a process that was killed.
        if matches!(end, Some(RecordingEnd::Failed(_))) {
            return Ok(());
        }
        let name = self.shelf.folder().finish(&file.path)?;
        self.shelf.add(&name, end.map_or("next file", RecordingEnd::name));
        Ok(())
    }
}
