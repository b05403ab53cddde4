//! Makes codecs and sample entries from what streams state: session descriptions, parameter sets, frame headers.
//!
//! Each codec family has a file. It writes an ISO sample entry, which `parse_sample_entry` then reads. So a live stream's codec
//! has the same properties as a file's codec with the same configuration.

mod aac;
mod ac3;
mod av1;
mod avc;
mod configured;
mod entry;
mod flac;
mod hevc;
mod mpeg_audio;
mod opus;
mod pcm;
mod record;
mod vpx;
mod wvtt;

pub use aac::{aac, aac_lc};
pub use ac3::{ac3, eac3};
pub(crate) use ac3::{dac3, dec3};
pub use av1::av1;
pub(crate) use av1::av1_color;
pub use avc::{avc, avc_in_band};
pub(crate) use configured::{Pictures, alac_cookie, configured, flac_head, opus_head, shown};
pub use flac::flac;
pub use hevc::{hevc, hevc_in_band};
pub use mpeg_audio::mpeg_audio;
pub use opus::opus;
pub use pcm::pcm;
pub use record::parameter_sets;
pub(crate) use vpx::vp9_stated;
pub use vpx::{vp8, vp9};
pub use wvtt::wvtt;

use super::{Codec, parse_sample_entry};
use crate::{boxes::FourCc, codec::TrackKind, error::MediaError};

/// Most bytes of a decoder's configuration. Parameter sets of encoders have less than 1 KiB.
pub const MOST_CONFIGURATION: usize = 64 * 1024;

/// Path of errors about a sample entry that was made.
const PATH: &str = "made sample entry";

/// A codec with its sample entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Made {
    /// Codec and its configuration.
    pub codec: Codec,
    /// Kind of the track.
    pub kind: TrackKind,
    /// The whole sample entry box with its header, in ISO form: init segments contain it.
    pub sample_entry: Vec<u8>,
}

impl Made {
    /// Reads a sample entry for tracks with this `handler`.
    fn parsed(sample_entry: Vec<u8>, handler: &FourCc) -> Result<Self, MediaError> {
        let parsed = parse_sample_entry(&sample_entry, *handler, PATH, 0)?;
        Ok(Self { codec: parsed.codec, kind: parsed.kind, sample_entry })
    }
}
