//! Stored media as assets.

mod captions;
mod chapters;
mod damage;
mod encrypted;
mod exact;
mod filters;
mod grouping;
mod hdr;
mod hls_folders;
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
mod versions;
