use super::*;
use crate::live::testing::{AUDIO, VIDEO, audio_track, closed, cut, film, parts, rules, sample, video_track};
use bytes::Bytes;
use proptest::prelude::*;

fn openings(cuts: &[Cut]) -> Vec<(u64, f64, bool)> {
    let opened = |cut: &Cut| match cut {
        Cut::Opened { segment, start, is_independent, .. } => Some((segment.0, start.as_secs_f64(), *is_independent)),
        _ => None,
    };
    cuts.iter().filter_map(opened).collect()
}

fn targets(cuts: &[Cut]) -> &Targets {
    let Some(Cut::Targets(targets)) = cuts.first() else { panic!("{cuts:?}") };
    targets
}

/// Duration of a part in seconds.
fn seconds(part: &Part) -> f64 {
    part.duration as f64 / f64::from(if part.track == 0 { VIDEO } else { AUDIO })
}

#[test]
fn segments_end_with_groups_and_all_tracks_are_cut_at_the_same_time() {
    let cuts = cut(rules(), film(9, 25));
    assert_eq!(targets(&cuts).segment.seconds(), 3);
    assert_eq!(targets(&cuts).parts.as_deref().unwrap(), [Duration::from_millis(334); 2]);
    assert_eq!(
        openings(&cuts),
        [10.0, 12.0, 14.0, 16.0, 18.0].iter().zip(100..).map(|(t, n)| (n, *t, true)).collect::<Vec<_>>()
    );
    assert_eq!(closed(&cuts, 0), (100..104).map(|n| (n, 180_000)).collect::<Vec<_>>());
    // A frame that lasts over a boundary belongs to the next segment; 375 frames of 1024 ticks are 8 s.
    let audio = closed(&cuts, 1);
    assert_eq!(audio, [(100, 93 * 1024), (101, 94 * 1024), (102, 94 * 1024), (103, 94 * 1024)]);
    for track in [0, 1] {
        for part in parts(&cuts, track) {
            assert!(seconds(part) <= 0.334, "{part:?}");
        }
    }
    let first: Vec<_> = parts(&cuts, 0).iter().take(7).map(|part| (part.index, part.rows.len())).collect();
    assert_eq!(first, [(0, 8), (1, 8), (2, 8), (3, 8), (4, 8), (5, 8), (6, 2)]);
    assert!(
        parts(&cuts, 0)[0].is_independent && !parts(&cuts, 0)[1].is_independent && parts(&cuts, 0)[3].is_independent
    );
    let first: Vec<_> = parts(&cuts, 1).iter().take(7).map(|part| (part.index, part.rows.len())).collect();
    assert_eq!(first, [(0, 15), (1, 15), (2, 15), (3, 15), (4, 15), (5, 15), (6, 3)]);
}

#[test]
fn table_of_groups() {
    // Frames of a group, target seconds, durations of the first segments in frames.
    let table = [
        (25, 3, vec![50, 50]),
        (50, 3, vec![50, 50]),
        (12, 4, vec![60, 60]),
        (40, 5, vec![80, 80]),
        (75, 4, vec![75, 75]),
        (1000, 10, vec![250]),
    ];
    for (group, target, expected) in table {
        let cuts = cut(rules(), film(16, group));
        assert_eq!(targets(&cuts).segment.seconds(), target, "{group}");
        let found: Vec<_> = closed(&cuts, 0).iter().map(|(_, ticks)| ticks / 3600).take(expected.len()).collect();
        assert_eq!(found, expected, "{group}");
    }
}

#[test]
fn a_known_target_is_not_measured() {
    let known = CutRules { target: Some(TargetDuration::new(5)), ..rules() };
    let mut cutter = Cutter::new(known, vec![video_track()], 0, SegmentNumber(1));
    let mut out = Vec::new();
    cutter.push(0, sample(0, true), &mut out);
    assert!(out.is_empty());
    cutter.push(0, sample(3600, false), &mut out);
    assert_eq!(targets(&out).segment.seconds(), 5);
}

#[test]
fn a_longer_group_is_cut_at_the_target_and_the_next_key_frame_begins_a_segment() {
    let key = |n: i64| n < 100 && n % 50 == 0 || n >= 100 && n % 100 == 0;
    let samples = (0..500).map(|n| (0, sample(n * 3600, key(n)))).collect();
    let cuts = cut(rules(), samples);
    assert_eq!(targets(&cuts).segment.seconds(), 3);
    let video = |cuts: &[Cut]| openings(cuts).iter().map(|(_, start, key)| (*start, *key)).collect::<Vec<_>>();
    let expected = [(0.0, true), (2.0, true), (4.0, true), (7.0, false), (8.0, true), (11.0, false), (12.0, true)];
    assert_eq!(video(&cuts)[..7], expected);
}

