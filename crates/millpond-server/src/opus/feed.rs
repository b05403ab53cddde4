//! A stream whose sound is Opus.

use millpond_package::MediaKind;
use millpond_sound::OpusTranscoder;
use millpond_stream::{Cues, Epoch, Feed, Format};
use std::sync::Arc;
use tokio::sync::watch;

/// The formats of a stream, with Opus instead of sound that is transcoded.
#[derive(Debug)]
pub(super) struct OpusFeed {
    of: Arc<dyn Feed>,
    formats: Vec<Option<Format>>,
}

impl OpusFeed {
    pub(super) fn new(of: Arc<dyn Feed>) -> Self {
        let formats = of.formats().iter().map(|format| format.as_ref().map(transcoded)).collect();
        Self { of, formats }
    }
}

impl Feed for OpusFeed {
    fn path(&self) -> &str {
        self.of.path()
    }

    fn id(&self) -> u64 {
        // Of the same tracks, others than those of the stream.
        self.of.id().rotate_left(32)
    }

    fn formats(&self) -> &[Option<Format>] {
        &self.formats
    }

    fn epoch(&self, number: u32) -> Option<Epoch> {
        let epoch = self.of.epoch(number)?;
        let formats = epoch.formats.iter().map(|format| format.as_ref().map(transcoded)).collect();
        Some(Epoch { formats, ..epoch })
    }

    fn cues(&self) -> Option<watch::Receiver<Cues>> {
        self.of.cues()
    }
}

/// Whether a track is sound that is transcoded.
pub(super) fn is_transcoded(format: &Format) -> bool {
    format.kind == MediaKind::Audio && !format.is_encrypted && OpusTranscoder::takes(&format.track)
}

fn transcoded(format: &Format) -> Format {
    let made = Some(format).filter(|format| is_transcoded(format)).and_then(|format| OpusTranscoder::of(&format.track));
    match made {
        Some((transcoder, track)) => Format { bandwidth: transcoder.bit_rate().into(), track, ..format.clone() },
        None => format.clone(),
    }
}
