//! Captions within the pictures of a running stream.

use super::{Part, Segment, TrackSegment, Window};
use crate::presentation::captions::CaptionRule;
use millpond_media::{CaptionChannels, NalSyntax, codec::Codec};

impl Window {
    /// The rule by which manifests announce captions within pictures.
    pub(crate) fn caption_rule(&self) -> &CaptionRule {
        &self.caption_rule
    }

    /// Channels of the captions within a track's pictures. A channel that was seen once stays: players load a multivariant
    /// playlist once. Until one is seen, the newest complete segment tells whether there are none.
    pub(super) fn captions(&self, track: usize) -> Option<CaptionChannels> {
        let seen = self.captions.get(track)?.found();
        (!seen.is_empty() || self.lacks_captions(track)).then_some(seen)
    }

    /// Searches the pictures of a part for channels.
    pub(super) fn search_captions(&mut self, part: &Part) {
        let codec = self.segment(part.segment).and_then(|segment| self.codec(segment, part.track));
        let Some(syntax) = codec.and_then(NalSyntax::of) else { return };
        if let Some(search) = self.captions.get_mut(part.track) {
            part.bytes.iter().skip(1).for_each(|picture| search.picture(syntax, picture));
        }
    }

    /// Whether the pictures of a track have no closed captions, as its newest complete segment shows. `false` where the
    /// segment left memory, or where captions of its codec are not known.
    fn lacks_captions(&self, track: usize) -> bool {
        let is_closed = |segment: &&Segment| segment.track(track).is_some_and(TrackSegment::is_closed);
        let Some(segment) = self.segments().rev().find(is_closed) else { return false };
        let Some((codec, of_track)) = self.codec(segment, track).zip(segment.track(track)) else { return false };
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

    /// Codec of a track in a segment.
    fn codec(&self, segment: &Segment, track: usize) -> Option<&Codec> {
        let format = self.epoch(segment.epoch)?.formats.get(track)?.as_ref()?;
        Some(&format.track.codec)
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
    use super::*;
    use crate::{
        dash::live::{ManifestView, ladder_mpd, mpd},
        delivery::container::Container,
        hls::{ladder_multivariant, live_multivariant},
        live::{
            Extent, Rung,
            testing::{LIMITS, cut, film, rules, window},
        },
    };
    use bytes::Bytes;
    use std::{sync::Arc, time::Duration};

    const NONE: &str = ",CLOSED-CAPTIONS=NONE";
    /// A picture without captions.
    const PLAIN: &[u8] = &[0, 0, 0, 1, 9, 0, 0, 0, 3, 6, 5, 0];
    /// A picture with a message whose bytes are cut off.
    const UNCLEAR: &[u8] = &[0, 0, 0, 1, 9, 0, 0, 0, 11, 6, 4, 8, 0xb5, 0, 0x31, b'G', b'A', b'9', b'4', 3, 0x80];
    const VIEW: ManifestView<'static> = ManifestView {
        run: "0a",
        clock: "/time",
        published: Duration::from_secs(1_795_341_605),
        away: Duration::ZERO,
        extent: Extent::Edge,
    };

    /// The command RCL in `CC1`.
    const LOAD: &[u8] =
        &[0, 0, 0, 18, 6, 4, 14, 0xb5, 0, 0x31, b'G', b'A', b'9', b'4', 3, 0xc1, 0xff, 0xfc, 0x94, 0x20, 0xff, 0x80];

    /// A stream of pictures without captions, but for one.
    fn stream(seconds: i64, (place, picture): (usize, &'static [u8])) -> Window {
        let mut film = film(seconds, 50);
        for (index, (_, sample)) in film.iter_mut().filter(|(track, _)| *track == 0).enumerate() {
            sample.data = Bytes::from_static(if index == place { picture } else { PLAIN });
        }
        window(LIMITS, cut(rules(), film))
    }

    fn rung<'a>(base: &'a str, window: &'a Window) -> Rung<'a> {
        Rung { base, run: "0a", window }
    }

    #[test]
    fn streams_without_captions_say_so() {
        let (silent, unclear) = (stream(3, (49, PLAIN)), stream(3, (49, UNCLEAR)));
        for container in [Container::Fmp4, Container::Ts] {
            assert!(live_multivariant(&silent, container).unwrap().contains(NONE), "{container:?}");
            let unknown = live_multivariant(&unclear, container).unwrap();
            assert!(!unknown.contains("CLOSED-CAPTIONS"), "{container:?}: {unknown}");
        }
        // Each variant says so, or none does.
        assert_eq!(ladder_multivariant(&[rung("a/", &silent), rung("b/", &silent)]).unwrap().matches(NONE).count(), 2);
        assert!(!ladder_multivariant(&[rung("a/", &silent), rung("b/", &unclear)]).unwrap().contains(NONE));
    }

    #[test]
    fn a_channel_that_was_seen_stays() {
        let media = "#EXT-X-MEDIA:TYPE=CLOSED-CAPTIONS,GROUP-ID=\"cc\",NAME=\"CC1\",DEFAULT=NO,AUTOSELECT=YES,\
            INSTREAM-ID=\"CC1\"\n";
        let of_608 = "<Accessibility schemeIdUri=\"urn:scte:dash:cc:cea-608:2015\" value=\"CC1=und\"/>";
        // In the first segment, and in the one that is not complete.
        let silent = stream(9, (0, PLAIN));
        for place in [10, 210] {
            let captioned = stream(9, (place, LOAD));
            for container in [Container::Fmp4, Container::Ts] {
                let list = live_multivariant(&captioned, container).unwrap();
                assert!(list.contains(media) && list.contains(",CLOSED-CAPTIONS=\"cc\"\n"), "{place}: {list}");
            }
            assert_eq!(mpd(&captioned, &VIEW).unwrap().matches(of_608).count(), 1, "{place}");
            let rungs = [rung("a/", &silent), rung("b/", &captioned)];
            let list = ladder_multivariant(&rungs).unwrap();
            assert_eq!(list.matches(",CLOSED-CAPTIONS=\"cc\"\n").count(), 2, "{place}: {list}");
            assert_eq!(ladder_mpd(&rungs, &VIEW).unwrap().matches(of_608).count(), 1, "{place}");
        }
        assert!(!mpd(&silent, &VIEW).unwrap().contains("urn:scte:dash:cc"));
    }

    #[test]
    fn the_rule_of_the_place_wins() {
        let list = |rule: &str, picture| {
            let rule = Arc::new(CaptionRule::parse(rule).unwrap());
            live_multivariant(&stream(3, (5, picture)).with_captions(rule), Container::Fmp4).unwrap()
        };
        for picture in [PLAIN, UNCLEAR, LOAD] {
            let stated = list("CC3=es", picture);
            assert!(stated.contains("LANGUAGE=\"es\"") && stated.contains("INSTREAM-ID=\"CC3\""), "{stated}");
            assert!(!stated.contains("CC1"), "{stated}");
            let off = list("off", picture);
            assert!(off.contains(NONE) && !off.contains("TYPE=CLOSED-CAPTIONS"), "{off}");
        }
    }
}
