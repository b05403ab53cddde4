use super::*;
use proptest::prelude::*;

/// Arguments of one push: offset, size, duration, composition offset, sync flag, and a decode time set before it.
type Pushed = (u64, u32, u32, i32, bool, Option<i64>);

fn build(pushed: &[Pushed]) -> SampleTable {
    let mut builder = SampleTable::builder();
    for &(offset, size, duration, composition, sync, start) in pushed {
        if let Some(start) = start {
            builder.set_start_dts(start);
        }
        builder.push(offset, size, duration, composition, sync);
    }
    assert_eq!(builder.len() as usize, pushed.len());
    builder.finish()
}

fn naive(pushed: &[Pushed]) -> (Vec<Sample>, i64) {
    let mut samples: Vec<Sample> = Vec::new();
    let (mut dts, mut ahead) = (0, 0_i64);
    for &(offset, size, duration, composition, sync, start) in pushed {
        if let Some(start) = start {
            ahead = 0;
            match samples.last_mut() {
                Some(last) if start >= last.dts => {
                    last.duration = u32::try_from(start - last.dts).unwrap_or(u32::MAX);
                    dts = start;
                }
                Some(last) => {
                    last.duration = last.duration.min(1);
                    dts = last.dts + i64::from(last.duration);
                    ahead = dts - start;
                }
                None => dts = start,
            }
        }
        let wanted = i64::from(duration) - ahead;
        let given = if ahead == 0 { wanted } else { wanted.max(i64::from(duration.min(1))) };
        ahead = given - wanted;
        let duration = u32::try_from(given).unwrap_or(u32::MAX);
        let range = ByteRange::at(offset, u64::from(size));
        samples.push(Sample { index: samples.len() as u32, range, dts, composition, duration, sync });
        dts += i64::from(duration);
    }
    (samples, dts)
}

fn same(pushed: &[Pushed]) {
    let table = build(pushed);
    let (samples, end) = naive(pushed);
    assert_eq!(table.len() as usize, samples.len());
    assert_eq!(table.is_empty(), samples.is_empty());
    assert_eq!(table.iter().collect::<Vec<_>>(), samples);
    for sample in samples.iter().step_by(7) {
        assert_eq!(table.get(sample.index), Some(*sample));
    }
    assert_eq!(table.get(table.len()), None);
    assert_eq!(table.end_dts(), if samples.is_empty() { 0 } else { end });
    assert_eq!(table.start_dts(), samples.first().map_or(0, |s| s.dts));
    assert_eq!(table.total_bytes(), samples.iter().map(|s| s.range.len()).sum::<u64>());
    assert_eq!(table.all_sync(), samples.iter().all(|s| s.sync));
    let sync: Vec<u32> = samples.iter().filter(|s| s.sync).map(|s| s.index).collect();
    assert_eq!(table.sync_samples().collect::<Vec<_>>(), sync);
    let probes = samples.iter().flat_map(|s| [s.dts - 1, s.dts, s.dts + 1]).chain([i64::MIN, i64::MAX]);
    for dts in probes {
        let expected = samples.iter().rev().find(|s| s.dts <= dts).map(|s| s.index);
        assert_eq!(table.at_dts(dts), expected, "at {dts}");
    }
}

#[test]
fn the_empty_table_answers() {
    same(&[]);
    assert_eq!(SampleTable::default().len(), 0);
}

#[test]
fn ranges_are_cut_and_count_themselves() {
    let pushed: Vec<Pushed> = (0..300).map(|i| (i * 10, 10, 1, 0, true, None)).collect();
    let table = build(&pushed);
    assert_eq!(table.range(290..1000).map(|s| s.index).collect::<Vec<_>>(), (290..300).collect::<Vec<_>>());
    assert_eq!(table.range(400..500).next(), None);
    assert_eq!(table.range(100..290).len(), 190);
    assert_eq!(table.range(100..290).nth(60).map(|s| s.index), Some(160));
    assert_eq!(table.range(100..290).nth(190), None);
}

