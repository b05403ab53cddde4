//! Viewers that are slow, and what they lose.

use super::*;
use crate::Frame;
use bytes::Bytes;
use millpond_media::Importance;

const SPAN: Duration = Duration::from_secs(2);
const LIMITS: QueueLimits =
    QueueLimits { runs: 1000, bytes: 1 << 20, span: SPAN, dropping: Dropping::LeastNeeded, is_counted: true };
/// Pictures of a group, 40 ms each.
const GROUP: u32 = 50;

/// A frame of 100 bytes and 40 ms: pictures are track 0, sound is track 1.
fn frame(track: u16, number: u32) -> Frame {
    let importance = if track == 0 { Importance::BASE } else { Importance::SOUND };
    Frame {
        track,
        number,
        due: Duration::from_millis(40) * number,
        pts: number.into(),
        epoch: 0,
        is_sync: track == 1,
        importance,
        data: Bytes::from_static(&[0; 100]),
    }
}

/// A picture of a stream in which no picture needs every second one.
fn picture(number: u32) -> Frame {
    let is_sync = number.is_multiple_of(GROUP);
    let importance = if number % 2 == 1 { Importance::DISPOSABLE } else { Importance::BASE };
    Frame { is_sync, importance, ..frame(0, number) }
}

fn pair(limits: QueueLimits, kept: &[Run]) -> (Registry, BranchWriter, PipeReader) {
    let registry = Registry::default();
    let (a, b) = (registry.add("channel", ""), registry.add("viewing", ""));
    let (writer, reader) = BranchWriter::new(&registry, (a.id(), b.id()), limits, kept.iter());
    (registry, writer, reader)
}

fn give(writer: &mut BranchWriter, frame: Frame, keys: &KeyInterval) -> usize {
    give_at(writer, frame, keys, Instant::now())
}

fn give_at(writer: &mut BranchWriter, frame: Frame, keys: &KeyInterval, now: Instant) -> usize {
    let bytes = frame.data.len();
    writer.give(&[frame].into(), (bytes, keys), now).unwrap()
}

fn taken(reader: &mut PipeReader, most: usize) -> Vec<Frame> {
    let mut all = Vec::new();
    while all.len() < most
        && let Ok(Some(frame)) = reader.peek()
    {
        all.push(frame.clone());
        reader.advance();
    }
    all
}

fn numbers(frames: &[Frame]) -> Vec<(u16, u32)> {
    frames.iter().map(|frame| (frame.track, frame.number)).collect()
}

/// A stream of pictures with sound for a reader that takes `rate` frames for each hundred. Returns what it took, with the number of
/// the newest frame at that time.
fn slow(limits: QueueLimits, rate: u32, count: u32) -> Vec<(Frame, u32)> {
    let (_registry, mut writer, mut reader) = pair(limits, &[]);
    let (mut keys, mut credit, mut seen) = (KeyInterval::default(), 0, Vec::new());
    let began = Instant::now();
    for number in 0..count {
        let now = began + Duration::from_millis(40) * number;
        let picture = picture(number);
        if picture.is_sync {
            keys.take(&picture);
        }
        give_at(&mut writer, picture, &keys, now);
        give_at(&mut writer, frame(1, number), &keys, now);
        credit += 2 * rate;
        let some = taken(&mut reader, credit as usize / 100);
        credit -= 100 * some.len() as u32;
        credit = credit.min(200);
        if !reader.is_drained() {
            reader.hold(now);
        }
        seen.extend(some.into_iter().map(|frame| (frame, number)));
    }
    seen
}

/// Checks that all pictures can be decoded, and that no sound is missing up to the last one.
fn assert_whole(seen: &[(Frame, u32)]) {
    let mut last: Option<u32> = None;
    for (frame, _) in seen.iter().filter(|(frame, _)| frame.track == 0) {
        let needed = if frame.number % 2 == 1 { 1 } else { 2 };
        assert!(frame.is_sync || last.is_some_and(|last| last == frame.number - needed), "{frame:?} after {last:?}");
        last = if frame.number % 2 == 0 { Some(frame.number) } else { last };
    }
    let sound: Vec<u32> = seen.iter().filter(|(frame, _)| frame.track == 1).map(|(frame, _)| frame.number).collect();
    assert_eq!(sound, (0..sound.len() as u32).collect::<Vec<_>>());
}

