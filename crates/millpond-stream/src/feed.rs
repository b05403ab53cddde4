//! Where frames enter a graph.

use crate::{Format, cues::Cues, epoch::Epoch};
use millpond_package::MediaKind;
use std::sync::Arc;
use tokio::sync::watch;

/// Part of the media that headers of RTP packets are at most: 14 to 20 bytes of a full packet of 1.2 to 1.4 kB.
const RTP_HEADERS: u64 = 64;

/// The origin of frames: a stored title, or a live stream.
pub trait Feed: std::fmt::Debug + Send + Sync + 'static {
    /// Path in URLs.
    fn path(&self) -> &str;

    /// Differs whenever anything differs that a frame depends on.
    fn id(&self) -> u64;

    /// The formats of its tracks. [`Frame::track`](crate::Frame::track) is an index of it; `None` for tracks without frames.
    fn formats(&self) -> &[Option<Format>];

    /// An epoch by its number; `None` where it is unknown, or the feed has none.
    fn epoch(&self, number: u32) -> Option<Epoch> {
        let _ = number;
        None
    }

    /// The cues of its source; `None` where the feed has none.
    fn cues(&self) -> Option<watch::Receiver<Cues>> {
        None
    }
}

impl dyn Feed {
    /// The format of a track.
    pub fn format(&self, track: u16) -> Option<&Format> {
        self.formats().get(usize::from(track))?.as_ref()
    }

    /// The formats of an epoch; `None` where it is unknown, or the feed has none.
    pub fn formats_of(&self, epoch: u32) -> Option<Arc<[Option<Format>]>> {
        Some(self.epoch(epoch)?.formats)
    }

    /// Bits a second that a session of some of its tracks needs to its end, headers of RTP included.
    pub fn rate(&self, tracks: impl IntoIterator<Item = u16>) -> u64 {
        let media = tracks.into_iter().filter_map(|track| self.format(track)).map(|format| format.bandwidth);
        let media = media.fold(0, u64::saturating_add);
        media.saturating_add(media / RTP_HEADERS)
    }

    /// Returns the tracks to describe, with their indexes: pictures, and sound of the default language. Pictures are of the named
    /// rendition. Else they are the best pictures that need at most `most` bits a second together with the sound, or the
    /// pictures that need the least.
    pub fn chosen(&self, rendition: Option<&str>, most: Option<u64>) -> Vec<(usize, &Format)> {
        let all: Vec<_> = self.formats().iter().enumerate().filter_map(|(n, f)| Some((n, f.as_ref()?))).collect();
        let of =
            |kind| all.iter().copied().filter(move |(n, format)| format.kind == kind && format.described(*n).is_some());
        let named = rendition.and_then(|name| all.iter().copied().find(|(_, format)| format.name == name));
        let audio = named.filter(|(_, format)| format.kind == MediaKind::Audio);
        if audio.is_some() {
            return audio.into_iter().collect();
        }
        let audio = of(MediaKind::Audio).find(|(_, format)| format.is_default).or_else(|| of(MediaKind::Audio).next());
        let left = most.map(|most| most.saturating_sub(audio.map_or(0, |(_, format)| format.bandwidth)));
        let main = of(MediaKind::Video).filter(|(_, format)| !format.is_alternative);
        let best = main.rev().find(|(_, format)| left.is_none_or(|left| format.bandwidth <= left));
        let video = named.filter(|(_, format)| format.kind == MediaKind::Video);
        let video = video.or(best).or_else(|| of(MediaKind::Video).next());
        video.into_iter().chain(audio).collect()
    }
}
