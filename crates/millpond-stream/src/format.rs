//! Format of one track, independent of its origin.

use millpond_media::{Codec, Importance, SampleTable, movie::Track};
use millpond_package::{MediaKind, PresentedTrack};
use millpond_rtp::{
    payload::Packetizer,
    sdp_writer::{Described, FIRST_PAYLOAD_TYPE},
};

/// The format of one track. A stored title and a live feed give the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Format {
    /// Name in URLs, such as `v1`.
    pub name: String,
    /// Pictures, sound or text.
    pub kind: MediaKind,
    /// BCP 47 tag, where the language is known.
    pub language: Option<String>,
    /// Whether players should begin with this one of its kind.
    pub is_default: bool,
    /// Whether it is a picture unlike the main one.
    pub is_alternative: bool,
    /// Bits a second that a playback needs to its end ([`Bandwidth::sustained`](millpond_package::Bandwidth::sustained)); of a live
    /// source what its description says.
    pub bandwidth: u64,
    /// Whether its samples are encrypted.
    pub is_encrypted: bool,
    /// Codec, its configuration and timescale. It has no samples, edits or protection.
    pub track: Track,
}

impl Format {
    /// The format of a stored track; `None` for tracks without samples, such as sidecar subtitles.
    #[must_use]
    pub fn of(presented: &PresentedTrack) -> Option<Self> {
        let source = presented.source_track()?;
        let track = Track {
            id: source.id,
            kind: source.kind,
            timescale: source.timescale,
            language: source.language.clone(),
            name: source.name.clone(),
            enabled: source.enabled,
            alternate_group: source.alternate_group,
            purposes: source.purposes,
            captions: None,
            codec: source.codec.clone(),
            sample_entry: source.sample_entry.clone(),
            edits: Vec::new(),
            samples: SampleTable::default(),
            descriptions: None,
            protection: None,
        };
        Some(Self {
            name: presented.name().to_owned(),
            kind: presented.kind(),
            language: presented.language().map(str::to_owned),
            is_default: presented.is_default(),
            is_alternative: presented.is_alternative(),
            bandwidth: presented.stored_bandwidth().sustained,
            is_encrypted: source.protection.is_some(),
            track,
        })
    }

    /// Ticks of the track a second.
    #[must_use]
    pub fn timescale(&self) -> u32 {
        self.track.timescale.get()
    }

    /// Whether it has pictures.
    #[must_use]
    pub fn is_video(&self) -> bool {
        self.kind == MediaKind::Video
    }

    /// Whether it has subtitles as a transport stream brought them. They have few frames, and no decoder begins with them.
    #[must_use]
    pub fn is_private_text(&self) -> bool {
        matches!(self.track.codec, Codec::PrivateText(_))
    }

    /// How far later frames depend on a frame. That of an encrypted track can't be told.
    #[must_use]
    pub fn importance(&self, frame: &[u8]) -> Importance {
        match (self.is_encrypted, self.is_video()) {
            (true, true) => Importance::BASE,
            (_, true) => Importance::of(&self.track.codec, frame),
            (_, false) => Importance::SOUND,
        }
    }

    fn packetizer(&self) -> Option<Packetizer> {
        Packetizer::of(&self.track).filter(|_| !self.is_encrypted)
    }

    /// Returns why the track can't be sent by RTP, as the end of a sentence about it; `None` where it can.
    #[must_use]
    pub fn unsent(&self) -> Option<&'static str> {
        match self.packetizer() {
            Some(_) => None,
            None if self.kind == MediaKind::Text => Some("is not sent by RTSP, which has no subtitles"),
            None if self.is_encrypted => Some("is not sent by RTSP: it is encrypted"),
            None => Some("is not sent by RTSP: RTP has no payload format of it"),
        }
    }

    /// How the track is sent by RTP; `None` where its codec has no payload format. `number` is its index in the feed.
    #[must_use]
    pub fn described(&self, number: usize) -> Option<Described<'_>> {
        let packetizer = self.packetizer()?;
        let dynamic = FIRST_PAYLOAD_TYPE + (number % 32) as u8;
        let payload_type = packetizer.payload_type(&self.track).unwrap_or(dynamic);
        let Self { name, track, bandwidth, .. } = self;
        Some(Described { name, track, packetizer, bandwidth: *bandwidth, payload_type, keys: None, repeats: None })
    }
}
