//! Errors of opening assets.

use crate::work::PoolError;
use millpond_media::{Foreign, MediaError, foreign};
use millpond_package::PackageError;
use millpond_store::OriginError;
use std::sync::Arc;

/// Why an object has no index.
#[derive(Clone, Debug, thiserror::Error)]
pub enum IndexError {
    /// The origin can't give its bytes.
    #[error("{0}")]
    Origin(#[from] OriginError),
    /// Its bytes are not playable media.
    #[error("{object}: {error}{}", Self::cure(object, error))]
    Media {
        /// Path of the object in its place.
        object: String,
        /// The fault, and its byte offset.
        error: MediaError,
    },
    /// Its bytes are media in a format that is not read.
    #[error("{object}: {}", Self::explained(name_of(object), *format))]
    Foreign {
        /// Path of the object in its place.
        object: String,
        /// The format.
        format: Foreign,
    },
    /// The server has no room for the work now.
    #[error("{object}: {error}")]
    Refused {
        /// Path of the object in its place.
        object: String,
        /// The limit that was met.
        error: PoolError,
    },
}

impl IndexError {
    /// Describes a file of a format that is not read, with the command that makes an MP4 file of it.
    #[must_use]
    pub fn explained(name: &str, format: Foreign) -> String {
        let made = format.command(name).map_or_else(String::new, |command| format!("; to make one: {command}"));
        format!("is {}, expected MP4, MOV, MKV, WebM, TS, FLV, AVI or a sound file{made}", format.name())
    }

    /// Returns the end of an error for a file whose codecs are not played: the command that makes an MP4 file of it. Empty for other
    /// errors.
    #[must_use]
    pub fn cure(object: &str, error: &MediaError) -> String {
        let MediaError::NoPlayableTrack { found, cut_short: false, .. } = error else { return String::new() };
        if !found.iter().any(|reason| is_curable(reason)) {
            return String::new();
        }
        format!("; to make a file that plays: {}", foreign::encoding_command(name_of(object)))
    }

    /// Returns why no attempt to play the object can succeed, for programs. `None` for other errors.
    #[must_use]
    pub fn unplayable(&self) -> Option<Unplayable> {
        match self {
            Self::Foreign { object, format } => Some(Unplayable {
                code: "format",
                media: vec![format.name().to_owned()],
                command: format.command(name_of(object)),
            }),
            Self::Media { error: MediaError::NoPlayableTrack { found, cut_short: false, .. }, object } => {
                let mut media: Vec<String> = Vec::new();
                for codec in found.iter().filter_map(|reason| codec_of(reason)) {
                    if !media.iter().any(|known| known == codec) {
                        media.push(codec.to_owned());
                    }
                }
                let is_curable = found.iter().any(|reason| is_curable(reason));
                let command = is_curable.then(|| foreign::encoding_command(name_of(object)));
                Some(Unplayable { code: "codec", media, command }).filter(|found| !found.media.is_empty())
            }
            Self::Origin(_) | Self::Media { .. } | Self::Refused { .. } => None,
        }
    }

    /// Whether further bytes could cure it, given that the object has `object_len` bytes now.
    pub(crate) fn is_cut_short(&self, object_len: u64) -> bool {
        matches!(self, Self::Media { error, .. } if error.is_cut_short(object_len))
    }
}

/// Why a title can't be played at all, for programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unplayable {
    /// `format`, if the file has a format that is not read; `codec`, if no codec of its tracks is played.
    pub code: &'static str,
    /// Names of the format or of the codecs.
    pub media: Vec<String>,
    /// Command that makes a file that plays.
    pub command: Option<String>,
}

/// End of the reason of a track that is not played, behind the name of its codec.
const UNSUPPORTED: &str = " is not supported";

/// Returns the file name of a path.
fn name_of(object: &str) -> &str {
    object.rsplit('/').next().unwrap_or(object)
}

/// Whether ffmpeg can make a playable track of a track that is left out for this reason.
fn is_curable(reason: &str) -> bool {
    reason.ends_with(UNSUPPORTED) && !reason.contains("encrypted")
}

/// Returns the codec that a reason names, between the offset in the file and the end.
fn codec_of(reason: &str) -> Option<&str> {
    let named = reason.strip_suffix(UNSUPPORTED)?;
    Some(named.rsplit_once(": ").map_or(named, |(_, codec)| codec))
}

