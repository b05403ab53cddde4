//! Streams for tests.

use super::*;
use crate::{
    presentation::track::MediaKind,
    testing::{audio, video},
};
use bytes::Bytes;
use millpond_media::{SampleTable, codec::make, movie::Track, units::Timescale};
use std::{sync::Arc, time::Duration};

/// Clock of video in tests.
pub(crate) const VIDEO: u32 = 90_000;
/// Clock of audio in tests.
pub(crate) const AUDIO: u32 = 48_000;

pub(crate) fn scale(ticks: u32) -> Timescale {
    Timescale::new(ticks).unwrap()
}

pub(crate) const fn rules() -> CutRules {
    CutRules {
        part: Some(Duration::from_millis(334)),
        segment: Duration::from_secs(2),
        target: None,
        is_aligned: false,
    }
}

pub(crate) fn video_track() -> CutTrack {
    CutTrack { timescale: scale(VIDEO), is_video: true, frame: VIDEO / 25 }
}

pub(crate) fn audio_track() -> CutTrack {
    CutTrack { timescale: scale(AUDIO), is_video: false, frame: 1024 }
}

pub(crate) fn sample(dts: i64, is_sync: bool) -> LiveSample {
    LiveSample { dts, pts: dts, is_sync, data: Bytes::from(dts.to_be_bytes().to_vec()) }
}

/// Samples of `seconds` from stream time 10 s: 25 pictures a second with a key frame every `group`, and frames of AAC, by
/// time.
pub(crate) fn film(seconds: i64, group: i64) -> Vec<(usize, LiveSample)> {
    let video = (0..seconds * 25).map(|n| (0, sample(900_000 + n * 3600, n % group == 0)));
    let audio = (0..seconds * 48_000 / 1024).map(|n| (1, sample(480_000 + n * 1024, true)));
    let mut all: Vec<_> = video.chain(audio).collect();
    all.sort_by_key(|(track, sample)| sample.dts * if *track == 0 { 8 } else { 15 });
    all
}

/// Cuts samples of video and audio.
pub(crate) fn cut(rules: CutRules, samples: Vec<(usize, LiveSample)>) -> Vec<Cut> {
    let mut cutter = Cutter::new(rules, vec![video_track(), audio_track()], 0, SegmentNumber(100));
    let mut out = Vec::new();
    for (track, sample) in samples {
        cutter.push(track, sample, &mut out);
    }
    out
}

pub(crate) fn parts(cuts: &[Cut], track: usize) -> Vec<&Part> {
    let of_track = cuts.iter().filter_map(|cut| match cut {
        Cut::Part(part) if part.track == track => Some(part),
        _ => None,
    });
    of_track.collect()
}

/// Numbers and durations of the closed segments of a track.
pub(crate) fn closed(cuts: &[Cut], of: usize) -> Vec<(u64, i64)> {
    let of_track = |cut: &Cut| match cut {
        Cut::Closed { track, segment, duration, .. } if *track == of => Some((segment.0, *duration)),
        _ => None,
    };
    cuts.iter().filter_map(of_track).collect()
}

pub(crate) fn epoch(number: u32, from: Duration) -> WindowEpoch {
    // 2026-11-22T10:00:00Z at stream time 10 s.
    let wall = Duration::from_secs(1_795_341_590) + from;
    let format = |track: Track| {
        let label = if track.id == 1 { "Video" } else { "English" };
        let language = (track.id == 2).then(|| "en".to_owned());
        let frame_rate = (track.id == 1).then_some((25, 1));
        let (track, label) = (Arc::new(track), label.into());
        Some(LiveFormat { track, language, label, is_default: true, frame_rate, id: TRACK_ID, early: 0 })
    };
    let none = SampleTable::builder().finish();
    let tracks = vec![format(video(none.clone(), VIDEO, Vec::new())), format(audio(none, "eng", Vec::new()))];
    WindowEpoch::new(number, from, wall, tracks)
}

/// Returns a window for the media of one epoch, with a track of subtitles.
pub(crate) fn with_texts() -> Window {
    let track = Arc::new(Track::live(TRACK_ID, make::wvtt().unwrap(), TEXT_CLOCK, "fra"));
    let (language, label) = (Some("fr".to_owned()), "French".to_owned());
    let format = LiveFormat { track, language, label, is_default: false, frame_rate: None, id: TRACK_ID, early: 0 };
    let WindowEpoch { number, from, wall, formats, .. } = epoch(0, Duration::from_secs(10));
    let formats = formats.into_iter().chain([Some(format)]).collect();
    let mut tracks = tracks();
    tracks.push(WindowTrack { name: "text1".to_owned(), kind: MediaKind::Text, timescale: TEXT_CLOCK });
    let mut window = Window::new(LIMITS, tracks, 7);
    window.begin(WindowEpoch::new(number, from, wall, formats));
    window
}

/// Returns a window with the cuts of one epoch, and subtitles: samples with the times in ticks of 90 kHz from which they are shown.
pub(crate) fn subtitled(cuts: Vec<Cut>, changes: &[(i64, &'static [u8])]) -> Window {
    let mut window = with_texts();
    let (mut cutter, mut texts) = (TextCutter::new((0, scale(VIDEO)), [2]), Vec::new());
    changes.iter().for_each(|(at, sample)| cutter.change(0, *at, Bytes::from_static(sample)));
    cutter.reach(0, i64::MAX);
    for cut in cuts {
        cutter.observe(&cut);
        window.push(cut);
        cutter.advance(0, &mut texts);
        texts.drain(..).for_each(|cut| window.push(cut));
    }
    window
}

pub(crate) const LIMITS: WindowLimits =
    WindowLimits { segments: 100, bytes: 1 << 20, age: Duration::from_secs(120), listed: Duration::from_secs(60) };

pub(crate) fn tracks() -> Vec<WindowTrack> {
    let track = |name: &str, kind, timescale| WindowTrack { name: name.into(), kind, timescale: scale(timescale) };
    vec![track("v1", MediaKind::Video, VIDEO), track("a1", MediaKind::Audio, AUDIO)]
}

/// Returns a window with the cuts of one epoch.
pub(crate) fn window(limits: WindowLimits, cuts: Vec<Cut>) -> Window {
    let mut window = Window::new(limits, tracks(), 7);
    window.begin(epoch(0, Duration::from_secs(10)));
    cuts.into_iter().for_each(|cut| window.push(cut));
    window
}
