//! Live streams and recordings.

mod balance;
mod captions;
mod channels;
pub(crate) mod cues;
mod hls;
mod http;
mod insert;
mod ladder;
mod ladder_viewers;
mod modules;
pub(crate) mod publish;
mod put;
mod recording;
mod reports;
mod rtmp;
pub(crate) mod rtsp;
mod slow;
mod sound;
pub(crate) mod sources;
mod time_shift;
mod time_shift_clips;
mod titles;
mod transport;
mod ts;
