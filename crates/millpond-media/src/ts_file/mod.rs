//! Stored transport streams (ISO/IEC 13818-1): their programme becomes the index of an object, and their frames are extracted.
//!
//! [`indexer`] reads a whole file: [`survey`] chooses the programme in its first pieces, [`scan`] demultiplexes it, and each [`lane`]
//! becomes a track, with [`clips`] where its configuration changes. Each page of teletext subtitles becomes a track of [`text`]. [`Extractor`] makes a range of the extracted object from the packets
//! that hold it, with the same code.

mod clips;
mod entries;
mod extractor;
mod indexer;
mod input;
mod lane;
mod packets;
mod parts;
mod requests;
mod scan;
mod survey;
mod text;
mod timeline;

#[cfg(test)]
mod tests;

pub(crate) use entries::Entries;
pub use extractor::Extractor;
pub(crate) use indexer::{TsFileIndexer, TsFileStep};
pub(crate) use packets::find_packets;
pub(crate) use requests::Requests;
