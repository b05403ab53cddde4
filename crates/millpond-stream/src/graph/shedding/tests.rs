//! The order in which frames that wait are dropped.

use super::*;
use bytes::Bytes;
use millpond_media::Importance;
use std::time::Duration;

const D: Importance = Importance::DISPOSABLE;
const BASE: Importance = Importance::BASE;

fn frame(number: u32, importance: Importance) -> Frame {
    Frame {
        track: u16::from(!importance.is_picture),
        number,
        due: Duration::from_millis(40) * number,
        pts: number.into(),
        epoch: 0,
        is_sync: !importance.is_picture,
        importance,
        data: Bytes::from_static(&[0; 100]),
    }
}

fn key(number: u32) -> Frame {
    Frame { is_sync: true, ..frame(number, BASE) }
}

fn waiting(frames: &[Frame]) -> Waiting {
    let mut waiting = Waiting::default();
    for frame in frames {
        waiting.push(([frame.clone()].into(), Weight::new(frame.data.len(), Duration::from_millis(40))));
    }
    waiting
}

fn numbers(waiting: &Waiting) -> Vec<u32> {
    waiting.runs().flat_map(|run| run.iter().map(|frame| frame.number)).collect()
}

#[test]
fn the_least_needed_go_first_and_the_newest_of_them() {
    let (one, two) = (Importance::of_layer(1), Importance::of_layer(2));
    let frames =
        [key(0), frame(1, two), frame(2, D), frame(3, Importance::SOUND), frame(4, one), frame(5, D), frame(6, BASE)];
    let mut losses = Losses::default();
    let mut all = waiting(&frames);
    let mut dropped = Vec::new();
    for _ in 0..4 {
        let before = numbers(&all);
        // 50 bytes arrive: at least 100 are dropped.
        assert_eq!(least_needed(&mut all, (1, 50), &KeyInterval::default(), &mut losses), 1);
        dropped.extend(before.into_iter().filter(|number| !numbers(&all).contains(number)));
    }
    assert_eq!(dropped, [5, 2, 1, 4]);
    assert_eq!(least_needed(&mut all, (1, 50), &KeyInterval::default(), &mut losses), 0, "the base layer stays");
    assert_eq!(least_needed(&mut all, (0, 5000), &KeyInterval::default(), &mut losses), 1, "key frames and sound stay");
    assert_eq!((numbers(&all), all.load().bytes), (vec![0, 3], 200));
    assert!(!losses.admits(&frame(7, BASE)) && losses.admits(&key(8)));
}

#[test]
fn frames_of_an_older_group_are_not_missed_by_the_newest_one() {
    let mut losses = Losses::default();
    let mut all = waiting(&[key(0), frame(1, BASE), frame(2, BASE), key(5)]);
    assert_eq!(least_needed(&mut all, (0, 50), &KeyInterval::default(), &mut losses), 1);
    assert_eq!(numbers(&all), [0, 1, 5]);
    assert!(!losses.admits(&frame(4, D)), "it leads the key frame");
    assert!(losses.admits(&frame(6, BASE)) && losses.is_empty());
}

#[test]
fn a_late_key_frame_takes_the_place_of_all_pictures_before_it() {
    let mut losses = Losses::default();
    let sound = |number| frame(number, Importance::SOUND);
    let mut all = waiting(&[key(0), frame(1, BASE), sound(2), key(3), frame(4, BASE), sound(5)]);
    let arrives: Run = [key(8)].into();
    let (is_given, lost) = give(
        &mut all,
        (&arrives, Weight::new(100, Duration::from_millis(120))),
        (Pressure::Late, &KeyInterval::default()),
        &mut losses,
    );
    assert!(is_given && lost == 4);
    assert_eq!(numbers(&all), [2, 5, 8]);
    assert_eq!(all.load().span(), Duration::from_millis(240));
    // It waits already, and needs what was dropped.
    all.push(([frame(7, D)].into(), Weight::new(100, Duration::ZERO)));
    assert_eq!((before_key(&mut all, &mut losses), numbers(&all)), (1, vec![2, 5, 8]));
}

#[test]
fn pictures_that_lead_a_key_frame_take_nothing_else_with_them() {
    let (mut losses, mut keys, mut all) =
        (Losses::default(), KeyInterval::default(), waiting(&[key(0), frame(1, BASE)]));
    losses.lose(&frame(2, BASE));
    keys.take(&key(8));
    let mut arrives = |frame: Frame| {
        let weight = Weight::new(100, Duration::from_millis(40));
        give(&mut all, (&[frame].into(), weight), (Pressure::None, &keys), &mut losses).0
    };
    // One that others refer to, of an open group.
    assert_eq!([key(8), frame(6, BASE), frame(5, D), frame(12, BASE)].map(&mut arrives), [true, false, false, true]);
    // Without a loss they wait, and are dropped alone.
    all.push(([frame(7, BASE)].into(), Weight::new(100, Duration::ZERO)));
    assert_eq!(least_needed(&mut all, (0, 50), &keys, &mut losses), 1);
    assert!(losses.is_empty() && losses.admits(&frame(13, BASE)));
}