#[test]
fn a_reader_that_keeps_up_loses_nothing() {
    let seen = slow(LIMITS, 100, 1000);
    assert_eq!(seen.len(), 2000);
}

/// A burst of seconds: of a publisher that was late, or because a thread of this process was.
#[test]
fn a_burst_is_not_the_readers_fault() {
    let (_registry, mut writer, mut reader) = pair(LIMITS, &[]);
    let (keys, began) = (KeyInterval::default(), Instant::now());
    let at = |number: u32| began + Duration::from_millis(40) * number;
    // For 4 s the reader's thread has no turn.
    let lost: usize = (0..100).map(|number| give_at(&mut writer, picture(number), &keys, at(number))).sum();
    assert_eq!(lost, 0);
    // It has a turn. Its connection takes some of the frames, and the rest a moment later.
    assert_eq!(taken(&mut reader, 50).len(), 50);
    reader.hold(at(100));
    assert_eq!(give_at(&mut writer, picture(100), &keys, at(100) + SPAN / 8), 0);
    assert_eq!(taken(&mut reader, 1000).len(), 51);
    // After a long pause of the source the reader waits for frames, and a burst loses none.
    let lost: usize = (101..200).map(|number| give_at(&mut writer, picture(number), &keys, at(300))).sum();
    assert_eq!((lost, taken(&mut reader, 1000).len()), (0, 99));
}

#[test]
fn a_connection_that_takes_nothing_counts_from_its_first_refusal() {
    let (_registry, mut writer, reader) = pair(LIMITS, &[]);
    let (keys, began) = (KeyInterval::default(), Instant::now());
    (0..50).for_each(|number| assert_eq!(give_at(&mut writer, picture(number), &keys, began), 0));
    reader.hold(began);
    assert_eq!(give_at(&mut writer, picture(50), &keys, began + SPAN / 4), 0);
    assert!(give_at(&mut writer, picture(51), &keys, began + SPAN / 2) > 0);
    reader.hold(began + SPAN);
    assert!(give_at(&mut writer, picture(52), &keys, began + SPAN) > 0, "later refusals change nothing");
}

#[test]
fn pictures_that_none_needs_are_lost_first_and_evenly() {
    // Sound is half of the frames: 75 of 100 frames are all needed ones.
    let seen = slow(LIMITS, 80, 2000);
    assert_whole(&seen);
    let needed = seen.iter().filter(|(frame, _)| frame.track == 0 && frame.number % 2 == 0).count();
    assert!(needed >= 980, "{needed} of 1000");
    let most = seen.iter().map(|(frame, now)| now - frame.number).max().unwrap();
    assert!(most <= 25, "{most} frames late");
}

#[test]
fn each_group_loses_its_end_where_that_is_not_enough() {
    let seen = slow(LIMITS, 65, 5000);
    assert_whole(&seen);
    let late = seen.iter().map(|(frame, now)| now - frame.number).max().unwrap();
    assert!(late <= 55, "{late} frames late");
    let shown: Vec<u32> = seen.iter().filter(|(frame, _)| frame.track == 0).map(|(frame, _)| frame.number).collect();
    // 15 of 25 needed pictures of a group can be sent.
    let longest = shown.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
    assert!(longest <= GROUP * 3 / 4, "{longest} pictures in a row are missing");
    assert!(shown.len() as u32 >= 5000 * 3 / 10 * 9 / 10, "{} pictures", shown.len());
}

#[test]
fn of_a_reader_that_takes_next_to_nothing_only_key_frames_wait() {
    let seen = slow(LIMITS, 51, 5000);
    assert_whole(&seen);
    let late = seen.iter().map(|(frame, now)| now - frame.number).max().unwrap();
    assert!(late <= 105, "{late} frames late");
    assert!(seen.iter().filter(|(frame, _)| frame.track == 0).count() > 50);
}

