//! RTSP viewers and connections.

mod admission;
mod capture;
mod channels;
mod clients;
mod intercept;
pub(crate) mod limits;
mod load;
mod phases;
mod refusals;
mod retransmission;
mod secure;
pub(crate) mod sessions;
mod shift;
mod srtp;
