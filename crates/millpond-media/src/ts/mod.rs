//! MPEG-2 transport streams (ISO/IEC 13818-1): from bytes to frames.
//!
//! [`Demultiplexer`] takes bytes and gives programmes, streams, PES packets, clocks and cues. A [`Framer`] takes the PES packets
//! of one stream and gives frames as MP4 files hold them, and the codec's configuration. A [`SpliceSection`] has the announcement
//! of a cue. All are pure and take no more memory than the bytes that they were given justify.

mod alignment;
mod clock;
mod coding;
mod continuity;
mod demultiplexer;
mod descriptor;
mod dvb_text;
mod event;
mod frames;
mod iso6937;
mod iso8859;
mod packet;
mod pes;
mod section;
mod service;
mod splice;
mod tables;

#[cfg(test)]
pub(crate) mod mux;
#[cfg(test)]
mod tests;

pub use coding::StreamCoding;
pub use demultiplexer::{Demultiplexer, TsLimits};
pub use event::{PesUnit, TsEvent, TsFault, TsFaultKind};
pub use frames::{FrameFault, Framed, Framer, TsConfiguration, TsFrame};
pub(crate) use frames::{byte_stream_units, find_start_code, frame_of};
pub(crate) use packet::{SIZE, SYNC};
pub use section::checksum;
pub(crate) use service::ServiceNames;
pub use splice::{SpliceError, SpliceEvent, SpliceKind, SpliceMeaning, SpliceSection};
pub use tables::{Programme, ProgrammeStreams, TsStream};
