use super::*;
use crate::{
    Plan,
    delivery::transport,
    live::{
        CutRules, Extent, LiveSample, WindowLimits,
        testing::{LIMITS, VIDEO, cut, epoch, window},
    },
    testing::{self, Made, audio, movie, presentation, table, video},
};
use std::{collections::HashMap, time::Duration};

/// Pictures: 25 a second, with a key frame each 8 s: 375 frames of sound, so that both are cut at the same time.
fn pictures(count: u32) -> Vec<Made> {
    let picture =
        |n: u32| Made { size: 700 + n % 150 * 9, duration: 3600, composition: 0, sync: n.is_multiple_of(200) };
    (0..count).map(picture).collect()
}

/// A sample that is one NAL unit for pictures.
fn data(size: u32) -> Vec<u8> {
    let mut data = vec![0x41; size as usize];
    data[..4].copy_from_slice(&size.saturating_sub(4).to_be_bytes());
    data
}

fn run(plan: Plan) -> Vec<u8> {
    let Plan::Rewrite(mut rewrite) = plan else { panic!("not a rewriting plan") };
    let mut out = Vec::new();
    while let Some(read) = rewrite.next_read() {
        rewrite.push(&data(read.range.len() as u32), &mut out).unwrap();
    }
    rewrite.finish(&mut out).unwrap();
    out
}

/// The samples of 40 s as a live stream that begins at stream time 0.
fn samples() -> Vec<(usize, LiveSample)> {
    let of = |track: usize, made: Vec<Made>, step: u32| {
        let sample = move |(n, made): (i64, Made)| {
            let at = n * i64::from(step);
            (track, LiveSample { dts: at, pts: at, is_sync: made.sync, data: data(made.size).into() })
        };
        (0..).zip(made).map(sample)
    };
    let mut all: Vec<_> = of(0, pictures(1000), 3600).chain(of(1, testing::frames(1875), 1024)).collect();
    all.sort_by_key(|(track, sample)| sample.dts * if *track == 0 { 8 } else { 15 });
    all
}

const ROOM: WindowLimits = WindowLimits { bytes: 1 << 24, ..LIMITS };
const RULES: CutRules = CutRules {
    part: Some(Duration::from_millis(334)),
    segment: Duration::from_secs(6),
    target: None,
    is_aligned: false,
};

fn made(window: &Window, counters: &mut TransportCounters, number: u64) -> Option<Bytes> {
    Some(TransportSegment::of(window, counters, 0, SegmentNumber(number))?.write().unwrap())
}

/// Continuity counters by PID, and the packets with a discontinuity indicator.
#[derive(Default)]
struct Packetized {
    last: HashMap<u16, u8>,
    breaks: usize,
}

impl Packetized {
    #[track_caller]
    fn take(&mut self, stream: &[u8]) {
        for packet in stream.chunks(188) {
            let pid = u16::from_be_bytes([packet[1], packet[2]]) & 0x1fff;
            self.breaks += usize::from(packet[3] & 0x20 != 0 && packet[4] > 0 && packet[5] & 0x80 != 0);
            if packet[3] & 0x10 == 0 {
                continue;
            }
            let counter = packet[3] & 0x0f;
            if let Some(before) = self.last.insert(pid, counter) {
                assert_eq!((before + 1) & 0x0f, counter, "PID {pid:#x}");
            }
        }
    }
}

#[test]
fn segments_are_those_of_the_same_media_when_stored() {
    let film = vec![
        video(table(&pictures(1000), 48, 1), VIDEO, Vec::new()),
        audio(table(&testing::frames(1875), 1 << 24, 1), "eng", Vec::new()),
    ];
    let stored = presentation(vec![movie(film)]);
    let track = stored.track("v1").unwrap();
    let mut live = Window::new(ROOM, crate::live::testing::tracks(), 7);
    live.begin(epoch(0, Duration::ZERO));
    let mut cutter = crate::live::Cutter::new(
        RULES,
        vec![crate::live::testing::video_track(), crate::live::testing::audio_track()],
        0,
        // PAT and PMT of stored media count from 0.
        SegmentNumber(16),
    );
    let mut cuts = Vec::new();
    samples().into_iter().for_each(|(track, sample)| cutter.push(track, sample, &mut cuts));
    cuts.into_iter().for_each(|cut| live.push(cut));
    let mut counters = TransportCounters::default();
    for number in 2..=4 {
        let expected = run(transport::segment(&stored, track, number).unwrap().unwrap());
        let found = made(&live, &mut counters, 15 + u64::from(number)).unwrap();
        assert!(expected.len() > 100_000 && found == expected, "segment {number}");
    }
}

