//! Changes from one stream to another, frame by frame.

use super::*;
use crate::{
    epoch::EpochReason,
    streams::tests::fake::{picture, pictures},
};
use millpond_media::{
    Importance,
    codec::{AvcConfig, Codec},
};

const LIMIT: Duration = Duration::from_secs(3);
/// Strain that makes a viewer go down.
const HARD: Strain = Strain { waits: Duration::from_secs(1), dropped: 0, losses: 0 };
const EASY: Strain = Strain { waits: Duration::ZERO, dropped: 0, losses: 0 };
/// Ticks between two pictures.
const INTERVAL: i64 = 3600;
/// Stream time by which the second stream is ahead of the first one.
const AHEAD: Duration = Duration::from_millis(5010);

/// Two streams of the same pictures, 25 a second with a key frame each 10, with clocks of their own.
struct Pair {
    follower: Follower,
    formats: [Option<Format>; 2],
    /// Time by which the second stream's pictures arrive late, as its wall clock tells.
    late: Duration,
    out: Vec<Given>,
}

impl Pair {
    fn new(formats: [Option<Format>; 2]) -> Self {
        let follower = Follower::new(2, &formats[..1], LIMIT).unwrap();
        Self { follower, formats, late: Duration::from_millis(30), out: Vec::new() }
    }

    fn plain() -> Self {
        Self::new([pictures(*b"vp08"), pictures(*b"vp08")])
    }

    fn epoch(&self, of: usize) -> Epoch {
        let wall = Duration::from_secs(1_700_000_000);
        let from = Duration::from_secs(10) + if of == 0 { Duration::ZERO } else { AHEAD };
        let wall = wall + if of == 0 { Duration::ZERO } else { self.late };
        Epoch {
            number: 7,
            from,
            wall,
            arrival: wall,
            formats: [self.formats[of].clone()].into(),
            reason: EpochReason::Start,
        }
    }

    /// Gives picture `number` of a stream. Its data are the stream and the number.
    fn put(&mut self, of: usize, number: u32) {
        let shown = picture(number);
        let (due, pts) = match of {
            0 => (shown.due, shown.pts),
            _ => (shown.due + AHEAD, shown.pts + 450_900),
        };
        let data = vec![of as u8, number as u8].into();
        let frame = Frame { due, pts, epoch: 7, data, ..shown };
        let epoch = self.epoch(of);
        self.follower.take(of, &frame, || Some(epoch), time(number), &mut self.out);
    }

    fn strain(&mut self, number: u32, strain: Strain) {
        self.follower.look(time(number), &strain);
    }

    /// Gives pictures of both streams, the second one's `behind` later, or before the first one's.
    fn both(&mut self, numbers: std::ops::Range<u32>, behind: Option<u32>) {
        for number in numbers {
            match behind {
                None => {
                    self.put(1, number);
                    self.put(0, number);
                }
                Some(behind) => {
                    self.put(0, number);
                    if let Some(number) = number.checked_sub(behind) {
                        self.put(1, number);
                    }
                }
            }
        }
    }

    fn frames(&self) -> Vec<&Frame> {
        let frame = |given: &Given| if let Given::Frame(frame) = given { Some(frame.clone()) } else { None };
        assert!(self.out.iter().filter_map(frame).all(|frame| frame.epoch == 0));
        let frames =
            self.out.iter().filter_map(|given| if let Given::Frame(frame) = given { Some(frame) } else { None });
        frames.collect()
    }

    /// Pictures as stream and number. Numbers, times and due times must go on.
    fn given(&self) -> Vec<(u8, u8)> {
        let frames = self.frames();
        for two in frames.windows(2) {
            assert_eq!(two[1].number, two[0].number + 1);
            assert!(two[1].due > two[0].due);
            assert_eq!(two[1].pts - two[0].pts, INTERVAL, "{two:?}");
        }
        let data = |frame: &Frame| {
            let [of, number] = frame.data[frame.data.len() - 2..] else { unreachable!() };
            (of, number)
        };
        frames.into_iter().map(data).collect()
    }
}

