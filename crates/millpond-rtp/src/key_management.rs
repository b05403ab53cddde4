//! How the two sides of an RTSP session tell each other the keys of their [SRTP](crate::srtp).
//!
//! [`mikey`] are the messages of RFC 3830 and [`carriage`] the attribute and the header that they come in (RFC 4567): what GStreamer,
//! cameras and mediamtx speak. They have the key in plain sight, so that they belong on connections that are encrypted themselves
//! (RTSPS). The `crypto` attribute of RFC 4568 is not written: FFmpeg then takes for SRTP what it asks for in the clear.
//!
//! Each side tells the key of what it sends: the server's is in the description, for RTP and for its reports; the
//! client's is in its SETUP, for the reports that it sends. Time and chance are arguments.

pub mod carriage;
pub mod mikey;

use base64::{
    alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

/// Some leave out the padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);