#[test]
fn counters_go_on_and_only_an_epoch_breaks_them() {
    let window = window(ROOM, cut(RULES, samples()));
    let (mut counters, mut stream) = (TransportCounters::default(), Packetized::default());
    let last = window.last_transport(0).unwrap();
    assert_eq!(last, SegmentNumber(103));
    for number in 100..=103 {
        stream.take(&made(&window, &mut counters, number).unwrap());
    }
    assert_eq!(stream.breaks, 2, "the first packet of each stream of the epoch");
    // The same bytes, whoever asks first.
    let again = made(&window, &mut TransportCounters::default(), 102);
    assert_eq!(again, made(&window, &mut counters, 102));
    assert_eq!(made(&window, &mut counters, 104), None, "it is not complete");
    assert_eq!(made(&window, &mut counters, 99), None);
    assert!(
        TransportSegment::of(&window, &mut counters, 1, SegmentNumber(102)).is_none(),
        "the sound is in the video's"
    );
}

#[test]
fn counters_go_on_while_segments_leave() {
    let limits = WindowLimits { segments: 3, ..ROOM };
    let mut window = window(limits, Vec::new());
    let (mut counters, mut stream) = (TransportCounters::default(), Packetized::default());
    let mut next = 100;
    for cut in cut(RULES, samples()) {
        window.push(cut);
        while let Some(segment) = made(&window, &mut counters, next) {
            stream.take(&segment);
            next += 1;
        }
    }
    assert_eq!((next, window.segments().len()), (104, 3));
    assert!(counters.tracks.iter().all(|track| track.starts.len() <= 4));
}

#[test]
fn playlists_list_what_can_be_made() {
    use crate::{
        delivery::container::Container,
        hls::{
            live::{PlaylistView, media},
            live_multivariant,
        },
    };
    let window = window(ROOM, cut(RULES, samples()));
    let view = PlaylistView { run: "0a1b", container: Container::Ts, skip: true, extent: Extent::Edge, query: "" };
    let list = media(&window, 0, &view).unwrap();
    let expected = "#EXTM3U\n#EXT-X-VERSION:4\n#EXT-X-TARGETDURATION:10\n\
        #EXT-X-MEDIA-SEQUENCE:100\n#EXT-X-DISCONTINUITY-SEQUENCE:7\n#EXT-X-INDEPENDENT-SEGMENTS\n\
        #EXT-X-PROGRAM-DATE-TIME:2026-11-22T09:59:50.000Z\n#EXTINF:8.000000,\n../~0a1b/v1/100.ts\n\
        #EXT-X-PROGRAM-DATE-TIME:2026-11-22T09:59:58.000Z\n#EXTINF:8.000000,\n../~0a1b/v1/101.ts\n";
    assert!(list.starts_with(expected), "{list}");
    assert!(list.ends_with("/103.ts\n") && !list.contains("PART") && !list.contains("MAP"), "{list}");
    assert!(media(&window, 1, &view).is_none(), "the sound is in the segments of the video");
    let list = live_multivariant(&window, Container::Ts).unwrap();
    assert!(list.contains("CODECS=\"avc1.64001f,mp4a.40.2\"") && list.ends_with("v1/index.m3u8\n"), "{list}");
    assert!(!list.contains("EXT-X-MEDIA:"), "{list}");
    let mut counters = TransportCounters::default();
    let bytes: usize = (100..104).map(|number| made(&window, &mut counters, number).unwrap().len()).sum();
    let told = window.transport_bandwidth(window.newest_epoch().unwrap(), 0).average;
    let average = bytes as u64 * 8 / 32;
    assert!(told >= average && told < average * 11 / 10, "{told} for {average}");
}
