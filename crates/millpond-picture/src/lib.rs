//! Still pictures of key frames, for thumbnails.
//!
//! [`decode`] decodes one intra picture of H.264: slices of type I, in frames, 8 bits, 4:2:0 or grey, by CAVLC or CABAC, with
//! transforms of 4 by 4 and 8 by 8. That is what web video has. A [`Picture`] can be scaled down, put into a larger one,
//! and coded as JPEG.
//!
//! The crate is pure, and reads untrusted data. It has no `unsafe`. Its memory is bounded by the size of the picture, and
//! its time by the number of macroblocks and the length of the data. It does not filter the edges of blocks (8.7), which
//! only inter prediction needs and which is hardly seen in small pictures. It decodes no motion, no fields and no other codec.
#![forbid(unsafe_code)]

mod bits;
mod cabac;
mod cavlc;
mod jpeg;
mod macroblock;
mod neighbours;
mod parameters;
mod picture;
mod predict;
mod residual;
mod slice;
#[rustfmt::skip]
mod tables;
mod transform;

pub use jpeg::JpegError;
pub use picture::Picture;

use bits::{BitReader, unescaped};
use parameters::ParameterSets;
use slice::SliceDecoder;

/// NAL unit types (table 7-1).
const SLICE: u8 = 1;
const IDR_SLICE: u8 = 5;
const SEQUENCE_SET: u8 = 7;
const PICTURE_SET: u8 = 8;

/// Most parameter sets before the slices of a picture: all numbers that they can have, and once more.
const MOST_SETS: usize = 2 * (32 + 256);
/// Bytes of units beyond [`BYTES_A_MACROBLOCK`].
const SPARE_BYTES: usize = 256 << 10;
/// Most bytes for each macroblock: those of its samples (384), and as much again.
const BYTES_A_MACROBLOCK: usize = 768;

/// Why a picture can't be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The data ends in the middle of something.
    #[error("found the end of the data, expected {0}")]
    Truncated(&'static str),
    /// A field has a value that the standard excludes.
    #[error("found an invalid {0}")]
    Invalid(&'static str),
    /// The picture uses a part of the standard that is not decoded.
    #[error("found {0}, which is not decoded")]
    Unsupported(&'static str),
    /// The picture has more macroblocks than the caller permits.
    #[error("found {found} macroblocks, expected {most} at most")]
    TooLarge {
        /// Macroblocks of the picture.
        found: usize,
        /// Bound of the caller.
        most: usize,
    },
    /// The picture has more of something than its macroblocks justify.
    #[error("found more {what} than a picture has, expected {most} at most")]
    TooMany {
        /// The thing that is counted.
        what: &'static str,
        /// Bound of the picture.
        most: usize,
    },
    /// Some macroblocks are in no slice.
    #[error("found {found} of {all} macroblocks")]
    Incomplete {
        /// Macroblocks that were decoded.
        found: usize,
        /// Macroblocks of the picture.
        all: usize,
    },
}

/// Decodes an intra picture from its NAL units, without start codes or lengths. Parameter sets stand before the slices.
/// `most` bounds the number of macroblocks. The number of parameter sets and of slices has a bound, and so have the bytes.
///
/// # Errors
/// Invalid data, a picture of a kind that is not decoded, and one of more than `most` macroblocks.
pub fn decode<'a>(units: impl IntoIterator<Item = &'a [u8]>, most: usize) -> Result<Picture, DecodeError> {
    let mut sets = ParameterSets::default();
    let mut decoder: Option<SliceDecoder> = None;
    let mut length = 0;
    for unit in units {
        let Some((head, payload)) = unit.split_first() else { continue };
        let kind = head & 0x1f;
        if !matches!(kind, SLICE | IDR_SLICE | SEQUENCE_SET | PICTURE_SET) {
            continue;
        }
        length += unit.len();
        let most_bytes = SPARE_BYTES + BYTES_A_MACROBLOCK * most;
        if length > most_bytes {
            return Err(DecodeError::TooMany { what: "bytes", most: most_bytes });
        }
        let bytes = unescaped(payload);
        let mut bits = BitReader::new(&bytes);
        match kind {
            SEQUENCE_SET => sets.add_sequence(&mut bits)?,
            PICTURE_SET => sets.add_picture(&mut bits)?,
            _ => {
                let header = slice::Header::read(&mut bits, head, &sets)?;
                let decoder = match &mut decoder {
                    Some(decoder) => decoder,
                    None => decoder.insert(SliceDecoder::new(header.sequence.clone(), most)?),
                };
                decoder.slice(&header, bits)?;
            }
        }
    }
    decoder.ok_or(DecodeError::Truncated("a slice"))?.finish()
}

#[cfg(test)]
mod tests;
