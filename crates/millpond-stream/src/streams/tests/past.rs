//! The past of a stream as frames.

use super::windows::{AUDIO, Stage, VIDEO, film, formats};
use crate::{
    Feed, Frame, LiveWindow,
    live::{PastFeed, PastPoint, PastReader, PastStart, Windows},
};
use bytes::Bytes;
use millpond_package::live::SegmentNumber;
use millpond_store::{Holds, Memory, policy::PolicyName};
use std::{sync::Arc, time::Duration};

/// Wall time of stream time 0.
const ORIGIN: Duration = Duration::from_secs(1_699_999_990);
/// Pictures are shown a frame after their due time.
const SHOWN: Duration = Duration::from_millis(40);

fn reader(window: &Arc<LiveWindow>, feed: &Arc<PastFeed>, next: [u32; 2], to: Option<Duration>) -> PastReader {
    let holds = Holds::of(&Memory::new(64 << 20, PolicyName::Sieve), "past");
    let tracks = [(VIDEO, next[0]), (AUDIO, next[1])];
    PastReader::new((Windows::default(), window.clone()), feed.clone(), holds, tracks, to)
}

/// Reads until nothing comes for a while.
async fn read(reader: &mut PastReader) -> Vec<Frame> {
    let mut all = Vec::new();
    while let Ok(Some(run)) = tokio::time::timeout(Duration::from_millis(500), reader.next()).await {
        all.extend(run.iter().cloned());
    }
    all
}

/// Bytes of a track's frames.
fn of(frames: &[Frame], track: u16) -> Vec<Bytes> {
    frames.iter().filter(|frame| frame.track == track).map(|frame| frame.data.clone()).collect()
}

/// Asserts that frames of a track are those that were put in, from the first one on, up to the last part.
#[track_caller]
fn assert_same(seen: &[Frame], put: &[Frame], track: u16) {
    let (seen, put) = (of(seen, track), of(put, track));
    let at = put.iter().position(|data| *data == seen[0]).expect("a frame that was put in");
    assert_eq!(seen[..], put[at..at + seen.len()], "track {track}");
}

#[tokio::test(start_paused = true)]
async fn frames_follow_each_other_from_a_key_frame_to_those_that_arrive() {
    let (stage, live) = Stage::open(Duration::ZERO).await;
    let window = stage.window(&live);
    let mut put = film(0..6);
    stage.put(put.clone()).await;
    let feed = Arc::new(PastFeed::new(live));
    let mut reader = reader(&window, &feed, [7, 9], None);
    let begun = reader.begin(&PastStart::At(ORIGIN + Duration::from_millis(13_500))).await.unwrap();
    assert_eq!(begun.wall, ORIGIN + Duration::from_secs(13) + SHOWN, "the key frame before");
    assert!(begun.is_new && begun.due + SHOWN == begun.at);
    let mut seen = read(&mut reader).await;
    put.extend(film(6..8));
    stage.put(film(6..8)).await;
    seen.extend(read(&mut reader).await);
    assert_eq!(seen[0].data, "picture 75");
    assert!(of(&seen, VIDEO).len() > 90 && of(&seen, AUDIO).len() > 160, "{}", seen.len());
    for (track, first) in [(VIDEO, 7), (AUDIO, 9)] {
        assert_same(&seen, &put, track);
        let mut numbers = seen.iter().filter(|frame| frame.track == track).map(|frame| frame.number).zip(first..);
        assert!(numbers.all(|(number, expected)| number == expected), "track {track}");
    }
    let sound = seen.iter().find(|frame| frame.track == AUDIO).unwrap();
    let begins = 48 * begun.at.as_millis() as i64;
    assert!((begins..begins + 1024).contains(&sound.pts), "{sound:?}");
    assert!(seen.is_sorted_by_key(|frame| frame.due));
}

