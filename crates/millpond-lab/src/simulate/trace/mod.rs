//! Traces of real use, in the forms that others write them in.

mod csv;
mod log;
mod oracle;

pub use csv::{read as csv, write as to_csv};
pub use log::read as log;
pub use oracle::read as oracle;

/// Why a trace can't be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{unit} {number}: expected {expected}, found {found:?}")]
pub struct TraceError {
    /// "line" or "record".
    pub unit: &'static str,
    /// Which, from 1.
    pub number: u64,
    /// Expected content.
    pub expected: &'static str,
    /// Content found.
    pub found: String,
}

/// The beginning of a text, for messages.
fn beginning(text: &str) -> String {
    text.chars().take(60).collect()
}

/// The largest object: 64 TiB, beyond what stores take, so that sums of lengths are numbers.
const LARGEST: u64 = 1 << 46;

/// A length in bytes.
fn length(text: &str) -> Option<u64> {
    text.parse().ok().filter(|length| *length <= LARGEST)
}

/// Returns what names an object: the number that its text is, else a hash of it.
fn name(text: &str) -> u64 {
    if let Ok(number) = text.parse() {
        return number;
    }
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}
