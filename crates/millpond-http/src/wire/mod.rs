//! Connections to clients: HTTP/1.1, plain and over TLS, in a loop of this crate, so that file ranges leave a plain
//! connection by `sendfile`; HTTP/2 by the `h2` crate, with bodies read as clients take them.

mod body_writer;
mod budget;
mod client_frames;
mod error;
mod front_end;
mod h1;
mod http2;
mod http2_body;
mod last_reply;
mod listen;
mod meter;
mod metrics;
mod node_side;
mod protocol;
mod reply_head;
mod rewind;
mod service;
mod socket;
mod splice;
mod upload;

pub use error::ReplyError;
pub use front_end::{Exchange, FrontEnd, Peer, Reply};
pub use last_reply::LastReply;
pub use listen::{accept_nodes, accept_plain, accept_tls};
pub use meter::SendMeter;
pub use metrics::{ConnectionMetrics, Held, Transport};
pub use node_side::NodeSide;
pub use protocol::Protocol;
pub use service::Service;
pub use socket::closed;
pub use upload::{Upload, UploadError};