/// Why an asset can't be opened, or has no such resource.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LibraryError {
    /// The storage failed, or an object has no index.
    #[error("{0}")]
    Index(#[from] IndexError),
    /// The media can't be packaged.
    #[error("{asset}: {error}")]
    Package {
        /// Path of the asset with its place.
        asset: String,
        /// The fault.
        error: Arc<PackageError>,
    },
    /// The server has no room for the work now.
    #[error("{asset}: {error}")]
    Refused {
        /// Path of the asset, or of one of its files.
        asset: String,
        /// The limit that was met.
        error: PoolError,
    },
    /// A folder is too large to be one title.
    #[error("{folder}: found {found} {what} files, expected at most {most} in a folder that is one asset")]
    TooMany {
        /// Path of the folder in its place.
        folder: String,
        /// Kind of files: `media` or `subtitle`.
        what: &'static str,
        /// Number of these files.
        found: usize,
        /// Largest number in one asset.
        most: usize,
    },
    /// A folder holds several titles.
    #[error("{folder}: found {found}, expected one title in a folder that is an asset{cure}")]
    NotOneTitle {
        /// Path of the folder in its place.
        folder: String,
        /// The titles, or how they differ.
        found: String,
        /// A sentence with the address of one of the titles; empty if none is known.
        cure: String,
    },
    /// A folder holds media in formats that are not read, and no other.
    #[error("{folder}: found no media file but {found}")]
    OnlyForeign {
        /// Path of the folder in its place.
        folder: String,
        /// Those files.
        found: String,
    },
    /// A file ends too early, and changed a moment ago.
    #[error("{path}: still being copied: found {len} bytes so far, the last a moment ago")]
    BeingCopied {
        /// Path of the file in its place.
        path: String,
        /// Bytes that are there.
        len: u64,
    },
    /// The path names no asset.
    #[error("{0}: no such asset")]
    NoAsset(String),
    /// The asset has no such track, segment or version.
    #[error("{asset}: {what}")]
    NoResource {
        /// Path of the asset with its place.
        asset: String,
        /// The resource that was asked for.
        what: String,
    },
    /// The path can't name anything.
    #[error("{path}: {why}")]
    BadPath {
        /// The path.
        path: String,
        /// The fault.
        why: String,
    },
    /// A server manifest, subtitle file or data reference is faulty.
    #[error("{manifest}: {why}")]
    Manifest {
        /// Path of the file in its place.
        manifest: String,
        /// The fault.
        why: String,
    },
}

impl From<OriginError> for LibraryError {
    fn from(error: OriginError) -> Self {
        Self::Index(error.into())
    }
}

impl LibraryError {
    /// Describes the error for viewers: as it is, but for the location of the origin.
    #[must_use]
    pub fn for_viewers(&self) -> String {
        match self {
            Self::Index(IndexError::Origin(error)) => error.for_viewers(),
            error => error.to_string(),
        }
    }

    /// Returns why no attempt to play the title can succeed, for programs. `None` for other errors.
    #[must_use]
    pub fn unplayable(&self) -> Option<Unplayable> {
        let Self::Index(error) = self else { return None };
        error.unplayable()
    }

    /// Whether there is nothing at the path.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Index(IndexError::Origin(error)) if error.is_not_found())
    }

    /// Whether the storage refuses to give an object.
    pub(crate) fn is_forbidden(&self) -> bool {
        matches!(self, Self::Index(IndexError::Origin(error)) if matches!(error, OriginError::Forbidden { .. } | OriginError::Outside { .. }))
    }

    /// Whether the bytes of a file are the reason: it is damaged, or its format or codecs are not played.
    pub(crate) fn is_of_media(&self) -> bool {
        matches!(self, Self::Index(IndexError::Media { .. } | IndexError::Foreign { .. }))
    }

    /// Whether a path has no object: it has a folder, or nothing.
    pub(crate) fn is_no_file(&self) -> bool {
        let is_folder = matches!(self, Self::Index(IndexError::Origin(OriginError::NotAFile { .. })));
        is_folder || self.is_not_found()
    }

    /// Whether an object changed after it was opened. The next attempt opens the new version.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        matches!(self, Self::Index(IndexError::Origin(error)) if error.is_changed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_read_what_keeps_a_title_from_playing() {
        let object = || "films/old film.mkv".to_owned();
        let told = IndexError::Foreign { object: object(), format: Foreign::MpegPs }.unplayable().unwrap();
        assert_eq!((told.code, &told.media[..]), ("format", &["an MPEG program stream".to_owned()][..]));
        assert!(told.command.unwrap().starts_with("ffmpeg -i 'old film.mkv' "));
        let reason = |codec: &str| format!("Tracks/TrackEntry at byte 313: {codec} is not supported");
        let found = vec![reason("MPEG-2 video (V_MPEG2)"), reason("MPEG-2 video (V_MPEG2)"), "no samples".to_owned()];
        let media = |found, cut_short| {
            let error = MediaError::NoPlayableTrack { path: "Tracks".to_owned(), offset: 0, found, cut_short };
            LibraryError::Index(IndexError::Media { object: object(), error }).unplayable()
        };
        let told = media(found.clone(), false).unwrap();
        assert_eq!((told.code, &told.media[..]), ("codec", &["MPEG-2 video (V_MPEG2)".to_owned()][..]));
        assert!(told.command.unwrap().ends_with(" 'old film.mp4'"));
        assert_eq!(media(found, true), None, "the rest of the file may cure it");
        assert_eq!(media(vec!["no samples".to_owned()], false), None);
        assert_eq!(LibraryError::NoAsset(object()).unplayable(), None);
    }
}
