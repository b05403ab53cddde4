//! RTSP through HTTP: recognises tunnels, and decodes the base64 of their requests.
//!
//! A tunnel consists of two HTTP connections of one client. The server sends in the endless reply to a GET, the client
//! in the endless body of a POST, as base64. A cookie of the client's choice joins them. QuickTime introduced it; no
//! standard describes it.

mod base64;
mod opening;

pub use self::{
    base64::{Decoder, NotBase64},
    opening::{Half, Opening, recognize},
};
