use super::*;
use crate::{
    Format,
    clock::Wrapped,
    reception::{
        assembly::Arrived,
        pulled::{media_time::MediaTime, reader::LaneFormat},
    },
};
use bytes::Bytes;
use millpond_media::{Timescale, codec::make};
use millpond_package::MediaKind;
use std::sync::Arc;

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn format() -> Arc<LaneFormat> {
    let outline = crate::reception::format::Outline {
        name: "a1".to_owned(),
        kind: MediaKind::Audio,
        id: 1,
        is_default: true,
        language: None,
        bandwidth: 0,
        timescale: Timescale::MPEG,
    };
    let format: Format = outline.format(make::opus(2).unwrap());
    Arc::new(LaneFormat { media: "audio", rate: Timescale::MPEG, clock: Timescale::MPEG, format })
}

/// A frame of a lane with its time in milliseconds.
fn frame(lane: u32, time: i64, format: &Arc<LaneFormat>) -> ReadFrame {
    let arrived = Arrived {
        timestamp: Wrapped::whole(0),
        reordered: None,
        is_key: true,
        importance: None,
        lost_before: false,
        bytes: Bytes::from_static(&[0; 100]),
    };
    let time = MediaTime::whole(time, Timescale::new(1000).unwrap());
    ReadFrame { lane, time, format: format.clone(), date: None, arrived }
}

/// Takes all frames of a lane that are due: their due times in milliseconds.
fn due(pacer: &mut Pacer, now: u64) -> Vec<(u32, u64)> {
    let all = std::iter::from_fn(|| pacer.pop(ms(now)));
    all.map(|due| (due.lane.lane, u64::try_from(due.at.as_millis()).unwrap())).collect()
}

#[test]
fn frames_leave_at_the_pace_of_their_times() {
    let (mut pacer, format) = (Pacer::new(1), format());
    pacer.expect(0, 5, Some(2));
    for time in [1000, 1040, 1080] {
        pacer.push(0, 5, frame(1, time, &format), ms(0));
    }
    assert_eq!(due(&mut pacer, 10), [], "the other lane is waited for");
    for time in [1000, 1060] {
        pacer.push(0, 5, frame(2, time, &format), ms(20));
    }
    assert_eq!(due(&mut pacer, 20), [(1, 20), (2, 20)]);
    assert_eq!(pacer.wake(), Some(ms(60)));
    assert_eq!(due(&mut pacer, 59), []);
    assert_eq!(due(&mut pacer, 100), [(1, 60), (2, 80), (1, 100)]);
    assert!(pacer.is_empty());
}

#[test]
fn late_frames_shift_those_behind_them() {
    let (mut pacer, format) = (Pacer::new(1), format());
    pacer.expect(0, 0, Some(1));
    pacer.push(0, 0, frame(1, 0, &format), ms(0));
    assert_eq!(due(&mut pacer, 0), [(1, 0)]);
    for time in [40, 80] {
        pacer.push(0, 0, frame(1, time, &format), ms(300));
    }
    assert_eq!(due(&mut pacer, 300), [(1, 300)]);
    assert_eq!(due(&mut pacer, 340), [(1, 340)]);
    // A clock that jumps, in either direction, holds nothing up.
    pacer.push(0, 0, frame(1, 3_600_000, &format), ms(380));
    assert_eq!(due(&mut pacer, 380), [(1, 380)]);
    pacer.push(0, 0, frame(1, 50, &format), ms(400));
    assert_eq!(due(&mut pacer, 420), [(1, 420)]);
}

#[test]
fn a_stretch_follows_the_one_before() {
    let (mut pacer, format) = (Pacer::new(2), format());
    for rendition in 0..2 {
        pacer.expect(rendition, 1, Some(1));
        pacer.push(rendition, 1, frame(1, 0, &format), ms(0));
        pacer.push(rendition, 1, frame(1, 40, &format), ms(0));
    }
    pacer.expect(0, 2, Some(1));
    pacer.push(0, 2, frame(1, 900_000, &format), ms(0));
    assert_eq!((due(&mut pacer, 0).len(), due(&mut pacer, 40).len()), (2, 2));
    assert_eq!(due(&mut pacer, 80), [], "the other rendition may have frames of the stretch before");
    pacer.expect(1, 2, Some(1));
    pacer.push(1, 2, frame(1, 900_010, &format), ms(80));
    let left: Vec<_> = std::iter::from_fn(|| pacer.pop(ms(90))).map(|due| (due.stretch, due.at)).collect();
    assert_eq!(left, [(2, ms(80)), (2, ms(90))]);
    pacer.push(0, 1, frame(1, 80, &format), ms(95));
    assert!(pacer.is_empty(), "frames of stretches that have left are dropped");
}

#[test]
fn what_waits_is_bounded() {
    let (mut pacer, format) = (Pacer::new(2), format());
    let pushed = (0..1000).take_while(|number| {
        let accepts = pacer.accepts(0);
        if accepts {
            pacer.push(0, 0, frame(1, number * 100, &format), ms(0));
        }
        accepts
    });
    assert_eq!(pushed.count(), 101, "ten seconds");
    assert!(pacer.accepts(1), "another rendition");
    for lane in 0..100 {
        pacer.push(1, 0, frame(lane, 0, &format), ms(0));
    }
    assert_eq!(pacer.lanes.len(), MOST_LANES);
}
