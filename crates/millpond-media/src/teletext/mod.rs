//! Teletext subtitles (ETSI EN 300 706) of transport streams (ETSI EN 300 472): from PES packets to cues of WebVTT.
//!
//! [`TeletextDecoder`] takes the payloads of the PES packets of one stream, and gives each change of the text on the screen. It is pure,
//! and its memory is bounded.

mod alphabet;
mod cue;
mod decoder;
mod descriptor;
mod hamming;
mod packet;
mod page;

pub use cue::TeletextCue;
pub use decoder::{COMPLETE, TeletextChange, TeletextDecoder};
pub use descriptor::TeletextPage;
#[cfg(test)]
pub(crate) use packet::make;
