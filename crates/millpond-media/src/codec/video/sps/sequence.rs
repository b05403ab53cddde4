//! Properties of a sequence of pictures.

use super::{Size, vui::Vui};
use crate::codec::video::color::Color;

/// Properties that a sequence parameter set states for its pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PictureSequence {
    /// `seq_parameter_set_id`: at most 31, at most 15 in H.265.
    pub id: u8,
    /// Cropped width and height in pixels; `None` where either is 0 or exceeds 16 bits.
    pub size: Option<(u16, u16)>,
    /// Pixel aspect ratio, horizontal and vertical spacing, where stated.
    pub pixel_aspect: Option<(u32, u32)>,
    /// Colours, where stated.
    pub color: Option<Color>,
    /// `chroma_format_idc`: 0 is monochrome, 1 4:2:0, 2 4:2:2, 3 4:4:4.
    pub chroma_format: u8,
    /// Bits per sample value of luma and chroma.
    pub bit_depths: (u8, u8),
    /// Number of pictures that can precede a picture in decoding order and follow it in presentation order. `None` where
    /// H.264 states no number and allows any order.
    pub reorder_depth: Option<u8>,
    /// Frames per second as a fraction, where stated.
    pub frame_rate: Option<(u32, u32)>,
}

impl PictureSequence {
    pub(super) fn new(size: &Size, vui: &Vui) -> Self {
        let cropped = size.cropped().and_then(|(width, height)| {
            Some((u16::try_from(width).ok().filter(|w| *w > 0)?, u16::try_from(height).ok().filter(|h| *h > 0)?))
        });
        Self {
            id: 0,
            size: cropped,
            pixel_aspect: vui.pixel_aspect,
            color: vui.color,
            chroma_format: 1,
            bit_depths: (8, 8),
            reorder_depth: None,
            frame_rate: vui.timing,
        }
    }
}
