//! Sound as Opus, the only transcoding of this program: peers of WebRTC decode no AAC and no PCM (RFC 7874).
//!
//! A module of the kind `opus` passes the frames of a stream on with its sound as Opus ([`module`]). Viewers by WebRTC get one by
//! themselves where they need it, all viewers of a stream the same one ([`OpusStreams`]).

mod feed;
mod module;
mod streams;

pub(crate) use module::OpusKind;
pub(crate) use streams::{OpusStream, OpusStreams};
