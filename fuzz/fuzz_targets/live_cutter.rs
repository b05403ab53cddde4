//! Samples with any times through the cutter into a bounded window, and the manifests of it. Input: eight bytes a sample.
#![cfg_attr(feature = "libfuzzer", no_main)]

use bytes::Bytes;
use millpond_fuzz::fuzz_target;
use millpond_media::Timescale;
use millpond_package::{
    MediaKind, hls,
    live::{
        CutRules, CutTrack, Cutter, Extent, LiveSample, SegmentNumber, Window, WindowEpoch, WindowLimits, WindowTrack,
    },
};
use std::time::Duration;

const BYTES: u64 = 100_000;

fuzz_target!(|data: &[u8]| {
    let rules = CutRules {
        part: Some(Duration::from_millis(334)),
        segment: Duration::from_secs(1),
        target: None,
        is_aligned: data.first().is_some_and(|byte| byte & 4 != 0),
    };
    let timescale = Timescale::MPEG;
    let track = |is_video| CutTrack { timescale, is_video, frame: 3600 };
    let mut cutter = Cutter::new(rules, vec![track(true), track(false)], 0, SegmentNumber(1));
    let named = |name: &str, kind| WindowTrack { name: name.to_owned(), kind, timescale };
    let tracks = vec![named("v1", MediaKind::Video), named("a1", MediaKind::Audio)];
    let age = Duration::from_secs(60);
    let mut window = Window::new(WindowLimits { segments: 20, bytes: BYTES, age, listed: age }, tracks, 0);
    window.begin(WindowEpoch::new(0, Duration::ZERO, Duration::ZERO, vec![None, None]));
    let (mut at, mut cuts) = ([0_i64; 2], Vec::new());
    for sample in data.chunks_exact(8) {
        let track = usize::from(sample[0] & 1);
        let step = i64::from(i32::from_le_bytes([sample[1], sample[2], sample[3], sample[4]]));
        at[track] = at[track].saturating_add(step << (sample[0] >> 4));
        let data = Bytes::from(vec![0; usize::from(sample[5])]);
        let pts = at[track].saturating_add(i64::from(sample[6]));
        cutter.push(track, LiveSample { dts: at[track], pts, is_sync: sample[0] & 2 != 0, data }, &mut cuts);
        if sample[7] == 255 {
            cutter.discontinue(u32::from(sample[6]), Duration::from_secs(sample[5].into()), &mut cuts);
        }
        for cut in cuts.drain(..) {
            window.push(cut);
            assert!(window.heap_bytes() <= BYTES);
        }
    }
    let view = hls::live::PlaylistView {
        run: "0",
        container: hls::Container::Fmp4,
        skip: true,
        extent: Extent::Past,
        query: "",
    };
    let _ = hls::live::media(&window, 0, &view);
});
