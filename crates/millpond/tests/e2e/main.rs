//! End-to-end tests: real servers, real players and decoders, and clients that misbehave.
//!
//! They are one program, so that it is linked once and tests that wait share the processors with tests that compute.

#[macro_use]
mod support;

mod assets;
mod cache;
mod cli;
mod cluster;
mod crowd;
mod damage;
mod downstream_cache;
mod encrypted;
mod exact;
mod exposure;
mod faults;
mod hostile;
mod http;
mod http1_conformance;
mod http2;
mod intercept;
mod library;
mod live_balance;
mod live_channels;
mod live_cues;
mod live_hls;
mod live_http;
mod live_insert;
mod live_ladder;
mod live_publish;
mod live_put;
mod live_reports;
mod live_rtmp;
mod live_rtsp;
mod live_slow;
mod live_sound;
mod live_sources;
mod live_transport;
mod live_ts;
mod load_rtsp;
mod log_lines;
mod lying_origin;
mod made_anew;
mod metrics;
mod prefetch;
mod process;
mod quicktime;
mod random_access;
mod recording;
mod replies;
mod retransmission;
mod rtsp;
mod rtsp_admission;
mod rtsp_capture;
mod rtsp_channels;
mod rtsp_clients;
mod rtsp_limits;
mod rtsp_secure;
mod rtsp_shift;
mod rtsp_srtp;
mod slow_clients;
mod stripe;
mod time_shift;
mod time_shift_clips;
mod traffic;
mod versions;
