//! Closed captions within pictures, which playlists of live streams tell of.

use super::{Segment, TrackSegment, Window};
use millpond_media::{NalSyntax, codec::Codec};

impl Window {
    /// Whether the pictures of a track have no closed captions, as its newest complete segment shows. `false` where that can't be
    /// told: it left memory, or the codec is one whose captions are not known here.
    pub(crate) fn lacks_captions(&self, track: usize) -> bool {
        let is_closed = |segment: &&Segment| segment.track(track).is_some_and(TrackSegment::is_closed);
        let Some(segment) = self.segments().rev().find(is_closed) else { return false };
        let format = self.epoch(segment.epoch).and_then(|epoch| epoch.formats.get(track)?.as_ref());
        let Some((codec, of_track)) = format.map(|format| &format.track.codec).zip(segment.track(track)) else {
            return false;
        };
        let mut samples = of_track.parts().iter().flat_map(|part| part.bytes.iter().skip(1)).peekable();
        match (NalSyntax::of(codec), codec) {
            (Some((syntax, length_size)), _) => {
                samples.peek().is_some()
                    && !samples.any(|sample| units(sample, length_size).any(|unit| syntax.has_captions(unit)))
            }
            // VP8 and VP9 have no place for them.
            (None, Codec::Vp9(_)) => true,
            (None, _) => false,
        }
    }
}

/// Returns the NAL units of a sample, each after its length (ISO/IEC 14496-15 4.3.2). It ends at a length beyond the sample.
fn units(mut sample: &[u8], length_size: u8) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, rest) = sample.split_at_checked(length_size.into())?;
        let length = length.iter().fold(0_usize, |length, byte| length << 8 | usize::from(*byte));
        let (unit, rest) = rest.split_at_checked(length)?;
        sample = rest;
        Some(unit)
    })
}

#[cfg(test)]
mod tests {
    use crate::{
        delivery::container::Container,
        hls::{ladder_multivariant, live_multivariant},
        live::{
            Rung,
            testing::{LIMITS, cut, film, rules, window},
        },
    };
    use bytes::Bytes;

    const NONE: &str = ",CLOSED-CAPTIONS=NONE";

    #[test]
    fn streams_without_captions_say_so() {
        let captions: &[u8] = &[0, 0, 0, 1, 9, 0, 0, 0, 11, 6, 4, 8, 0xb5, 0, 0x31, b'G', b'A', b'9', b'4', 3, 0x80];
        let without: &[u8] = &[0, 0, 0, 1, 9, 0, 0, 0, 3, 6, 5, 0];
        let list = |last: &'static [u8]| {
            let mut film = film(3, 50);
            let pictures = film.iter_mut().filter(|(track, _)| *track == 0);
            for (place, (_, sample)) in pictures.enumerate() {
                sample.data = Bytes::from_static(if place == 49 { last } else { without });
            }
            window(LIMITS, cut(rules(), film))
        };
        let (silent, captioned) = (list(without), list(captions));
        for container in [Container::Fmp4, Container::Ts] {
            assert!(live_multivariant(&silent, container).unwrap().contains(NONE), "{container:?}");
            assert!(!live_multivariant(&captioned, container).unwrap().contains(NONE), "{container:?}");
        }
        // Each variant says so, or none does.
        let rung = |base, window| Rung { base, run: "0a", window };
        assert_eq!(ladder_multivariant(&[rung("a/", &silent), rung("b/", &silent)]).unwrap().matches(NONE).count(), 2);
        assert!(!ladder_multivariant(&[rung("a/", &silent), rung("b/", &captioned)]).unwrap().contains(NONE));
    }
}
