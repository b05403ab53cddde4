//! RTSP, SDP, RTP payload formats both ways, and RTCP.
//!
//! Pure: no socket, no clock, no runtime. Bytes and times come in as arguments; what comes out are messages, packets
//! and decisions. [`tunnel`] sees what a connection begins with, [`framing`] takes its bytes apart, [`setup`] and
//! [`play`] decide what a request means, [`digest`] who may ask. [`description`] writes the SDP of an asset's tracks,
//! [`payload`] cuts frames into packets, [`packet`] and [`rtcp`] are the forms of RFC 3550.
//!
//! [`srtp`] encrypts packets, and [`key_management`] tells its keys.
//!
//! In the other direction [`sdp_reader`] reads an SDP, [`reception`] counts what comes of a source, and a
//! [`payload::Depacketizer`] puts its packets together to frames.
//!
//! What it does not know: assets, files, where packets go.
#![cfg_attr(not(test), forbid(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

pub mod description;
pub mod digest;
pub mod framing;
pub mod key_management;
pub mod packet;
pub mod payload;
pub mod play;
pub mod reception;
pub mod rtcp;
pub mod sdp_reader;
pub mod setup;
pub mod srtp;
pub mod tunnel;

pub use rtsp_types as message;
