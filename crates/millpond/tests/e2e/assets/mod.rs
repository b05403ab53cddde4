//! Stored media as assets.

mod captions;
mod damage;
mod encrypted;
mod exact;
mod filters;
mod grouping;
mod hostile;
mod joined;
mod joined_periods;
mod library;
mod lossless;
mod made_anew;
mod quicktime;
mod random_access;
mod stitched;
mod texts;
mod trimmed;
mod versions;
