//! Sound that HLS with fMP4 and DASH do not list.

use millpond_media::codec::Codec;

/// The reason why HLS with fMP4 and DASH do not list a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unlisted {
    /// fMP4 has no form of its codec: G.711, and PCM of 8 bits.
    NoForm,
    /// Browsers can't decode the sound, but would choose it.
    BesideVideo,
}

impl Unlisted {
    /// Returns the reason for a track that is delivered in a codec.
    pub(crate) fn of(codec: &Codec, is_beside_video: bool) -> Option<Self> {
        match codec {
            codec if !codec.fits_fmp4() => Some(Self::NoForm),
            codec if is_beside_video && !codec.fits_beside_video() => Some(Self::BesideVideo),
            _ => None,
        }
    }

    /// Returns the end of a sentence about the track. PCM becomes FLAC, which both list, unless the asset `has_other_sound` than PCM.
    pub(crate) fn words(self, codec: &Codec, has_other_sound: bool) -> &'static str {
        match (self, codec) {
            (_, Codec::Pcm(_)) if has_other_sound => {
                "is not listed in HLS with fMP4 and DASH: it becomes FLAC for them only where all sound of the title is PCM or G.711"
            }
            (_, Codec::Pcm(_)) => {
                "is not listed in HLS with fMP4 and DASH: FLAC, which it would become, has at most 8 channels and no encryption"
            }
            (Self::NoForm, _) => "is not listed in HLS with fMP4 and DASH: fMP4 has no form of it",
            (Self::BesideVideo, _) => "is not listed in HLS with fMP4 and DASH next to video: browsers can't decode it",
        }
    }
}
