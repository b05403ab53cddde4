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
use parameters::{PictureSet, SequenceSet};
use slice::SliceDecoder;

/// NAL unit types (table 7-1).
const SLICE: u8 = 1;
const IDR_SLICE: u8 = 5;
const SEQUENCE_SET: u8 = 7;
const PICTURE_SET: u8 = 8;

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
/// `most` bounds the number of macroblocks.
///
/// # Errors
/// Invalid data, a picture of a kind that is not decoded, and one of more than `most` macroblocks.
pub fn decode<'a>(units: impl IntoIterator<Item = &'a [u8]>, most: usize) -> Result<Picture, DecodeError> {
    let mut sequences: Vec<SequenceSet> = Vec::new();
    let mut pictures: Vec<PictureSet> = Vec::new();
    let mut decoder: Option<SliceDecoder> = None;
    for unit in units {
        let Some((head, payload)) = unit.split_first() else { continue };
        let kind = head & 0x1f;
        if !matches!(kind, SLICE | IDR_SLICE | SEQUENCE_SET | PICTURE_SET) {
            continue;
        }
        let bytes = unescaped(payload);
        let mut bits = BitReader::new(&bytes);
        match kind {
            SEQUENCE_SET => {
                let set = SequenceSet::read(&mut bits)?;
                sequences.retain(|other| other.id != set.id);
                sequences.push(set);
            }
            PICTURE_SET => {
                let set = PictureSet::read(&mut bits, &sequences)?;
                pictures.retain(|other| other.id != set.id);
                pictures.push(set);
            }
            _ => {
                let header = slice::Header::read(&mut bits, head, &sequences, &pictures)?;
                let decoder = match &mut decoder {
                    Some(decoder) => decoder,
                    None => decoder.insert(SliceDecoder::new(header.sequence.clone(), most)?),
                };
                // Redundant slices repeat others.
                if !header.is_redundant {
                    decoder.slice(&header, bits)?;
                }
            }
        }
    }
    decoder.ok_or(DecodeError::Truncated("a slice"))?.finish()
}

#[cfg(test)]
mod tests;
