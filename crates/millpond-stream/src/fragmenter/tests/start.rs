//! First fragments that wait for no other frame.

use super::*;

/// Ticks between two pictures.
const INTERVAL: i64 = 512;
/// Reordering of the pictures of [`Feed::picture`].
const REORDER: i64 = 512;

/// The limits of a long response.
const SHORT: FragmentLimits =
    FragmentLimits { least: Duration::ZERO, most: Duration::from_millis(100), bytes: 4 << 20 };

fn tempo(feed: &Feed) -> Tempo {
    Tempo { track: feed.video, interval: Some(Duration::from_millis(40)), reorder: REORDER }
}

fn fragmenter(feed: &Feed, lead: u16, tempo: Tempo) -> Fragmenter {
    let formats = feed.formats.iter().map(|(track, format)| (*track, format));
    let mut fragmenter = Fragmenter::new(formats, lead, SHORT).unwrap().with_clean_holes();
    fragmenter.expect(tempo);
    fragmenter
}

/// Fragments of a viewer who gets `first` at once and `later` one by one. The first fragment is the one that did not wait.
fn fragments(fragmenter: &mut Fragmenter, first: &[Frame], later: &[Frame]) -> Vec<Fragment> {
    assert!(first.iter().all(|frame| fragmenter.push(frame).is_none()));
    let mut all: Vec<_> = fragmenter.start().into_iter().collect();
    assert!(all.len() == 1 && fragmenter.start().is_none(), "there is one first fragment");
    all.extend(later.iter().filter_map(|frame| fragmenter.push(frame)));
    all.extend(fragmenter.finish());
    all
}

fn file(fragments: &[Fragment]) -> Vec<u8> {
    let mut file = Vec::new();
    fragments.iter().for_each(|fragment| write(&mut file, fragment));
    file
}

/// Content of the boxes of a type.
fn boxes<'a>(mut bytes: &'a [u8], kind: &[u8; 4]) -> Vec<&'a [u8]> {
    let mut found = Vec::new();
    while let Some((size, rest)) = bytes.split_first_chunk::<4>() {
        let (content, after) = rest.split_at_checked(u32::from_be_bytes(*size) as usize - 4).unwrap_or((rest, &[]));
        if &content[..4] == kind {
            found.push(&content[4..]);
        }
        bytes = after;
    }
    found
}

/// Numbers of 32 bits.
fn numbers(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|four| u32::from_be_bytes(four.try_into().unwrap())).collect()
}

/// Decode time, and end by the durations that are stated, of a track in a fragment.
fn stated(fragment: &Fragment, id: u32) -> Option<(i64, i64)> {
    let track = |fragment: &&[u8]| numbers(boxes(fragment, b"tfhd")[0])[1] == id;
    let fragment = boxes(boxes(&fragment.head, b"moof")[0], b"traf").into_iter().find(track)?;
    let begin = i64::from(numbers(boxes(fragment, b"tfdt")[0])[2]);
    let (header, run) = (numbers(boxes(fragment, b"tfhd")[0]), numbers(boxes(fragment, b"trun")[0]));
    let (flags, count) = (run[0], run[1] as usize);
    let duration = if flags & 0x100 == 0 {
        header[2] * run[1]
    } else {
        let columns = (flags >> 8 & 0xf).count_ones() as usize;
        let rows = &run[3 + usize::from(flags & 4 > 0)..];
        assert_eq!(rows.len(), columns * count);
        rows.iter().step_by(columns).sum()
    };
    Some((begin, begin + i64::from(duration)))
}

/// Checks that the fragments of the leading track follow each other without holes and overlaps.
#[track_caller]
fn assert_joined(fragments: &[Fragment]) {
    let spans: Vec<_> = fragments.iter().filter_map(|fragment| stated(fragment, 1)).collect();
    assert!(spans.len() > 1);
    for two in spans.windows(2) {
        assert_eq!(two[0].1, two[1].0, "{spans:?}");
    }
}