#[test]
fn holes_beyond_32_bits_keep_the_timeline() {
    same(&[(0, 1, 10, 0, true, None), (1, 1, 10, 0, true, Some(1 << 40)), (2, 1, 10, 0, true, Some(5))]);
}

/// Pseudo-random numbers (xorshift).
fn noise(state: &mut u64, below: u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state % below
}

/// Two hours of 25 fps video at 2 Mbit/s and AAC at 48 kHz, interleaved by 1 to 2 samples.
#[test]
fn two_hours_take_at_most_1_8_megabytes() {
    let (mut video, mut audio) = (SampleTable::builder(), SampleTable::builder());
    let mut state = 0x9e37_79b9_7f4a_7c15;
    let (mut offset, mut pictures, mut sounds) = (48_u64, 0_u64, 0_u64);
    while pictures < 180_000 || sounds < 337_500 {
        // The track that is behind gets its next chunk.
        if pictures < 180_000 && pictures * 48_000 <= sounds * 1024 * 25 {
            for _ in 0..(1 + noise(&mut state, 2)).min(180_000 - pictures) {
                let (size, composition) = match pictures % 50 {
                    0 => (60_000 + noise(&mut state, 60_000), 1024),
                    n if n % 4 == 1 => (12_000 + noise(&mut state, 18_000), 2560),
                    n if n % 4 == 2 => (4_000 + noise(&mut state, 6_000), 1024),
                    _ => (1_500 + noise(&mut state, 6_000), noise(&mut state, 2) as i32 as u64 * 512),
                };
                video.push(offset, size as u32, 512, composition as i32, pictures.is_multiple_of(50));
                offset += size;
                pictures += 1;
            }
        } else {
            for _ in 0..(1 + noise(&mut state, 2)).min(337_500 - sounds) {
                let size = 200 + noise(&mut state, 150) + noise(&mut state, 150);
                audio.push(offset, size as u32, 1024, 0, true);
                offset += size;
                sounds += 1;
            }
        }
    }
    let (video, audio) = (video.finish(), audio.finish());
    assert_eq!((video.len(), audio.len()), (180_000, 337_500));
    let bits_a_second = video.total_bytes() * 8 / 7200;
    assert!((1_700_000..2_300_000).contains(&bits_a_second), "{bits_a_second}");
    let bytes = video.heap_bytes() + audio.heap_bytes();
    println!("{bytes} bytes: {} video, {} audio", video.heap_bytes(), audio.heap_bytes());
    assert!(bytes <= 1_800_000, "{bytes}: {} video, {} audio", video.heap_bytes(), audio.heap_bytes());
}

fn pushes() -> impl Strategy<Value = Vec<Pushed>> {
    let usual =
        (0_u64..40, 0_u32..5000, 0_u32..3, -2_i32..3, any::<bool>(), proptest::option::weighted(0.02, 0_i64..9000));
    let wild = (any::<u64>().prop_map(|o| o >> 1), any::<u32>(), any::<u32>(), any::<i32>(), any::<bool>(), Just(None));
    prop_oneof![
        // Gaps from a running end, most of them zero.
        proptest::collection::vec(usual, 0..400).prop_map(|mut samples| {
            let mut offset = 0;
            for s in &mut samples {
                offset += if s.0 < 30 { 0 } else { s.0 };
                s.0 = offset;
                offset += u64::from(s.1);
            }
            samples
        }),
        proptest::collection::vec(wild, 0..300),
    ]
}

proptest! {
    #[test]
    fn the_table_equals_a_list(pushed in pushes()) {
        same(&pushed);
    }
}

proptest! {
    #[test]
    fn other_flags_leave_all_else(pushed in pushes()) {
        let table = build(&pushed);
        prop_assert_eq!(&table.with_sync(|sample| sample.sync), &table);
        let turned = table.with_sync(|sample| !sample.sync);
        prop_assert_eq!((turned.total_bytes(), turned.end_dts()), (table.total_bytes(), table.end_dts()));
        for (a, b) in turned.iter().zip(table.iter()) {
            prop_assert_eq!(a, Sample { sync: !b.sync, ..b });
        }
    }
}