#[test]
fn blind_dropping_loses_what_arrives() {
    let seen = slow(QueueLimits { dropping: Dropping::Blind, ..LIMITS }, 80, 2000);
    let pictures: Vec<u32> = seen.iter().filter(|(frame, _)| frame.track == 0).map(|(frame, _)| frame.number).collect();
    assert!(pictures.len() < 1900 && pictures.windows(2).any(|pair| pair[1] % 2 == 0 && pair[1] != pair[0] + 1));
    assert!(seen.iter().filter(|(frame, _)| frame.track == 1).count() < 1990, "sound too");
}

#[test]
fn tracks_that_alternate_count_their_time_once() {
    let limits = QueueLimits { span: Duration::from_secs(20), ..LIMITS };
    let (_registry, mut writer, _reader) = pair(limits, &[]);
    let keys = KeyInterval::default();
    // Sound is due 800 ms after the pictures that arrive with it.
    let lost: usize =
        (0..40).map(|n| give(&mut writer, picture(n), &keys) + give(&mut writer, frame(1, n + 20), &keys)).sum();
    let span = writer.queue.change(|waiting| waiting.load().span());
    assert_eq!((lost, span), (0, Ok(Duration::from_millis(40 * 59))));
}

#[test]
fn bytes_are_bounded_whatever_arrives() {
    let limits = QueueLimits { bytes: 1000, span: Duration::from_secs(1000), ..LIMITS };
    let (_registry, mut writer, mut reader) = pair(limits, &[]);
    let keys = KeyInterval::default();
    for number in 0..100 {
        give(&mut writer, frame(1, number), &keys);
        assert!(writer.queue.change(|waiting| waiting.load().bytes).unwrap() <= 1000);
    }
    assert_eq!(numbers(&taken(&mut reader, 100)), (0..10).map(|number| (1, number)).collect::<Vec<_>>());
    assert_eq!(give(&mut writer, frame(1, 100), &keys), 0, "there is room again");
    drop(reader);
    assert_eq!(writer.give(&[frame(0, 101)].into(), (100, &keys), Instant::now()), Err(Closed));
}

#[test]
fn runs_lose_some_of_their_frames() {
    let (_registry, mut writer, mut reader) = pair(LIMITS, &[]);
    let keys = KeyInterval::default();
    writer.lose(&[frame(0, 0)].into()).unwrap();
    let run: Run = [frame(0, 6), frame(1, 7)].into();
    assert_eq!(writer.give(&run, (200, &keys), Instant::now()), Ok(1));
    assert_eq!(numbers(&taken(&mut reader, 100)), [(1, 7)]);
}

#[test]
fn large_key_frames_and_what_a_branch_begins_with_always_fit() {
    let large = |number| Frame { is_sync: true, data: vec![0; 5000].into(), ..frame(0, number) };
    let kept: Vec<Run> = (0..100).map(|number| [frame(0, number)].into()).collect();
    let limits = QueueLimits { bytes: 1000, ..LIMITS };
    let (_registry, mut writer, mut reader) = pair(limits, &kept);
    let mut keys = KeyInterval::default();
    keys.take(&large(0));
    assert_eq!(give(&mut writer, large(100), &keys), 0, "an empty queue takes any run");
    assert_eq!(give(&mut writer, frame(0, 101), &keys), 0, "two of the largest fit");
    assert_eq!(taken(&mut reader, 1000).len(), 102);
}

#[test]
fn times_may_jump() {
    let (_registry, mut writer, _reader) = pair(LIMITS, &[]);
    let far = |number| Frame { due: Duration::from_secs(3600), ..frame(1, number) };
    let keys = KeyInterval::default();
    assert_eq!([give(&mut writer, frame(1, 200), &keys), give(&mut writer, far(201), &keys)], [0, 0]);
}
