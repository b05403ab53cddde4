//! Byte range and presentation time of a segment's media, for caches that predict the needs of viewers.

use crate::{
    ObjectIndex,
    delivery::transport,
    plan::ObjectRange,
    presentation::{
        Presentation,
        track::{MediaTrack, PresentedTrack},
    },
};
use millpond_media::units::ByteRange;
use std::ops::Range;

/// Byte range of a segment's samples, from the first to the last, including everything between them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch {
    /// Object that contains the samples.
    pub object: ObjectIndex,
    /// From the first byte of the first sample to the last byte of the last one.
    pub range: ByteRange,
    /// Start of the segment, in seconds of the presentation.
    pub start: f64,
    /// End of the segment.
    pub end: f64,
}

impl PresentedTrack {
    /// Returns the stretch of segment `number` (from 1), in two look-ups. `None` where there is no such segment, and
    /// for sidecars.
    #[must_use]
    pub fn stretch(&self, number: u32) -> Option<Stretch> {
        let info = self.segment(number)?;
        self.stretch_of(self.media()?, number, info.samples)
    }

    /// Returns the stretch of the audio that is muxed into the track's transport stream segment, if any.
    #[must_use]
    pub fn muxed_stretch(&self, presentation: &Presentation, number: u32) -> Option<Stretch> {
        let (media, samples) = transport::muxed_samples(presentation, self, number)?;
        self.stretch_of(media, number, samples)
    }

    fn stretch_of(&self, media: &MediaTrack, number: u32, samples: Range<u32>) -> Option<Stretch> {
        let info = self.segment(number)?;
        let ObjectRange { object, range } = match self.fragments(number) {
            Some(fragments) => ObjectRange { object: media.object, range: fragments.range },
            None => media.place(of_samples(media, samples)?),
        };
        let seconds = |ticks| info.timescale.seconds(ticks);
        Some(Stretch {
            object,
            range,
            start: seconds(info.start),
            end: seconds(info.start.saturating_add(info.duration)),
        })
    }
}

/// Returns the bytes from the first sample to the last.
fn of_samples(media: &MediaTrack, samples: Range<u32>) -> Option<ByteRange> {
    let table = &media.track().samples;
    let first = media.timeline.at(table, samples.start)?.sample.range;
    let last = media.timeline.at(table, samples.end.checked_sub(1)?)?.sample.range;
    Some(ByteRange::new(first.start.min(last.start), first.end.max(last.end)))
}

#[cfg(test)]
mod tests {
    use crate::testing::{audio, frames, movie, presentation, reordered, table, video};

    #[test]
    fn stretches_follow_each_other_and_cover_their_samples() {
        let p = presentation(vec![movie(vec![
            video(table(&reordered(250, 25, 1000), 48, 1), 12_800, Vec::new()),
            audio(table(&frames(468), 1 << 24, 1), "eng", Vec::new()),
        ])]);
        let video = p.track("v1").unwrap();
        let all: Vec<_> = (1..=video.segment_count()).map(|n| video.stretch(n).unwrap()).collect();
        assert!(all.len() > 1);
        for (number, stretch) in (1..).zip(&all) {
            let samples = video.samples(&video.segment(number).unwrap());
            assert!(samples.iter().all(|s| stretch.range.start <= s.sample.range.start));
            assert!(samples.iter().all(|s| stretch.range.end >= s.sample.range.end));
            let muxed = video.muxed_stretch(&p, number).unwrap();
            assert!(muxed.range.start >= 1 << 24, "the audio lies behind the video");
            assert_eq!((muxed.start, muxed.end), (stretch.start, stretch.end));
        }
        assert!(all.windows(2).all(|w| w[0].end == w[1].start && w[0].range.end <= w[1].range.start));
        assert!(video.stretch(0).is_none() && video.stretch(all.len() as u32 + 1).is_none());
        assert!(p.track("a1").unwrap().muxed_stretch(&p, 1).is_none());
    }
}
