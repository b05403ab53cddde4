//! Exchange of [SRTP](crate::srtp) keys between the two sides of an RTSP session.
//!
//! [`mikey`] has the messages of RFC 3830, and [`carriage`] the attribute and the header that contain them (RFC 4567),
//! as GStreamer, cameras and mediamtx use them. They contain the key unencrypted, so the connection must be encrypted
//! (RTSPS). The `crypto` attribute of RFC 4568 is not written, because FFmpeg then expects SRTP although it requested
//! plain RTP.
//!
//! Each side announces the key of the packets it sends. The server's key is in the description, for RTP and its RTCP
//! reports. The client's key is in its SETUP, for its reports. Times and random numbers are arguments.

pub mod carriage;
pub mod mikey;

use base64::{
    alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

/// Some peers omit the padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);