#[tokio::test(start_paused = true)]
async fn a_reader_goes_on_behind_the_last_frames_and_ends_at_a_time() {
    let (stage, live) = Stage::open(Duration::ZERO).await;
    let window = stage.window(&live);
    stage.put(film(0..8)).await;
    let feed = Arc::new(PastFeed::new(live.clone()));
    let mut first = reader(&window, &feed, [0, 0], None);
    first.begin(&PastStart::At(ORIGIN + Duration::from_secs(12))).await.unwrap();
    let all = read(&mut first).await;
    for count in [10, 60, 61, 62, 100] {
        let (seen, rest) = all.split_at(count);
        let last = seen.last().unwrap();
        let (epoch, segment) = feed.stretch(last.epoch).unwrap();
        let passed = |track| Some((track, seen.iter().rfind(|frame| frame.track == track)?.due));
        let point = PastPoint {
            segment: Some(segment),
            wall: epoch.wall + last.due - epoch.from,
            due: last.due,
            passed: [VIDEO, AUDIO].into_iter().filter_map(passed).collect(),
        };
        let next = [VIDEO, AUDIO].map(|track| of(seen, track).len() as u32);
        let end = epoch.wall + Duration::from_secs(4);
        let again = Arc::new(PastFeed::new(live.clone()));
        let mut second = reader(&window, &again, next, Some(end));
        let begun = second.begin(&PastStart::Next(point)).await.unwrap();
        assert!(!begun.is_new && begun.at == last.due);
        let seen = read(&mut second).await;
        let expected = rest.iter().filter(|frame| epoch.wall + frame.due < end + epoch.from);
        let times = |frame: &Frame| (frame.track, frame.number, frame.due, frame.pts, frame.data.clone());
        let (seen, expected): (Vec<_>, Vec<_>) = (seen.iter().map(times).collect(), expected.map(times).collect());
        assert_eq!(seen, expected, "after {count}");
        assert!(seen.len() > 50);
    }
}

#[tokio::test(start_paused = true)]
async fn a_discontinuity_is_jumped_over() {
    let (stage, live) = Stage::open(Duration::ZERO).await;
    let window = stage.window(&live);
    let first = film(0..6);
    stage.put(first.clone()).await;
    let later = Duration::from_secs(90);
    stage.fake.begin_at(1, Duration::from_secs(100), formats());
    let scale = |track| if track == VIDEO { 90_000 } else { 48_000 };
    let moved =
        |frame: Frame| Frame { due: frame.due + later, pts: frame.pts + 90 * scale(frame.track), epoch: 1, ..frame };
    let second: Vec<_> = film(0..6).into_iter().map(moved).collect();
    stage.put(second.clone()).await;
    let feed = Arc::new(PastFeed::new(live));
    let mut reader = reader(&window, &feed, [0, 0], None);
    reader.begin(&PastStart::At(ORIGIN + Duration::from_millis(14_500))).await.unwrap();
    let seen = read(&mut reader).await;
    let border = seen.iter().position(|frame| frame.epoch != seen[0].epoch).expect("another epoch");
    for track in [VIDEO, AUDIO] {
        assert_same(&seen[..border], &first, track);
        assert_same(&seen[border..], &second, track);
        let times: Vec<_> = seen.iter().filter(|frame| frame.track == track).map(|frame| frame.due).collect();
        let step = times.windows(2).map(|two| two[1].abs_diff(two[0])).max().unwrap();
        assert!(times.is_sorted() && step < Duration::from_millis(150), "{step:?}");
    }
    let first_picture = seen[border..].iter().find(|frame| frame.track == VIDEO).unwrap();
    assert_eq!((&seen[0].data[..], &first_picture.data[..]), (&b"picture 100"[..], &b"picture 0"[..]));
    let epoch = feed.epoch(first_picture.epoch).unwrap();
    assert_eq!(epoch.wall, ORIGIN + Duration::from_secs(100) + SHOWN);
    assert!(epoch.formats.iter().all(Option::is_some));
    assert!(feed.stretch(first_picture.epoch).unwrap().1 > SegmentNumber(0));
}
