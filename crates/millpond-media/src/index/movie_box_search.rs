//! Finds the movie box of a file among its other boxes.

use crate::{
    boxes::{FIRST, show},
    error::MediaError,
    index::{
        indexer::IndexLimits,
        lane::{Here, Lane},
    },
    units::ByteRange,
    work::Work,
};
use bytes::Bytes;

/// The search for the movie box of an object.
pub(super) struct MovieBoxSearch<'a> {
    pub(super) object_len: u64,
    pub(super) limits: IndexLimits,
    pub(super) work: &'a Work,
}

/// Result of one step of a [`MovieBoxSearch`].
pub(super) enum MovieBox {
    /// The bytes of this range are needed.
    Wants(ByteRange),
    /// The movie box, at the position of the lane.
    Found(Bytes),
}

impl MovieBoxSearch<'_> {
    /// Walks the boxes of the file up to the movie box, as far as the bytes of `lane` allow.
    ///
    /// # Errors
    /// The file has no movie box, or one that is too large; the job has ended.
    pub(super) fn step(&self, lane: &mut Lane) -> Result<MovieBox, MediaError> {
        // The last box passed, with the size that it claims.
        let mut passed = None;
        loop {
            let at = lane.at();
            let (header, size) = match lane.here() {
                Here::End => return Err(self.no_moov(passed)),
                Here::Unknown => return Ok(MovieBox::Wants(lane.want(self.ask_at(at, passed)))),
                // Fewer bytes than a box header has: the beginning of a box.
                Here::Garbage if lane.left() < 8 => return Err(self.no_moov(passed)),
                Here::Garbage => {
                    let bytes = lane.bytes(lane.left().min(8)).unwrap_or_default();
                    let found = format!("the bytes \"{}\"", bytes.escape_ascii());
                    let expected = match at {
                        0 => "a box with a size and a type: the format of the file is not known",
                        _ => "a box with a size and a type",
                    };
                    return Err(MediaError::invalid("the file", at, found, expected));
                }
                Here::Box { header, size } => (header, size),
            };
            if at == 0 && !FIRST.contains(&&header.kind) {
                let found = format!("a box of type {}", show(header.kind));
                return Err(MediaError::invalid(
                    "the file",
                    0,
                    found,
                    "ftyp, or the beginning of another format: the format of the file is not known",
                ));
            }
            if &header.kind == b"moov" {
                if size > lane.left() {
                    return Err(MediaError::truncated("moov", at, lane.left(), size));
                }
                if size > self.limits.max_metadata {
                    return Err(MediaError::too_large("moov", at, size, self.limits.max_metadata, "bytes of metadata"));
                }
                return Ok(match lane.bytes(size) {
                    Some(moov) => MovieBox::Found(moov),
                    None => MovieBox::Wants(lane.want(size)),
                });
            }
            self.work.spend(1).map_err(|error| MediaError::work(show(header.kind), at, error))?;
            passed = Some((header.kind, at, size));
            lane.advance(size);
        }
    }

    /// Returns how many bytes to read at `at`. After the media that is everything up to the end, which likely holds the
    /// movie box, but no more than an eighth of the media.
    fn ask_at(&self, at: u64, passed: Option<([u8; 4], u64, u64)>) -> u64 {
        match passed {
            Some((kind, _, size)) if &kind == b"mdat" => {
                let rest = self.object_len - at;
                let likely = (size / 8).max(16 << 20).min(self.limits.max_metadata);
                if rest <= likely { rest } else { self.limits.head }
            }
            _ => self.limits.head,
        }
    }

    fn no_moov(&self, passed: Option<([u8; 4], u64, u64)>) -> MediaError {
        match passed {
            Some((kind, at, size)) if size > self.object_len - at => {
                MediaError::truncated(show(kind), at, self.object_len - at, size)
            }
            _ => MediaError::NoMovieBox { offset: self.object_len },
        }
    }
}
