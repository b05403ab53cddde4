//! RTSP through HTTP: what a connection begins with, and the base64 that its requests come in.
//!
//! A tunnel is two HTTP connections of one client: what the server sends is the endless reply to a GET, what the client
//! sends is the endless body of a POST, as base64. A cookie that the client made up joins them. QuickTime brought it
//! up; no standard describes it.

mod base64;
mod opening;

pub use self::{
    base64::{Decoder, NotBase64},
    opening::{Half, Opening, recognize},
};