/// Time at which a picture arrives.
fn time(number: u32) -> Duration {
    Duration::from_millis(40) * number
}

/// Pictures of the first stream up to one, then those of the second one up to another.
fn changed(at: u8, to: u8) -> Vec<(u8, u8)> {
    (0..at).map(|number| (0, number)).chain((at..to).map(|number| (1, number))).collect()
}

#[test]
fn it_changes_at_key_frames_of_the_same_moment() {
    for behind in [None, Some(0), Some(1), Some(5)] {
        let mut pair = Pair::plain();
        pair.both(0..15, behind);
        pair.strain(15, HARD);
        pair.both(15..40, behind);
        let last = 40 - behind.unwrap_or(0) as u8;
        assert_eq!(pair.given(), changed(20, last), "{behind:?}");
        assert_eq!((pair.follower.changes(), pair.follower.current()), (1, 1));
        assert_eq!(pair.out.iter().filter(|given| matches!(given, Given::Epoch(_))).count(), 1, "no epoch begins");
    }
}

#[test]
fn it_returns_to_the_times_of_the_sound() {
    let mut pair = Pair::plain();
    pair.both(0..5, None);
    pair.strain(5, HARD);
    pair.both(5..30, None);
    // Ten seconds without strain.
    (30..300).for_each(|number| pair.strain(number, EASY));
    pair.both(30..45, None);
    let given = pair.given();
    let up = given.iter().rposition(|(of, _)| *of == 1).unwrap() + 1;
    assert_eq!(given[up], (0, 30), "{given:?}");
    assert!(up > 10 && given[10] == (1, 10));
    let last = pair.frames().last().unwrap().pts;
    assert_eq!(last, picture(44).pts, "times of the first stream are as they are");
}

#[test]
fn pictures_that_were_held_back_are_not_lost() {
    let mut pair = Pair::plain();
    pair.both(0..15, Some(0));
    pair.strain(15, HARD);
    // The second stream stands still: nothing more of it arrives.
    (15..45).for_each(|number| pair.put(0, number));
    assert_eq!(pair.given(), (0..45).map(|number| (0, number)).collect::<Vec<_>>());
    assert_eq!(pair.follower.changes(), 0);
}

#[test]
fn without_common_key_frames_the_wall_clock_decides() {
    let mut pair = Pair::plain();
    pair.late = Duration::from_millis(4520);
    pair.both(0..5, Some(0));
    pair.strain(5, HARD);
    pair.both(5..60, Some(0));
    assert_eq!(pair.follower.changes(), 1);
    let frames = pair.frames();
    let shown: Vec<i64> = frames.iter().map(|frame| frame.pts).collect();
    assert!(shown.is_sorted() && frames.windows(2).all(|two| two[1].number == two[0].number + 1), "{shown:?}");
    let (of, number) = (frames.last().unwrap().data[0], frames.last().unwrap().data[1]);
    assert_eq!((of, number), (1, 59));
    let gap = frames.iter().zip(frames.iter().skip(1)).find(|(a, b)| a.data[0] != b.data[0]).unwrap();
    assert_eq!(gap.1.pts, picture(u32::from(gap.1.data[1])).pts + 4520 * 90, "at the time that the clocks tell");
    assert!(gap.1.is_sync);
}

#[test]
fn a_stream_that_ends_gives_way_to_the_first_one() {
    let mut pair = Pair::plain();
    pair.both(0..5, None);
    pair.strain(5, HARD);
    pair.both(5..25, None);
    assert_eq!(pair.follower.current(), 1);
    pair.follower.end(1);
    (25..40).for_each(|number| pair.put(0, number));
    let frames = pair.frames();
    let last: Vec<_> = frames.iter().rev().take(10).map(|frame| (frame.data[0], frame.data[1])).collect();
    assert_eq!(last[9], (0, 30), "from its next key frame on");
    assert!(frames.windows(2).all(|two| two[1].pts > two[0].pts));
}