/// Presentation times of the pictures of a file.
fn shown(file: &[u8]) -> Vec<i64> {
    read(&index_bytes(file).unwrap(), true).into_iter().map(|(pts, _)| pts).collect()
}

#[test]
fn a_key_frame_waits_for_no_other_frame() {
    let feed = Feed::new();
    let pictures: Vec<_> = (100..150).map(|number| feed.picture(number)).collect();
    let mut fragmenter = fragmenter(&feed, feed.video, tempo(&feed));
    let all = fragments(&mut fragmenter, &pictures[..1], &pictures[1..]);
    assert!(all[0].init.is_some() && all[0].is_independent && all[0].frames.len() == 1);
    assert_joined(&all);
    let file = file(&all);
    assert_eq!(shown(&file), pictures.iter().map(|frame| frame.pts - 100 * INTERVAL).collect::<Vec<_>>());
    let movie = index_bytes(&file).unwrap();
    assert!(movie.tracks.iter().all(|track| track.samples.iter().all(|sample| sample.composition >= 0)));
}

#[test]
fn the_newest_frames_are_sent_with_the_key_frame() {
    let feed = Feed::new();
    let all = feed.frames(50..100);
    let place = all.iter().position(|frame| frame.due > Duration::from_millis(2090)).unwrap();
    let mut fragmenter = fragmenter(&feed, feed.video, tempo(&feed));
    let all_fragments = fragments(&mut fragmenter, &all[..place], &all[place..]);
    let pictures = all[..place].iter().filter(|frame| frame.track == feed.video).count();
    let sound = all_fragments[0].frames.len() - pictures;
    assert_eq!((pictures, sound), (3, 3), "the last frame of sound waits for the next one");
    assert_joined(&all_fragments);
    let movie = index_bytes(&file(&all_fragments)).unwrap();
    let times = |is_video| read(&movie, is_video).into_iter().map(|(pts, _)| pts).collect::<Vec<_>>();
    let of = |track| all.iter().filter(move |frame| frame.track == track);
    assert_eq!(times(true), of(feed.video).map(|frame| frame.pts - 50 * INTERVAL).collect::<Vec<_>>());
    let sound: Vec<_> = of(feed.audio).map(|frame| frame.pts - 2 * 48_000).filter(|pts| *pts >= 0).collect();
    assert_eq!(times(false), sound);
}

#[test]
fn pictures_that_come_early_or_late_keep_their_times() {
    let feed = Feed::new();
    for second in [10, 30, 39, 41, 60, 150, 5000] {
        let picture = |number: u32, ms: u64| Frame {
            due: Duration::from_millis(ms),
            pts: ticks(Duration::from_millis(ms), 12_800),
            is_sync: number == 0,
            ..feed.picture(number)
        };
        let times = [0, second, second + 40, second + 80, second + 200, second + 240];
        let pictures: Vec<_> = (0..).zip(times).map(|(number, ms)| picture(number, ms)).collect();
        let steady = Tempo { reorder: 0, ..tempo(&feed) };
        let all = fragments(&mut fragmenter(&feed, feed.video, steady), &pictures[..1], &pictures[1..]);
        let file = file(&all);
        assert_eq!(shown(&file), pictures.iter().map(|frame| frame.pts).collect::<Vec<_>>(), "{second} ms");
        let movie = index_bytes(&file).unwrap();
        let video = movie.tracks.iter().find(|track| matches!(track.kind, TrackKind::Video { .. })).unwrap();
        let samples: Vec<_> = video.samples.iter().collect();
        assert!(samples.windows(2).all(|two| two[0].dts < two[1].dts), "{second} ms");
        assert!(samples.iter().all(|sample| sample.composition >= 0), "{second} ms");
        // Only a picture that is presented before the end that was assumed can't join it.
        if second >= 40 {
            assert_joined(&all);
        }
    }
}

