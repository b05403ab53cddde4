//! End-to-end tests: real servers, real players and decoders, and clients that misbehave.
//!
//! They are one program, so that it is linked once and tests that wait share the processors with tests that compute.

#[macro_use]
mod support;

mod access;
mod assets;
mod cluster;
mod http;
mod live;
mod operations;
mod rtsp;
mod storage;