#[test]
fn audio_alone_is_cut_by_time() {
    let mut cutter = Cutter::new(rules(), vec![audio_track()], 0, SegmentNumber(1));
    let mut out = Vec::new();
    for n in 0..1000 {
        cutter.push(0, sample(n * 1024, true), &mut out);
    }
    assert_eq!(targets(&out).segment.seconds(), 2);
    let segments = closed(&out, 0);
    assert!(
        segments.len() >= 10 && segments.iter().all(|(_, ticks)| (92..=93).contains(&(ticks / 1024))),
        "{segments:?}"
    );
    assert!(openings(&out).iter().all(|(.., independent)| *independent));
}

#[test]
fn a_stalled_leading_track_is_cut_by_the_others_and_gets_gaps() {
    let stalled = film(20, 50).into_iter().filter(|(track, s)| *track == 1 || s.dts < 900_000 + 5 * 90_000);
    let cuts = cut(rules(), stalled.collect());
    let video = closed(&cuts, 0);
    let (last, _) = *closed(&cuts, 1).last().unwrap();
    assert!(last >= 104, "{cuts:?}");
    assert_eq!(video.iter().map(|(n, _)| *n).collect::<Vec<_>>(), (100..100 + video.len() as u64).collect::<Vec<_>>());
    assert!(video.iter().all(|(_, ticks)| *ticks > 0 && *ticks <= 3 * 90_000), "{video:?}");
    let with_parts = parts(&cuts, 0).iter().map(|part| part.segment.0).max().unwrap();
    assert!(with_parts < video.last().unwrap().0, "later segments are gaps");
}

#[test]
fn a_track_that_is_late_closes_after_half_a_second() {
    let film = film(9, 50);
    let late = film.iter().filter(|(track, s)| *track == 0 || s.dts < 480_000 + 3 * 48_000).cloned();
    let cuts = cut(rules(), late.collect());
    // The last audio has its usual duration.
    assert_eq!(closed(&cuts, 1)[..3], [(100, 93 * 1024), (101, 48 * 1024), (102, 2 * 48_000)]);
}

#[test]
fn samples_ahead_of_a_boundary_are_moved_behind_it() {
    // The audio comes 200 ms before the pictures of its time: less than a part, so nothing behind the boundary was published.
    let mut film = film(9, 50);
    film.sort_by_key(|(track, s)| if *track == 0 { s.dts * 8 + 200 * 720 } else { s.dts * 15 });
    let cuts = cut(rules(), film);
    let audio: Vec<_> = parts(&cuts, 1).iter().filter(|part| part.index == 0).map(|part| part.start).collect();
    assert_eq!(audio[..3], [480_000, 480_000 + 93 * 1024, 480_000 + 187 * 1024]);
}

#[test]
fn an_epoch_ends_all_and_begins_with_a_key_frame() {
    let mut cutter = Cutter::new(rules(), vec![video_track(), audio_track()], 0, SegmentNumber(100));
    let mut out = Vec::new();
    let film = film(5, 25);
    film.iter().for_each(|(track, s)| cutter.push(*track, s.clone(), &mut out));
    cutter.discontinue(1, Duration::from_secs(20), &mut out);
    assert_eq!(closed(&out, 0).iter().map(|(n, _)| *n).collect::<Vec<_>>(), [100, 101, 102]);
    assert_eq!(closed(&out, 1).iter().map(|(n, _)| *n).collect::<Vec<_>>(), [100, 101, 102]);
    let samples = |cuts: &[Cut], track| parts(cuts, track).iter().map(|part| part.rows.len()).sum::<usize>();
    assert_eq!((samples(&out, 0), samples(&out, 1)), (125, 234));
    out.clear();
    for (track, s) in film {
        let by = if track == 0 { 10 * 90_000 + 5 * 3600 } else { 10 * 48_000 };
        cutter.push(track, LiveSample { dts: s.dts + by, pts: s.pts + by, ..s }, &mut out);
    }
    let Some(Cut::Opened { segment, epoch, start, .. }) = out.first() else { panic!("{out:?}") };
    assert_eq!((segment.0, *epoch, *start), (103, 1, Duration::from_millis(20_200)));
    let (sound, from) = (parts(&out, 1)[0].start, 48_000 * 202 / 10);
    assert!((from - 1023..=from).contains(&sound), "earlier audio is left out, but not what lasts over the beginning");
    assert!(cutter.skipped() > 0);
}