#[test]
fn sound_is_that_of_the_first_stream() {
    let mut pair = Pair::plain();
    pair.both(0..5, None);
    let sound = |pts| Frame { track: 1, pts, epoch: 7, is_sync: true, importance: Importance::SOUND, ..picture(0) };
    for (of, pts) in [(0, 1000), (1, 2000), (0, 3000), (0, 3000)] {
        pair.follower.take(of, &sound(pts), || None, time(5), &mut pair.out);
    }
    let given = pair.frames().into_iter().filter(|frame| frame.track == 1).map(|frame| frame.pts);
    assert_eq!(given.collect::<Vec<_>>(), [1000, 3000]);
}

/// A format of H.264 with parameter sets of its own.
fn h264(byte: u8) -> Option<Format> {
    let (sps, pps, color) = (vec![vec![0x67, byte]], vec![vec![0x68, byte, 1]], None);
    let (profile, compatibility, level, nal_length_size) = (66, 0, 30, 4);
    let config = AvcConfig { fourcc: *b"avc1", profile, compatibility, level, nal_length_size, sps, pps, color };
    let mut format = pictures(*b"vp09").unwrap();
    format.track.codec = Codec::Avc(config);
    format.track.sample_entry = b"\0\0\0\x08avc1".to_vec();
    Some(format)
}

#[test]
fn key_frames_have_the_parameter_sets_of_their_stream() {
    let mut pair = Pair::new([h264(5), h264(6)]);
    pair.both(0..5, None);
    pair.strain(5, HARD);
    pair.both(5..15, None);
    assert_eq!(pair.given(), changed(10, 15));
    for frame in pair.frames() {
        let of = frame.data[frame.data.len() - 2];
        let sets = [0, 0, 0, 2, 0x67, 5 + of, 0, 0, 0, 3, 0x68, 5 + of, 1];
        assert_eq!(frame.data.starts_with(&sets), frame.is_sync, "{frame:?}");
    }
    let Some(Given::Epoch(epoch)) = pair.out.first() else { panic!("an epoch comes first") };
    let format = epoch.formats[0].as_ref().unwrap();
    assert_eq!(&format.track.sample_entry[4..], b"avc3");
    assert!(format.track.codec.parameter().starts_with("avc3."), "{}", format.track.codec.parameter());
}

#[test]
fn streams_of_other_codecs_are_not_followed() {
    let formats = |format| [format];
    let (avc, vp8, vp9) = (formats(h264(1)), formats(pictures(*b"vp08")), formats(pictures(*b"vp09")));
    assert!(can_follow(&avc, &formats(h264(2))) && can_follow(&vp8, &vp8));
    assert!(!can_follow(&avc, &vp8) && !can_follow(&vp8, &vp9) && !can_follow(&[None], &vp8));
    let short = h264(1).map(|mut format| {
        if let Codec::Avc(config) = &mut format.track.codec {
            config.nal_length_size = 2;
        }
        format
    });
    assert!(!can_follow(&[short], &avc));
    // One whose pictures change to another codec is not given any longer.
    let mut pair = Pair::new([h264(5), pictures(*b"vp08")]);
    pair.both(0..5, None);
    pair.strain(5, HARD);
    pair.both(5..25, None);
    assert_eq!(pair.given(), (0..25).map(|number| (0, number)).collect::<Vec<_>>());
    assert!(!pair.follower.is_over());
    pair.formats[0] = pictures(*b"vp08");
    let other = Frame { epoch: 8, ..picture(25) };
    let epoch = Epoch { number: 8, ..pair.epoch(0) };
    pair.follower.take(0, &other, || Some(epoch), time(25), &mut pair.out);
    assert!(pair.follower.is_over());
}
