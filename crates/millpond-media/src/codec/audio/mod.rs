//! Codecs of sound, and the channels and rates that their sample entries state.

pub(in crate::codec) mod aac;
pub(in crate::codec) mod ac3;
pub(in crate::codec) mod ac3_frame;
pub(in crate::codec) mod adts;
pub(in crate::codec) mod alac;
pub(in crate::codec) mod asc;
pub(in crate::codec) mod chan;
pub(in crate::codec) mod esds;
pub(in crate::codec) mod flac;
pub mod latm;
pub(in crate::codec) mod mpeg_audio;
pub(crate) mod opus;
pub(in crate::codec) mod pcm;
pub(in crate::codec) mod sound;
