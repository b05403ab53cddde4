//! Teletext subtitles of a feed on their way into a window.

use crate::{Frame, live::PackagedTrack, ticks::ticks};
use bytes::Bytes;
use millpond_media::{
    teletext::{COMPLETE, TeletextChange, TeletextCue, TeletextDecoder},
    units::Timescale,
};
use millpond_package::live::{Cut, TEXT_CLOCK, TEXT_DELAY, TextCutter};
use std::time::Duration;

/// Decodes the teletext tracks of a feed, and cuts their subtitles.
#[derive(Debug)]
pub(super) struct Texts {
    streams: Vec<Stream>,
    cutter: TextCutter,
    changes: Vec<TeletextChange>,
}

/// A teletext track of the feed.
#[derive(Debug)]
struct Stream {
    /// Index in the formats of the feed.
    track: u16,
    decoder: TeletextDecoder,
    /// Place of its first page among the subtitles of the window.
    first: usize,
    pages: usize,
}

impl Texts {
    /// Makes one for the tracks of a window, whose leading track has an index and a clock.
    pub(super) fn new(tracks: &[PackagedTrack], lead: (usize, Timescale)) -> Self {
        let mut streams: Vec<Stream> = Vec::new();
        let texts: Vec<_> = tracks.iter().filter(|track| track.is_text()).collect();
        let mut first = 0;
        for of_stream in texts.chunk_by(|a, b| a.track == b.track) {
            let pages: Vec<_> = of_stream.iter().filter_map(|track| track.page.clone()).collect();
            let (Some(track), count) = (of_stream.first(), pages.len()) else { continue };
            let decoder = TeletextDecoder::new(pages);
            streams.push(Stream { track: track.track, decoder, first, pages: count });
            first += count;
        }
        let indexes = (0..).zip(tracks).filter(|(_, track)| track.is_text()).map(|(index, _)| index);
        Self { streams, cutter: TextCutter::new(lead, indexes), changes: Vec::new() }
    }

    /// Takes a frame, if it is one of teletext. `shift` is added to times of the feed.
    pub(super) fn push(&mut self, frame: &Frame, shift: Duration) {
        let Some(stream) = self.streams.iter_mut().find(|stream| stream.track == frame.track) else { return };
        let at = frame.pts.saturating_add(ticks(shift, TEXT_CLOCK));
        stream.decoder.push(&frame.data, at, &mut self.changes);
        stream.tell(&mut self.changes, &mut self.cutter);
        // A page may have begun that is not complete yet.
        let reached = at.saturating_sub(COMPLETE);
        (stream.first..stream.first + stream.pages).for_each(|lane| self.cutter.reach(lane, reached));
    }

    /// Takes note of what was cut, and adds segments of subtitles to it. `now` is the time of the last frame in the window.
    pub(super) fn cut(&mut self, now: Duration, cuts: &mut Vec<Cut>) {
        if self.streams.is_empty() {
            return;
        }
        cuts.iter().for_each(|cut| self.cutter.observe(cut));
        let now = ticks(now, TEXT_CLOCK);
        for stream in &mut self.streams {
            stream.decoder.advance(now.saturating_sub(TEXT_DELAY), &mut self.changes);
            stream.tell(&mut self.changes, &mut self.cutter);
        }
        self.cutter.advance(now, cuts);
    }

    /// Ends the epoch, after what was cut.
    pub(super) fn discontinue(&mut self, cuts: &mut Vec<Cut>) {
        if self.streams.is_empty() {
            return;
        }
        cuts.iter().for_each(|cut| self.cutter.observe(cut));
        for stream in &mut self.streams {
            // The text on the screen stays to the end of the epoch.
            stream.decoder.finish(i64::MAX, &mut self.changes);
            stream.tell(&mut self.changes, &mut self.cutter);
        }
        self.cutter.discontinue(cuts);
    }
}

impl Stream {
    /// Gives the changes of its pages to the cutter.
    fn tell(&self, changes: &mut Vec<TeletextChange>, cutter: &mut TextCutter) {
        for TeletextChange { page, at, cues } in changes.drain(..) {
            cutter.change(self.first + page, at, Bytes::from(TeletextCue::sample(&cues)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        live::packaged,
        transport_stream::tests::{formats, teletext},
    };
    use millpond_package::live::SegmentNumber;

    const LEAD: (usize, Timescale) = (0, Timescale::MPEG);

    fn closed(segment: u64, start: i64) -> Cut {
        Cut::Closed { track: 0, segment: SegmentNumber(segment), start, duration: 180_000 }
    }

    /// Segments of subtitles: track, number, and samples with their durations.
    type Made = (usize, u64, Vec<(u32, bool)>);

    fn made(cuts: &[Cut]) -> Vec<Made> {
        let samples = |cut: &Cut| match cut {
            Cut::Part(part) => {
                let samples = part.rows.iter().zip(part.bytes.iter().skip(1));
                let shown = samples.map(|(row, data)| (row.duration, data.ends_with(b"paylHi")));
                Some((part.track, part.segment.0, shown.collect()))
            }
            _ => None,
        };
        cuts.iter().filter_map(samples).collect()
    }

    #[test]
    fn pages_become_segments_of_their_own_tracks() {
        let (format, text) = teletext();
        let all = [formats(), vec![format]].concat();
        let tracks = packaged((0..).zip(&all).filter_map(|(track, format)| Some((track, format.as_ref()?))));
        let names: Vec<_> = tracks.iter().map(|track| (track.name.as_str(), track.is_text())).collect();
        assert_eq!(names, [("t1", false), ("t2", false), ("text1", true)]);
        let mut texts = Texts::new(&tracks, LEAD);
        let shift = Duration::from_secs(10);
        texts.push(&text, shift);
        texts.push(&Frame { track: 1, pts: 0, ..text.clone() }, shift);
        let mut cuts = vec![closed(5, 1_100_000)];
        texts.cut(Duration::from_millis(14_300), &mut cuts);
        assert_eq!(cuts.len(), 1, "subtitles of its time may arrive");
        cuts.clear();
        texts.push(&Frame { pts: 400_000, data: Bytes::from_static(&[0x10]), ..text }, shift);
        texts.cut(Duration::from_millis(14_400), &mut cuts);
        assert_eq!(made(&cuts), [(2, 5, vec![(80_000, false), (100_000, true)])]);
        let mut cuts = vec![closed(6, 1_280_000)];
        texts.discontinue(&mut cuts);
        assert_eq!(made(&cuts), [(2, 6, vec![(180_000, true)])], "the text stays to the end of the epoch");
        let mut cuts = vec![closed(7, 1_460_000)];
        texts.cut(Duration::from_secs(60), &mut cuts);
        assert_eq!(made(&cuts), [(2, 7, vec![(180_000, false)])]);
    }

    #[test]
    fn subtitles_alone_are_no_tracks() {
        let (format, _) = teletext();
        assert!(packaged([(0, format.as_ref().unwrap())]).is_empty());
        let mut cuts = vec![closed(1, 0)];
        Texts::new(&[], LEAD).discontinue(&mut cuts);
        assert_eq!(cuts, [closed(1, 0)]);
    }
}
