//! Payload formats: frames of the bundled sample into packets.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use millpond_media::{Track, TrackKind, index_bytes};
use millpond_rtp::payload::Packetizer;
use std::{hint::black_box, ops::Range};

const SAMPLE: &[u8] = include_bytes!("../../../assets/sample/360p.mp4");
/// Bytes of a packet's payload on Ethernet.
const PAYLOAD: usize = 1388;

/// Where the frames of a track lie in the sample.
fn frames(track: &Track) -> Vec<Range<usize>> {
    track.samples.iter().map(|sample| sample.range.start as usize..sample.range.end as usize).collect()
}

fn packetizer(criterion: &mut Criterion) {
    let movie = index_bytes(SAMPLE).expect("the bundled sample");
    let mut group = criterion.benchmark_group("packetizer");
    for (name, is_video) in [("H.264", true), ("AAC", false)] {
        let kind = |track: &&Track| matches!(track.kind, TrackKind::Video { .. }) == is_video;
        let track = movie.tracks.iter().find(kind).expect("pictures and sound");
        let packetizer = Packetizer::of(track).expect("a codec with a payload format");
        let frames = frames(track);
        group.throughput(Throughput::Bytes(frames.iter().map(|frame| frame.len() as u64).sum()));
        group.bench_function(name, |bencher| {
            let mut pieces = Vec::new();
            bencher.iter(|| {
                for frame in &frames {
                    pieces.clear();
                    packetizer.cut(&SAMPLE[frame.clone()], PAYLOAD, &mut pieces).expect("a valid frame");
                    black_box(&pieces);
                }
            });
        });
    }
    group.finish();
}

criterion_group!(benches, packetizer);
criterion_main!(benches);
