//! Clips in the place of frames, on times of a test's own.

use super::{
    insertion::{Clip, Insertion, InsertionEnd, Turn},
    line::{Line, Passage},
    plan::{Plan, Unfit},
};
use crate::{
    Epoch, EpochReason, Format, Frame, Run,
    streams::tests::fake::{picture, pictures},
};
use millpond_media::{
    codec::{ByteOrder, Codec, PcmCoding, PcmConfig},
    movie::{Track, TrackKind},
    units::Timescale,
};
use millpond_package::MediaKind;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// Sound in the clock of its samples.
fn sound(sample_rate: u32) -> Option<Format> {
    let pictures = pictures(*b"vp08")?;
    let coding = PcmCoding::Signed16(ByteOrder::Big);
    let track = Track {
        kind: TrackKind::Audio { channels: 1, sample_rate },
        timescale: Timescale::new(sample_rate).unwrap(),
        codec: Codec::Pcm(PcmConfig { fourcc: *b"twos", coding, channels: 1, sample_rate }),
        ..pictures.track
    };
    Some(Format { kind: MediaKind::Audio, name: "a1".into(), track, ..pictures })
}

/// Sound of track 1: 40 ms each, due with the picture of that number.
fn tone(number: u32) -> Frame {
    Frame { track: 1, pts: 480_000 + 1920 * i64::from(number), is_sync: true, ..picture(number) }
}

fn formats() -> Vec<Option<Format>> {
    vec![pictures(*b"vp08"), sound(48_000)]
}

fn epoch(number: u32) -> Epoch {
    let from = Duration::from_secs(10);
    let wall = Duration::from_secs(1000);
    Epoch { number, from, wall, arrival: wall, formats: formats().into(), reason: EpochReason::Start }
}

/// A clip of 0.4 s in other clocks.
fn clip(id: u64, at: Option<u64>) -> Arc<Insertion> {
    let mut formats = formats();
    formats[0].as_mut().unwrap().track.timescale = Timescale::new(1000).unwrap();
    let plan = Plan::new(&self::formats(), &formats, 0).unwrap();
    let clip = Clip { path: "ad".into(), length: Duration::from_millis(400), formats };
    Insertion::new((id, "door".into()), clip, plan, (at.map(Duration::from_secs), None))
}

/// A picture of the clip, and the sound with it.
fn of_clip(number: u32) -> [Frame; 2] {
    let due = Duration::from_millis(40) * number;
    let picture = Frame { due, pts: 40 * i64::from(number), ..picture(number) };
    [picture.clone(), Frame { track: 1, pts: 1920 * i64::from(number), is_sync: true, ..picture }]
}

/// A line, and what has passed it.
#[derive(Default)]
struct Test {
    line: Line,
    epochs: Vec<Epoch>,
    frames: Vec<Frame>,
    pauses: usize,
}

impl Test {
    fn new() -> Self {
        let mut new = Self::default();
        new.act(|line, out| line.begin(epoch(0), out));
        new
    }

    fn act(&mut self, act: impl FnOnce(&mut Line, &mut Vec<Passage>)) {
        let mut out = Vec::new();
        act(&mut self.line, &mut out);
        for passage in out {
            match passage {
                Passage::Epoch(epoch) => self.epochs.push(epoch),
                Passage::Run(run) => self.frames.extend(run.iter().cloned()),
                Passage::Pause => self.pauses += 1,
            }
        }
    }

    fn put(&mut self, frames: &[Frame]) {
        let run: Run = frames.into();
        self.act(|line, out| {
            if line.is_plain() {
                line.note(&run);
                out.push(Passage::Run(run.clone()));
            } else {
                line.source(&run, Instant::now(), out);
            }
        });
    }

    /// Pictures and sound of the source.
    fn source(&mut self, numbers: std::ops::Range<u32>) {
        numbers.for_each(|number| self.put(&[picture(number), tone(number)]));
    }

