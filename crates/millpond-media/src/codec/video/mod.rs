//! Codecs of pictures, and the size and colours that their sample entries state.

pub(in crate::codec) mod av1;
pub(in crate::codec) mod avc;
pub(in crate::codec) mod color;
pub(in crate::codec) mod dolby_vision;
pub(crate) mod hevc;
pub(crate) mod sps;
pub(in crate::codec) mod visual;
pub(in crate::codec) mod vp9;
