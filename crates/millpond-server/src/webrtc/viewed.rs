//! The stream for a viewer's offer: that of its path, or the same with its sound as Opus.

use super::negotiation::lacks_sound;
#[cfg(feature = "transcode-sound")]
use crate::opus::{OpusStream, OpusStreams};
use millpond_stream::{Manager, Program};
use millpond_webrtc::sdp::PeerOffer;
use std::sync::Arc;

/// A stream for one viewer.
#[derive(Debug)]
pub(crate) struct Viewed {
    pub(super) program: Program,
    /// Path of the stream that was asked for.
    pub(super) path: String,
    /// Keeps the transcoding alive.
    pub(super) sound: Sound,
}

/// The transcoder of a viewer's sound.
#[derive(Debug, Default)]
pub(super) struct Sound {
    #[cfg(feature = "transcode-sound")]
    _stream: Option<Arc<OpusStream>>,
}

/// Finds sound for viewers whose player does not take that of a stream.
#[derive(Debug)]
pub(super) struct Sounds {
    #[cfg(feature = "transcode-sound")]
    streams: Option<OpusStreams>,
}

impl Sounds {
    /// Makes it; without `is_on` all streams are sent as they are.
    #[cfg_attr(not(feature = "transcode-sound"), expect(unused_variables))]
    pub(super) fn new(is_on: bool, manager: &Arc<Manager>) -> Self {
        Self {
            #[cfg(feature = "transcode-sound")]
            streams: is_on.then(|| OpusStreams::new(manager.clone())),
        }
    }

    /// Returns what a viewer with an offer gets of a stream. Sound that can't be had is left out.
    pub(super) async fn viewed(&self, program: Program, offer: &PeerOffer) -> Viewed {
        let path = program.path().to_owned();
        if lacks_sound(&program, offer)
            && let Some((program, sound)) = self.transcoded(&program).await
        {
            return Viewed { program, path, sound };
        }
        Viewed { program, path, sound: Sound::default() }
    }

    #[cfg(feature = "transcode-sound")]
    async fn transcoded(&self, program: &Program) -> Option<(Program, Sound)> {
        let streams = self.streams.as_ref().filter(|_| OpusStreams::takes(program))?;
        match streams.of(program).await {
            Ok((program, stream)) => Some((program, Sound { _stream: Some(stream) })),
            Err(error) => {
                tracing::warn!(stream = program.path(), %error, "sound can't be transcoded to Opus: viewers by WebRTC get none");
                None
            }
        }
    }

    #[cfg(not(feature = "transcode-sound"))]
    async fn transcoded(&self, _: &Program) -> Option<(Program, Sound)> {
        None
    }
}