    /// Checks that numbers have no holes, and that times rise, in each track.
    #[track_caller]
    fn assert_in_order(&self) {
        for track in 0..2 {
            let frames: Vec<&Frame> = self.frames.iter().filter(|frame| frame.track == track).collect();
            for pair in frames.windows(2) {
                assert_eq!(pair[1].number, pair[0].number + 1, "{pair:?}");
                assert!(pair[1].due > pair[0].due && pair[1].pts > pair[0].pts, "{pair:?}");
                assert!(pair[1].epoch >= pair[0].epoch, "{pair:?}");
            }
        }
    }

    /// Epochs and presentation times in ms of the pictures, a pair for each stretch of an epoch: the first and the last.
    fn stretches(&self) -> Vec<(u32, i64, i64)> {
        let pictures: Vec<&Frame> = self.frames.iter().filter(|frame| frame.track == 0).collect();
        let of = |stretch: &[&Frame]| (stretch[0].epoch, stretch[0].pts / 90, stretch[stretch.len() - 1].pts / 90);
        pictures.chunk_by(|a, b| a.epoch == b.epoch).map(of).collect()
    }
}

#[test]
fn a_clip_begins_and_ends_with_key_frames_of_the_source() {
    let (mut test, ad) = (Test::new(), clip(1, None));
    test.source(0..5);
    assert!(test.line.add(ad.clone(), 1) && !test.line.add(clip(2, None), 1));
    test.source(5..9);
    test.put(&[picture(9)]);
    // Sound that is presented before the key frame arrives after it.
    test.put(&[picture(10), tone(9), tone(10)]);
    assert!(matches!(&*ad.turn().borrow(), Turn::Enters(cut) if cut.from == Duration::from_millis(10_400)));
    test.act(|line, out| line.enter(&ad, out));
    for number in 0..10 {
        test.act(|line, out| line.clip(&ad, &of_clip(number), out));
        test.source(11 + number..12 + number);
    }
    // The key frame at the clip's end came before the clip was told to be complete, and is held with what follows.
    assert!(matches!(&*ad.turn().borrow(), Turn::Hurries(_)));
    test.act(|line, out| line.finish(&ad, InsertionEnd::Complete, out));
    test.source(21..25);
    assert_eq!(test.stretches(), [(0, 10_000, 10_360), (1, 10_400, 10_760), (2, 10_800, 10_960)]);
    test.assert_in_order();
    let report = ad.report();
    assert_eq!((report.end, report.frames, report.replaced), (Some(InsertionEnd::Complete), 20, 20));
    let reasons: Vec<_> = test.epochs.iter().map(|epoch| (epoch.reason, epoch.from, epoch.wall)).collect();
    let at = |millis: u64| (Duration::from_millis(10_000 + millis), Duration::from_millis(1_000_000 + millis));
    let [first, second, third] = [at(0), at(400), at(800)];
    assert_eq!(reasons[0], (EpochReason::Start, first.0, first.1));
    assert_eq!(reasons[1..], [(EpochReason::Splice, second.0, second.1), (EpochReason::Splice, third.0, third.1)]);
    assert_eq!(test.epochs[1].formats[0].as_ref().unwrap().track.timescale, Timescale::MPEG);
    let sound: Vec<i64> = test.frames.iter().filter(|frame| frame.track == 1).map(|frame| frame.pts).collect();
    assert_eq!(sound, (0..25).map(|number| 480_000 + 1920 * number).collect::<Vec<_>>(), "without a gap");
}

#[test]
fn clips_wait_for_their_time_and_follow_each_other() {
    let mut test = Test::new();
    // The first one may begin at 10.8 s, the other one from 10.1 s on.
    let (later, first) = (clip(1, Some(1001)), clip(2, Some(1000)));
    test.line.add(later.clone(), 9);
    test.line.add(first.clone(), 9);
    test.source(0..1);
    assert!(matches!(&*first.turn().borrow(), Turn::Enters(_)));
    test.act(|line, out| line.enter(&first, out));
    test.act(|line, out| line.clip(&first, &of_clip(0), out));
    test.source(1..30);
    test.act(|line, out| line.finish(&first, InsertionEnd::Complete, out));
    assert_eq!(*later.turn().borrow(), Turn::Waits);
    test.source(30..31);
    assert!(matches!(&*later.turn().borrow(), Turn::Enters(_)));
    test.act(|line, out| line.finish(&later, InsertionEnd::Failed("gone".into()), out));
    test.source(31..51);
    assert_eq!(test.stretches(), [(1, 10_000, 10_000), (2, 10_400, 11_160), (3, 11_600, 12_000)]);
    test.assert_in_order();
}

