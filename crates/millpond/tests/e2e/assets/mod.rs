//! Stored media as assets.

mod artwork;
mod avi;
pub(crate) mod captions;
mod chapters;
mod damage;
mod encrypted;
mod exact;
mod filters;
mod grouping;
mod hdr;
mod hls_folders;
mod hls_ladders;
mod hostile;
mod joined;
mod joined_periods;
mod library;
mod lossless;
mod made_anew;
mod quicktime;
mod random_access;
mod scanned;
mod sound_end;
mod stitched;
mod texts;
mod trimmed;
mod ts_recordings;
mod versions;
