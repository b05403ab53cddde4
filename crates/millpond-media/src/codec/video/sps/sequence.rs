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
    /// Fields of slices that lead to the order of pictures. `None` if the set ends before it describes them.
    pub(crate) order: Option<OrderSyntax>,
}

/// Fields that the headers of slices have before and at the picture order count (H.264 7.3.3, H.265 7.3.6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OrderSyntax {
    /// Whether slices name their colour plane (`separate_colour_plane_flag`).
    pub(crate) has_planes: bool,
    /// Bits of `frame_num`; 0 in H.265, which has none.
    pub(crate) number_bits: u32,
    /// Whether pictures may be single fields.
    pub(crate) has_fields: bool,
    pub(crate) count: OrderCount,
}

/// Derivation of the picture order count: `pic_order_cnt_type` of H.264. H.265 has only the first variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OrderCount {
    /// Slices state this number of least significant bits.
    Stated(u32),
    /// The count follows from a cycle of frame numbers.
    Cycle,
    /// Pictures are shown in the order of decoding.
    Decoding,
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
            order: None,
        }
    }
}