#[test]
fn a_cancelled_clip_gives_way_to_the_next_key_frame() {
    let (mut test, ad) = (Test::new(), clip(1, None));
    test.line.add(ad.clone(), 1);
    test.source(0..1);
    test.act(|line, out| line.enter(&ad, out));
    (0..3).for_each(|number| test.act(|line, out| line.clip(&ad, &of_clip(number), out)));
    test.act(|line, out| line.finish(&ad, InsertionEnd::Cancelled, out));
    assert_eq!(test.pauses, 1, "nobody begins with the clip any more");
    test.act(|line, out| line.clip(&ad, &of_clip(3), out));
    test.source(3..12);
    assert_eq!(test.stretches(), [(1, 10_000, 10_080), (2, 10_400, 10_440)]);
    test.assert_in_order();
}

#[test]
fn epochs_of_the_source_go_on_after_a_clip() {
    let (mut test, ad) = (Test::new(), clip(1, None));
    test.line.add(ad.clone(), 1);
    test.source(0..1);
    test.act(|line, out| line.enter(&ad, out));
    test.act(|line, out| line.clip(&ad, &of_clip(0), out));
    test.act(Line::lose);
    assert_eq!(test.pauses, 0, "the clip plays on");
    test.act(|line, out| line.begin(epoch(1), out));
    test.act(|line, out| line.finish(&ad, InsertionEnd::Complete, out));
    test.put(&[Frame { epoch: 1, ..picture(20) }, picture(21), Frame { epoch: 1, ..picture(22) }]);
    test.act(|line, out| line.begin(Epoch { from: Duration::from_secs(11), ..epoch(2) }, out));
    test.put(&[Frame { epoch: 2, ..picture(30) }]);
    assert_eq!(test.stretches(), [(1, 10_000, 10_000), (2, 10_800, 10_880), (3, 11_200, 11_200)]);
    assert_eq!(test.epochs.iter().map(|epoch| epoch.number).collect::<Vec<_>>(), [0, 1, 2, 3]);
}

#[test]
fn a_clip_that_is_late_does_not_hold_the_source() {
    let (mut test, ad) = (Test::new(), clip(1, None));
    test.line.add(ad.clone(), 1);
    test.source(0..1);
    test.act(|line, out| line.enter(&ad, out));
    test.source(1..3000);
    assert_eq!(ad.report().end, Some(InsertionEnd::Late));
    assert_eq!(test.stretches(), [(2, 10_400, 10_000 + 2999 * 40)]);
    test.assert_in_order();
}

#[test]
fn clips_of_other_formats_are_refused_by_name() {
    let refused = |stream: &[Option<Format>], clip: &[Option<Format>]| Plan::new(stream, clip, 0).unwrap_err();
    let other = vec![pictures(*b"vp09"), sound(48_000)];
    assert!(matches!(refused(&formats(), &other), Unfit::Format { .. }));
    let slow = refused(&formats(), &[pictures(*b"vp08"), sound(44_100)]).to_string();
    assert!(slow.contains("44100 Hz") && slow.contains("48000 Hz"), "{slow}");
    assert_eq!(refused(&formats(), &[sound(48_000)]), Unfit::NoLead("pictures"));
    let encrypted = Format { is_encrypted: true, ..pictures(*b"vp08").unwrap() };
    assert!(refused(&formats(), &[Some(encrypted)]).to_string().contains("encrypted"));
    // The clip may be silent, or the stream.
    assert!(Plan::new(&formats(), &[None, pictures(*b"vp08")], 0).is_ok_and(|plan| *plan.tracks() == [1]));
    assert!(Plan::new(&formats()[..1], &formats(), 0).is_ok_and(|plan| *plan.tracks() == [0]));
}