#[test]
fn reordering_that_grows_is_presented_before_it_is_decoded() {
    let feed = Feed::new();
    let pictures: Vec<_> = (0..50).map(|number| feed.picture(number)).collect();
    let unaware = Tempo { reorder: 0, ..tempo(&feed) };
    let all = fragments(&mut fragmenter(&feed, feed.video, unaware), &pictures[..1], &pictures[1..]);
    assert_joined(&all);
    let file = file(&all);
    assert_eq!(shown(&file), pictures.iter().map(|frame| frame.pts).collect::<Vec<_>>());
    let movie = index_bytes(&file).unwrap();
    assert!(movie.tracks.iter().any(|track| track.samples.iter().any(|sample| sample.composition < 0)));
}

#[test]
fn more_reordering_than_there_is_changes_no_time() {
    let feed = Feed::new();
    let pictures: Vec<_> = (0..50).map(|number| feed.picture(number)).collect();
    for reorder in [REORDER, 3 * REORDER, 16 * i64::from(12_800)] {
        let claimed = Tempo { reorder, ..tempo(&feed) };
        let all = fragments(&mut fragmenter(&feed, feed.video, claimed), &pictures[..1], &pictures[1..]);
        assert_joined(&all);
        assert_eq!(stated(&all[0], 1).unwrap().0, 0, "decode times begin with 0");
        let file = file(&all);
        assert_eq!(shown(&file), pictures.iter().map(|frame| frame.pts).collect::<Vec<_>>());
        let movie = index_bytes(&file).unwrap();
        assert!(movie.tracks.iter().all(|track| track.samples.iter().all(|sample| sample.composition >= 0)));
    }
}

#[test]
fn without_an_interval_the_second_picture_ends_the_first_fragment() {
    let feed = Feed::new();
    let pictures: Vec<_> = (0..50).map(|number| feed.picture(number)).collect();
    let mut fragmenter = fragmenter(&feed, feed.video, Tempo { interval: None, ..tempo(&feed) });
    assert!(fragmenter.push(&pictures[0]).is_none() && fragmenter.start().is_none());
    let all = fragments(&mut fragmenter, &pictures[1..2], &pictures[2..]);
    assert_eq!((all[0].frames.len(), stated(&all[0], 1)), (1, Some((0, INTERVAL))));
    assert_joined(&all);
    assert_eq!(shown(&file(&all)), pictures.iter().map(|frame| frame.pts).collect::<Vec<_>>());
}

#[test]
fn sound_alone_starts_with_one_frame() {
    let feed = Feed::new();
    let interval = Some(feed.sound(1).due);
    let tempo = Tempo { track: feed.audio, interval, reorder: 0 };
    let frames: Vec<_> = (500..600).map(|number| feed.sound(number)).collect();
    let formats = feed.formats.iter().filter(|(track, _)| *track == feed.audio);
    let mut fragmenter = Fragmenter::new(formats.map(|(track, format)| (*track, format)), feed.audio, SHORT).unwrap();
    fragmenter.expect(tempo);
    let all = fragments(&mut fragmenter, &frames[..1], &frames[1..]);
    assert_joined(&all);
    let times: Vec<_> = read(&index_bytes(&file(&all)).unwrap(), false).into_iter().map(|(pts, _)| pts).collect();
    assert_eq!(times, (0..100).map(|number| number * 1024).collect::<Vec<_>>());
}

#[test]
fn without_a_tempo_the_first_fragment_waits() {
    let feed = Feed::new();
    let formats = || feed.formats.iter().map(|(track, format)| (*track, format));
    let mut unknown = Fragmenter::new(formats(), feed.video, SHORT).unwrap();
    assert!(unknown.start().is_none(), "there is no frame");
    unknown.push(&feed.picture(0));
    assert!(unknown.start().is_none());
    let mut of_other = fragmenter(&feed, feed.video, Tempo { track: feed.audio, ..tempo(&feed) });
    of_other.push(&feed.picture(0));
    assert!(of_other.start().is_none());
}
