//! Builds a compact index of ISO base media files (ISO/IEC 14496-12), progressive and fragmented.
//!
//! Pure: no I/O and no clock. [`Indexer`] names the bytes that it needs next and is given them. Its result is a
//! [`Movie`], whose [`SampleTable`]s tell place and time of each sample without the file.
//!
//! Media that arrive without an end are read by [`ts`] (MPEG-2 transport streams), [`fragment_stream`] and [`flv`].
#![cfg_attr(not(test), forbid(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

mod alias;
mod announced;
mod bit_reader;
mod bits;
mod boxes;
mod budget;
mod clips;
pub mod codec;
pub mod descriptions;
pub mod dref;
pub mod edits;
mod entry_look;
mod entry_points;
pub mod error;
mod finer_clock;
mod first_frames;
#[cfg(test)]
pub(crate) mod fixture;
pub mod flv;
pub mod foreign;
mod fragment_places;
pub mod fragment_stream;
mod fragment_walk;
mod fragmented;
mod importance;
mod in_band;
pub mod indexer;
mod lane;
pub mod latm;
mod moov;
pub mod movie;
mod nal;
mod orientation;
pub mod parameter_sets;
mod pcm_units;
mod progressive;
pub mod protection;
pub mod purpose;
mod sample_entries;
pub mod sample_table;
mod set_kind;
mod trak;
pub mod ts;
pub mod units;
pub mod work;

pub use codec::*;
pub use descriptions::{Description, Descriptions, sets_with_lengths};
pub use edits::{Hidden, Span, spans};
pub use error::MediaError;
pub use foreign::Foreign;
pub use importance::Importance;
pub use indexer::{IndexLimits, Indexer, Step, index_bytes};
pub use movie::{Edit, Movie, SkippedTrack, Track, TrackKind};
pub use nal::NalSyntax;
pub use orientation::Orientation;
pub use parameter_sets::{ParameterSets, Sifted};
pub use protection::{Protection, Scheme, SystemHeader, Uuid};
pub use purpose::{Purpose, Purposes};
pub use sample_table::{Sample, SampleTable, SampleTableBuilder, Samples};
pub use units::{ByteRange, Timescale};
pub use work::{Work, WorkError};