#[test]
fn pictures_that_are_reordered_count_by_their_decode_times() {
    // Each picture is shown two frames after it is decoded, or three before the next.
    let shown = |n: i64| n + 2 + [0, 1, -1][(n % 3) as usize];
    let picture = |n: i64| LiveSample { pts: shown(n) * 3600, ..sample(n * 3600, n % 50 == 0) };
    let cuts = cut(rules(), (0..300).map(|n| (0, picture(n))).collect());
    let starts: Vec<_> = parts(&cuts, 0).iter().map(|part| part.start).collect();
    assert_eq!(starts[..3], [2 * 3600, 10 * 3600, 18 * 3600]);
    assert_eq!(closed(&cuts, 0)[..2], [(100, 180_000), (101, 180_000)]);
    assert_eq!(parts(&cuts, 0)[0].rows[1].offset, 3 * 3600);
}

#[test]
fn times_that_fall_or_overflow_do_not_panic() {
    let times = [i64::MAX, i64::MIN, 0, 5, 5, 4, i64::MAX - 1, i64::MAX];
    let samples = times.iter().flat_map(|t| [(0, sample(*t, true)), (1, sample(*t, true)), (9, sample(*t, true))]);
    let mut cutter = Cutter::new(rules(), vec![video_track(), audio_track()], 0, SegmentNumber(u64::MAX - 1));
    let mut out = Vec::new();
    samples.for_each(|(track, s)| cutter.push(track, s, &mut out));
    cutter.expire(Duration::MAX, &mut out);
    cutter.discontinue(2, Duration::MAX, &mut out);
}

/// Frames with uneven durations, losses and any order of the tracks.
fn streams() -> impl Strategy<Value = Vec<(usize, LiveSample)>> {
    let frame = (0_usize..2, 1_i64..12_000, -3_i64..4, prop::bool::weighted(0.05));
    prop::collection::vec(frame, 1..1500).prop_map(|frames| {
        let mut at = [900_000, 480_000];
        let stamp = |(track, step, offset, is_key): (usize, i64, i64, bool)| {
            at[track] += if track == 0 { step } else { step / 2 + 1 };
            let pts = if track == 0 { at[0] + offset * 1000 } else { at[1] };
            (track, LiveSample { pts, ..sample(at[track], track == 1 || is_key) })
        };
        frames.into_iter().map(stamp).collect()
    })
}

/// Returns the decode time that `tfdt` states.
fn decode_time(part: &Part) -> i64 {
    let moof = &part.bytes[0];
    let place = moof.windows(4).position(|four| four == b"tfdt").unwrap();
    i64::from_be_bytes(moof[place + 8..place + 16].try_into().unwrap())
}

