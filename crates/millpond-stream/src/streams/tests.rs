//! Streams of a source that tests drive.

mod attaching;
mod channel;
mod copies;
pub(crate) mod fake;
mod key_frame;
mod notices;
mod past;
mod sharing;
mod sources;
mod tempo;
mod windows;

#[expect(unreachable_pub, reason = "a variant of a public type has it")]
pub use fake::Fake;
