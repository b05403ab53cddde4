//! RTSP, SDP, RTP payload formats both ways, and RTCP.
//!
//! Pure: no socket, no clock, no runtime. Bytes and times are arguments; results are messages, packets and decisions.
//!
//! - [`tunnel`] recognises RTSP through HTTP, and [`framing`] splits a connection's bytes into messages.
//! - [`setup`], [`play`] and [`digest`] interpret requests: transports, ranges and credentials.
//! - [`sdp_writer`] writes the SDP of an asset's tracks, and [`payload`] divides frames into packets.
//! - [`packet`] and [`rtcp`] have the packet formats of RFC 3550, [`feedback`] has the formats of RFC 4585, and [`rtx`] the
//!   format of RFC 4588.
//! - [`tfrc`] computes the rate that is fair beside TCP, and [`transport_cc`] tells a sender when its packets arrived.
//! - [`srtp`] encrypts packets, and [`key_management`] exchanges its keys.
//! - For receivers, [`sdp_reader`] reads an SDP, [`reception`] keeps the statistics of a source, and a
//!   [`payload::Depacketizer`] joins packets to frames. [`client::RtspClient`] is the client of a session, and a
//!   [`receive::TrackReceiver`] receives one track of it.
//!
//! This crate knows no assets, files or destinations of packets.
#![cfg_attr(not(test), forbid(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

pub mod client;
pub mod digest;
pub mod feedback;
pub mod framing;
pub mod key_management;
pub mod packet;
pub mod payload;
pub mod play;
pub mod receive;
pub mod reception;
pub mod rtcp;
pub mod rtx;
pub mod sdp_reader;
pub mod sdp_writer;
pub mod setup;
pub mod srtp;
#[cfg(feature = "tfrc")]
pub mod tfrc;
pub mod transport_cc;
pub mod tunnel;

pub use rtsp_types as message;
