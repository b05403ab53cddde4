//! Boxes of ISO base media files (ISO/IEC 14496-12), from which a [`Movie`](crate::Movie) is made; and files that name another's media.

mod alias;
mod announced;
mod artwork;
pub(crate) mod chapters;
mod clips;
mod draft_parts;
pub mod dref;
pub(crate) mod fragment_places;
pub mod fragment_stream;
pub(crate) mod fragment_tables;
mod fragmented;
mod item_list;
pub(crate) mod moov;
pub(crate) mod pcm_units;
mod progressive;
pub(crate) mod sample_entries;
mod trak;
