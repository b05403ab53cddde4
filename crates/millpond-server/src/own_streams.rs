//! Streams that the server makes for itself of others.

/// Begin of their paths. No place has it.
const PREFIX: &str = "~opus/";

/// Returns the path of the stream that is another one with its sound as Opus.
#[cfg(feature = "transcode-sound")]
pub(crate) fn with_opus(path: &str) -> String {
    format!("{PREFIX}{path}")
}

/// Whether a path is that of such a stream: nobody publishes it.
pub(crate) fn is_own(path: &str) -> bool {
    path.starts_with(PREFIX)
}
