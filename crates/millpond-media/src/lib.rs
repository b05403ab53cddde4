//! Builds a compact index of ISO base media files (ISO/IEC 14496-12), progressive and fragmented, of Matroska files (RFC 9559), of
//! transport streams (ISO/IEC 13818-1), of sound files, of FLV files and of AVI files.
//!
//! Pure: no I/O and no clock. [`Indexer`] names the bytes that it needs next and is given them. Its result is a
//! [`Movie`], whose [`SampleTable`]s tell place and time of each sample without the file. The samples of a transport stream, of most
//! AVI files, and of Matroska files with header stripping have places in an object that an [`Extractor`] makes of it.
//!
//! Media that arrive without an end are read by [`ts`] (MPEG-2 transport streams), [`fragment_stream`] and [`flv`]. [`teletext`] reads
//! subtitles of transport streams.
#![cfg_attr(not(test), forbid(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

mod avi_file;
mod bits;
mod boxes;
mod budget;
pub mod codec;
pub mod error;
mod extensions;
#[cfg(test)]
pub(crate) mod fixture;
pub mod flv;
mod flv_file;
pub mod foreign;
mod index;
mod lost;
mod matroska;
pub mod movie;
mod mp4;
mod programme;
pub mod protection;
pub mod recorded;
mod scan;
mod sound_file;
pub mod stitch;
pub mod teletext;
pub mod ts;
mod ts_file;
pub mod units;
mod unread;
#[cfg(test)]
mod walls;
mod window;
pub mod work;

pub use codec::{
    audio::latm,
    captions::{CaptionChannel, CaptionChannels, CaptionSearch},
    importance::Importance,
    nal::{
        NalSyntax,
        parameter_sets::{ParameterSets, Sifted},
    },
    orientation::Orientation,
    *,
};
pub use error::MediaError;
pub use extensions::{is_media_extension, is_sound_extension};
pub use foreign::Foreign;
pub use index::{
    fragment_loader::{FragmentLoader, LoadStep},
    indexer::{IndexLimits, Indexer, Step, index_bytes},
};
pub use matroska::TextBlock;
pub use movie::{
    Edit, Movie, SkippedTrack, Track,
    artwork::{Artwork, ImageKind},
    chapter::Chapter,
    descriptions::{Description, Descriptions, sets_with_lengths},
    edits::{Hidden, Span, clip_spans, spans},
    extraction::{Extraction, PacketForm},
    image_text::{ImageDecoder, ImageText},
    outline::{FragmentTimes, Outline},
    purpose::{Purpose, Purposes},
    sample_table::{Sample, SampleTable, SampleTableBuilder, Samples},
    stitched::Stitched,
    tags::Tags,
};
pub use mp4::{dref, fragment_stream};
pub use programme::FileProgramme;
pub use protection::{Protection, Scheme, SystemHeader, Uuid};
pub use sound_file::flac_crc;
pub use ts_file::Extractor;
pub use units::{ByteRange, Timescale};
pub use work::{Work, WorkError};
