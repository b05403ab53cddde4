//! DASH (ISO/IEC 23009-1): all renditions share a manifest. The first one reads it again and again.

mod clock;
mod manifest;
mod rendition;

pub(super) use rendition::DashRendition;