/// Returns data and decode times of the samples in parts.
fn published(cuts: &[Cut], track: usize) -> Vec<(Bytes, i64)> {
    let mut out = Vec::new();
    for part in parts(cuts, track) {
        let mut at = decode_time(part);
        assert_eq!(part.rows.len(), part.bytes.len() - 1);
        for (row, data) in part.rows.iter().zip(&part.bytes[1..]) {
            assert_eq!(row.size as usize, data.len());
            out.push((data.clone(), at));
            at += i64::from(row.duration);
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn no_sample_is_lost_or_doubled_and_parts_tile_segments(samples in streams(), segment in 500_u64..3000) {
        let rules = CutRules { segment: Duration::from_millis(segment), ..rules() };
        let mut cutter = Cutter::new(rules, vec![video_track(), audio_track()], 0, SegmentNumber(1));
        let mut cuts = Vec::new();
        for (track, sample) in &samples {
            cutter.push(*track, sample.clone(), &mut cuts);
        }
        let Some(last) = samples.iter().map(|(track, s)| s.dts / if *track == 0 { 90 } else { 48 }).max() else { return Ok(()) };
        cutter.discontinue(1, Duration::from_millis(last as u64 + 60_000), &mut cuts);
        let has_begun = samples.iter().any(|(track, s)| *track == 0 && s.is_sync);
        prop_assert_eq!(has_begun, !cuts.is_empty());
        for track in [0, 1] {
            let given: Vec<_> = samples.iter().filter(|(of, _)| *of == track).map(|(_, s)| (s.data.clone(), s.dts)).collect();
            let found = published(&cuts, track);
            // Only samples before the beginning are left out.
            prop_assert!(given.ends_with(&found) || track == 1, "{} of {}", found.len(), given.len());
            prop_assert!(given.windows(found.len().max(1)).any(|some| some == found) || found.is_empty());
            let mut segment = 0;
            let (mut index, mut sum, mut at) = (0, 0, None);
            for cut in &cuts {
                match cut {
                    Cut::Part(part) if part.track == track => {
                        prop_assert_eq!(part.index, index);
                        prop_assert!(segment == 0 || part.segment.0 == segment + 1);
                        prop_assert!(at.is_none_or(|at| part.start >= at || sum == 0), "parts follow one another");
                        at = Some(part.start + part.duration);
                        index += 1;
                        sum += part.duration;
                    }
                    Cut::Closed { track: of, segment: number, duration, .. } if *of == track => {
                        prop_assert!(segment == 0 || number.0 == segment + 1);
                        prop_assert!(index == 0 || *duration == sum, "durations add up");
                        let ticks = if track == 0 { VIDEO } else { AUDIO };
                        prop_assert!(index == 0 || *duration <= i64::from(ticks) * i64::from(targets(&cuts).segment.seconds()) + i64::from(ticks));
                        segment = number.0;
                        (index, sum) = (0, 0);
                    }
                    _ => {}
                }
            }
            prop_assert_eq!(index, 0, "all segments are closed");
        }
        prop_assert!(closed(&cuts, 0).len() == closed(&cuts, 1).len());
    }
}

/// Returns decode time and end of each part of a track.
fn decoded(cuts: &[Cut], track: usize) -> Vec<(i64, i64)> {
    let of_part = |part: &&Part| (decode_time(part), decode_time(part) + part.duration);
    parts(cuts, track).iter().map(of_part).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn decode_times_are_continuous_and_parts_keep_their_target(
        jitter in prop::collection::vec(-450_i64..=450, 400),
        group in 10_i64..80,
    ) {
        // Pictures come up to 5 ms early or late.
        let mut film = film(16, group);
        for (n, (_, sample)) in film.iter_mut().filter(|(track, _)| *track == 0).enumerate() {
            sample.dts += jitter[n];
            sample.pts = sample.dts;
        }
        let cuts = cut(rules(), film);
        for track in [0, 1] {
            let times = decoded(&cuts, track);
            prop_assert!(times.windows(2).all(|pair| pair[0].1 == pair[1].0), "{:?}", times);
        }
        let is_last = |part: &Part| !parts(&cuts, 0).iter().any(|p| p.segment == part.segment && p.index > part.index);
        for part in parts(&cuts, 0) {
            let length = seconds(part);
            prop_assert!(length <= 0.334 && (length >= 0.85 * 0.334 || is_last(part)), "{} {}", length, part.index);
        }
    }
}

#[test]
fn aligned_segments_begin_after_multiples_of_their_duration() {
    let rules = CutRules { is_aligned: true, ..rules() };
    // From 10.6 s on, a key frame each second: the first segment ends with that after 12 s.
    let samples = (0..200).map(|n| (0, sample(954_000 + n * 3600, n % 25 == 0))).collect();
    let found: Vec<_> = closed(&cut(rules, samples), 0);
    assert_eq!(found, [(100, 180_000), (101, 180_000), (102, 180_000)]);
    let samples = (0..200).map(|n| (0, sample(990_000 + n * 3600, n % 25 == 0))).collect();
    let found: Vec<_> = closed(&cut(rules, samples), 0);
    assert_eq!(found[..3], [(100, 90_000), (101, 180_000), (102, 180_000)]);
}

#[test]
fn a_measured_target_is_at_least_the_expected_one() {
    let mut cutter = Cutter::new(rules(), vec![video_track(), audio_track()], 0, SegmentNumber(100));
    cutter.expect(TargetDuration::new(7));
    let mut out = Vec::new();
    film(5, 50).into_iter().for_each(|(track, sample)| cutter.push(track, sample, &mut out));
    assert!(matches!(out.first(), Some(Cut::Targets(targets)) if targets.segment.seconds() == 7), "{:?}", out.first());
}
