use super::*;

const VIDEO: Timescale = Timescale::MPEG;

fn tracks() -> Vec<(Timescale, bool)> {
    vec![(VIDEO, true), (Timescale::new(1000).unwrap(), false)]
}

fn sample(time: i64, is_key: bool) -> TitleSample {
    TitleSample { time, is_key, data: Bytes::from_static(b"x") }
}

/// Frames of 25 pictures a second with key frames at seconds, and sound each 20 ms, from one time to another.
fn film(keys: &[f64], from: f64, to: f64) -> Vec<(usize, TitleSample)> {
    let keys: Vec<i64> = keys.iter().map(|key| (key * 90_000.0) as i64).collect();
    let pictures = (0..).map(|n: i64| n * 3600).map(|time| (time, 0, sample(time, keys.contains(&time)), time));
    let sound = (0..).map(|n: i64| n * 20).map(|time| (time * 90, 1, sample(time, true), time));
    let within = |time: i64| (time as f64) < to * 90_000.0;
    let mut all: Vec<_> =
        pictures.take_while(|(at, ..)| within(*at)).chain(sound.take_while(|(at, ..)| within(*at))).collect();
    all.sort_by_key(|(at, track, ..)| (*at, *track));
    let after = all.into_iter().filter(|(at, ..)| *at as f64 >= from * 90_000.0);
    after.map(|(_, track, sample, _)| (track, sample)).collect()
}

fn cut(mut cutter: TitleCutter, frames: Vec<(usize, TitleSample)>, ends: bool) -> Vec<CutSegment> {
    let mut out: Vec<_> = frames.into_iter().flat_map(|(track, sample)| cutter.push(track, sample).unwrap()).collect();
    if ends {
        out.extend(cutter.finish());
    }
    out
}

#[test]
fn segments_are_the_same_from_any_session() {
    let keys: Vec<f64> = (0..13).map(f64::from).collect();
    let (least, length) = (Duration::from_secs(2), Duration::from_secs_f64(12.4));
    let measured = TitleCutter::measuring(&tracks(), least, length);
    let all = cut(measured, film(&keys, 0.0, 12.4), true);
    assert_eq!(all.iter().map(|segment| segment.number).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
    let pictures: Vec<_> = all.iter().map(|segment| segment.tracks[0].len()).collect();
    assert_eq!(pictures, [50, 50, 50, 50, 50, 60], "the last segment takes the rest");
    let grid = Grid { segment: least, length };
    for first in 1..6 {
        // A server seeks to a key frame before the requested time.
        let from = (first * 2 - 1) as f64;
        let own = cut(TitleCutter::new(&tracks(), grid, first), film(&keys, from, 12.4), true);
        assert_eq!(own[..], all[first as usize..], "{first}");
    }
}

#[test]
fn a_long_group_of_pictures_leaves_segments_empty() {
    let grid = Grid { segment: Duration::from_secs(2), length: Duration::from_secs(10) };
    let all = cut(TitleCutter::new(&tracks(), grid, 0), film(&[0.0, 5.0, 6.0, 8.0], 0.0, 10.0), true);
    let counts: Vec<_> = all.iter().map(|segment| segment.tracks[0].len()).collect();
    assert_eq!(counts, [125, 0, 25, 50, 50]);
    let own = cut(TitleCutter::new(&tracks(), grid, 1), film(&[0.0, 5.0, 6.0, 8.0], 0.0, 10.0), true);
    assert_eq!(own[..], all[1..]);
}

#[test]
fn sound_that_ends_early_holds_nothing_up_for_long() {
    let grid = Grid { segment: Duration::from_secs(2), length: Duration::from_secs(20) };
    let keys: Vec<f64> = (0..20).map(f64::from).collect();
    let frames: Vec<_> =
        film(&keys, 0.0, 6.0).into_iter().filter(|(track, sample)| *track == 0 || sample.time < 500).collect();
    let done = cut(TitleCutter::new(&tracks(), grid, 0), frames, false);
    assert_eq!(done.len(), 1, "2 s and the patience of 3 s");
}

#[test]
fn sound_alone_is_cut_by_time() {
    let sound = vec![(Timescale::new(1000).unwrap(), false)];
    let cutter = TitleCutter::measuring(&sound, Duration::from_secs(4), Duration::from_secs(9));
    let all = cut(cutter, (0..450).map(|n| (0, sample(n * 20, true))).collect(), true);
    assert_eq!(all.iter().map(|segment| segment.tracks[0].len()).collect::<Vec<_>>(), [199, 251]);
}

#[test]
fn a_segment_has_bounds() {
    let grid = Grid { segment: Duration::from_secs(2), length: Duration::from_secs(20) };
    let mut cutter = TitleCutter::new(&tracks(), grid, 0);
    let large = TitleSample { data: vec![0; MOST_BYTES + 1].into(), ..sample(0, true) };
    assert_eq!(cutter.push(0, large), Err(TooLarge));
}

#[test]
fn a_session_without_its_segment_tells_how_far_it_came() {
    let grid = Grid { segment: Duration::from_secs(2), length: Duration::from_secs(600) };
    let mut cutter = TitleCutter::new(&tracks(), grid, 200);
    assert_eq!((cutter.reached(), cutter.is_searching()), (None, true));
    for (track, sample) in film(&[0.0, 2.0, 4.0], 0.0, 5.0) {
        assert_eq!(cutter.push(track, sample).unwrap(), []);
    }
    assert_eq!(cutter.finish(), []);
    assert!(cutter.is_searching());
    assert_eq!(cutter.reached(), Some(Duration::from_millis(4980)));
}
