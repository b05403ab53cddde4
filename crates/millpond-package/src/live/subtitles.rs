//! Segments of live subtitles as WebVTT (RFC 8216 3.5).

use super::{
    part::{Part, SegmentNumber},
    texts::TEXT_CLOCK,
    window::Window,
};
use crate::{
    delivery::container::Container,
    text::{webvtt, wvtt},
};
use bytes::Bytes;
use millpond_media::units::Timescale;

/// A sample of WebVTT in MP4, with times of its stream in ticks of [`TEXT_CLOCK`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextSample {
    /// Beginning of its display.
    pub start: i64,
    /// Ticks that it lasts.
    pub duration: u32,
    /// Its boxes.
    pub data: Bytes,
}

/// Returns a segment of live subtitles as WebVTT. Its times are those of the stream, as in the segments of pictures and sound of a
/// container. Damaged samples show nothing.
#[must_use]
pub fn live_webvtt(samples: impl IntoIterator<Item = TextSample>, container: Container) -> String {
    let mut joiner = wvtt::Joiner::default();
    let millis = |ticks: i64| TEXT_CLOCK.convert(ticks, Timescale::MILLIS);
    for TextSample { start, duration, data } in samples {
        let cues = wvtt::cues(&data).unwrap_or_default();
        joiner.push(millis(start), millis(start.saturating_add(duration.into())), cues);
    }
    let base = match container {
        Container::Fmp4 => 0,
        Container::Ts => webvtt::MPEGTS_BASE,
    };
    webvtt::segment(&joiner.finish(), 0..i64::MAX, base)
}

impl Window {
    /// Returns the samples of a complete segment of subtitles that is in memory.
    #[must_use]
    pub fn text_samples(&self, track: usize, number: SegmentNumber) -> Option<Vec<TextSample>> {
        let of_track = self.segment(number)?.track(track).filter(|of_track| of_track.is_closed())?;
        let parts = of_track.parts();
        (!parts.is_empty()).then(|| parts.iter().flat_map(samples).collect())
    }
}

fn samples(part: &Part) -> impl Iterator<Item = TextSample> + '_ {
    let mut start = part.decode_time;
    part.rows.iter().zip(part.bytes.iter().skip(1)).map(move |(row, data)| {
        let sample = TextSample { start, duration: row.duration, data: data.clone() };
        start = start.saturating_add(row.duration.into());
        sample
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_media::teletext::TeletextCue;

    #[test]
    fn samples_become_cues() {
        let cue = |settings: &str, text: &str| TeletextCue { settings: settings.into(), text: text.into() };
        let sample = |start, duration, cues: &[TeletextCue]| TextSample {
            start,
            duration,
            data: TeletextCue::sample(cues).into(),
        };
        let samples = [
            sample(900_000, 90_000, &[]),
            sample(990_000, 45_000, &[cue("line:74%", "a &amp; b"), cue("line:10%", "<c.yellow>c</c>")]),
            sample(1_035_000, 45_000, &[cue("line:74%", "a &amp; b")]),
            TextSample { start: 1_080_000, duration: 9000, data: Bytes::from_static(b"damage") },
        ];
        let expected = "WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:0,LOCAL:00:00:00.000\n\n\
            00:00:11.000 --> 00:00:11.500 line:10%\n<c.yellow>c</c>\n\n\
            00:00:11.000 --> 00:00:12.000 line:74%\na &amp; b\n";
        assert_eq!(live_webvtt(samples.clone(), Container::Fmp4), expected);
        assert!(live_webvtt(samples, Container::Ts).contains("MPEGTS:900000,"));
    }
}
