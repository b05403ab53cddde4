use super::*;
use crate::{
    codec::{ByteOrder, PcmCoding},
    movie::sample_table::SampleTable,
};
use proptest::prelude::*;

/// Stereo of 16 bits at 48 kHz: 4 bytes per frame, 300 frames per unit.
fn stereo() -> PcmUnits {
    let coding = PcmCoding::Signed16(ByteOrder::Little);
    PcmUnits::new(&PcmConfig { fourcc: *b"sowt", coding, channels: 2, sample_rate: 48_000 })
}

/// Offset, bytes and ticks of each unit.
fn rows(fill: impl FnOnce(&mut PcmUnits, &mut SampleTableBuilder)) -> Vec<(u64, u64, u32)> {
    let (mut units, mut out) = (stereo(), SampleTable::builder());
    fill(&mut units, &mut out);
    units.end(&mut out);
    let table = out.finish();
    assert!(table.all_sync());
    table.iter().map(|sample| (sample.range.start, sample.range.len(), sample.duration)).collect()
}

#[test]
fn a_chunk_is_divided_evenly() {
    let chunk = |frames| {
        rows(|units, out| {
            units.begin(frames);
            units.frames(out, 100, frames, 1);
        })
    };
    assert_eq!(chunk(1024), [(100, 1024, 256), (1124, 1024, 256), (2148, 1024, 256), (3172, 1024, 256)]);
    assert_eq!(chunk(301), [(100, 604, 151), (704, 600, 150)]);
    assert_eq!(chunk(1), [(100, 4, 1)]);
    assert_eq!(chunk(0), []);
}

#[test]
fn nothing_goes_over_the_end_of_a_chunk() {
    let two = rows(|units, out| {
        for offset in [0, 40] {
            units.begin(10);
            units.frames(out, offset, 10, 1);
            units.end(out);
        }
    });
    assert_eq!(two, [(0, 40, 10), (40, 40, 10)]);
}

#[test]
fn frames_of_different_duration_make_up_a_unit() {
    let unit = rows(|units, out| {
        units.frames(out, 0, 2, 1);
        units.frames(out, 8, 1, 2);
        units.sample(out, 12, 4, 7);
    });
    assert_eq!(unit, [(0, 16, 11)]);
}

#[test]
fn samples_of_many_frames_are_divided_and_small_ones_stay() {
    let units = rows(|units, out| {
        units.sample(out, 0, 8, 2);
        units.sample(out, 8, 4, 1);
        units.sample(out, 12, 0, 5);
        units.sample(out, 12, 8, 2);
        units.sample(out, 20, 4096, 1001);
    });
    let divided = [(20, 1024, 250), (1044, 1024, 250), (2068, 1024, 250), (3092, 1024, 251)];
    assert_eq!(units, [&[(0, 8, 2), (8, 4, 1), (12, 0, 5), (12, 8, 2)][..], &divided].concat());
}

proptest! {
    #[test]
    fn every_frame_is_in_one_unit_that_fits(
        chunks in prop::collection::vec((1_u32..3000, 0_u32..5, any::<bool>()), 1..20),
    ) {
        let mut end = 0;
        let rows = rows(|units, out| {
            for &(frames, duration, is_sample) in &chunks {
                if is_sample {
                    units.sample(out, end, frames * 4, frames * duration);
                } else {
                    units.begin(frames);
                    units.frames(out, end, frames, duration);
                }
                units.end(out);
                end += u64::from(frames) * 4;
            }
        });
        let mut at = 0;
        for (start, bytes, _) in &rows {
            prop_assert!(*start == at && (4..=1200).contains(bytes) && bytes % 4 == 0);
            at += bytes;
        }
        prop_assert_eq!(at, end);
        let ticks: u64 = rows.iter().map(|row| u64::from(row.2)).sum();
        prop_assert_eq!(ticks, chunks.iter().map(|(frames, duration, _)| u64::from(frames * duration)).sum::<u64>());
        let needed: u32 = chunks.iter().map(|(frames, ..)| stereo().needed(*frames)).sum();
        prop_assert!(rows.len() as u32 <= needed);
    }
}
