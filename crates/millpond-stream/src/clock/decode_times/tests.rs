//! Tests with the sequences of real encoders.

use super::*;

/// Frames of one encoding in decode order.
struct Encoding {
    name: &'static str,
    /// Stated reorder depth.
    depth: u8,
    /// Presentation and decode times in frames, as the encoder tells them.
    frames: &'static [(i64, i64)],
}

/// Encodings of x264 and x265, of 25 frames a second.
const ENCODINGS: &[Encoding] = &[
    Encoding {
        name: "x264, 3 B-frames, b-pyramid",
        depth: 2,
        frames: &[
            (0, -2),
            (4, -1),
            (2, 0),
            (1, 1),
            (3, 2),
            (8, 3),
            (6, 4),
            (5, 5),
            (7, 6),
            (12, 7),
            (10, 8),
            (9, 9),
            (11, 10),
            (16, 11),
            (14, 12),
            (13, 13),
            (15, 14),
            (20, 15),
            (18, 16),
            (17, 17),
            (19, 18),
            (21, 19),
        ],
    },
    Encoding {
        name: "x264, 3 B-frames, no pyramid",
        depth: 1,
        frames: &[
            (0, -1),
            (4, 0),
            (1, 1),
            (2, 2),
            (3, 3),
            (8, 4),
            (5, 5),
            (6, 6),
            (7, 7),
            (12, 8),
            (9, 9),
            (10, 10),
            (11, 11),
        ],
    },
    Encoding {
        name: "x264, 8 B-frames, b-pyramid",
        depth: 2,
        frames: &[
            (0, -2),
            (9, -1),
            (4, 0),
            (1, 1),
            (2, 2),
            (3, 3),
            (5, 4),
            (6, 5),
            (7, 6),
            (8, 7),
            (18, 8),
            (13, 9),
            (10, 10),
            (11, 11),
            (12, 12),
            (14, 13),
            (15, 14),
            (16, 15),
            (17, 16),
            (27, 17),
            (22, 18),
            (19, 19),
            (20, 20),
            (21, 21),
        ],
    },
    Encoding {
        name: "x264, 16 B-frames, no pyramid",
        depth: 1,
        frames: &[
            (0, -1),
            (17, 0),
            (1, 1),
            (2, 2),
            (3, 3),
            (4, 4),
            (5, 5),
            (6, 6),
            (7, 7),
            (8, 8),
            (9, 9),
            (10, 10),
            (11, 11),
            (12, 12),
            (13, 13),
            (14, 14),
            (15, 15),
            (16, 16),
            (34, 17),
            (18, 18),
            (19, 19),
            (20, 20),
            (21, 21),
            (22, 22),
        ],
    },
    Encoding {
        name: "x264, adaptive B-frames, strict b-pyramid, open groups",
        depth: 2,
        frames: &[
            (0, -2),
            (4, -1),
            (2, 0),
            (1, 1),
            (3, 2),
            (6, 3),
            (5, 4),
            (10, 5),
            (8, 6),
            (7, 7),
            (9, 8),
            (14, 9),
            (12, 10),
            (11, 11),
            (13, 12),
            (16, 13),
            (15, 14),
            (19, 15),
            (17, 16),
            (18, 17),
            (21, 18),
            (20, 19),
            (24, 20),
            (22, 21),
            (23, 22),
            (28, 23),
            (26, 24),
            (25, 25),
            (27, 26),
        ],
    },
    Encoding {
        name: "x265, 7 B-frames, b-pyramid",
        depth: 2,
        frames: &[
            (0, -2),
            (8, -1),
            (4, 0),
            (1, 1),
            (2, 2),
            (3, 3),
            (5, 4),
            (6, 5),
            (7, 6),
            (16, 7),
            (12, 8),
            (9, 9),
            (10, 10),
            (11, 11),
            (13, 12),
            (14, 13),
            (15, 14),
            (24, 15),
            (20, 16),
            (17, 17),
            (18, 18),
            (19, 19),
            (21, 20),
            (22, 21),
        ],
    },
];

const FRAME: i64 = 3600;

#[test]
fn a_stated_depth_gives_the_times_of_the_encoder() {
    for Encoding { name, depth, frames } in ENCODINGS {
        let mut times = DecodeTimes::new(*depth, FRAME);
        for (pts, dts) in *frames {
            assert_eq!(times.push(pts * FRAME), dts * FRAME, "{name}: {pts}");
        }
        assert_eq!(times.depth(), *depth, "{name}");
    }
}

#[test]
fn an_unknown_depth_is_learned_from_the_first_frames() {
    for Encoding { name, depth, frames } in ENCODINGS {
        let mut times = DecodeTimes::new(0, FRAME);
        let mut last = i64::MIN;
        for (place, (pts, dts)) in frames.iter().enumerate() {
            let found = times.push(pts * FRAME);
            assert!(found > last, "{name}: {pts}");
            last = found;
            // The second frame has taken the time of the one presented last, up to which the others move by ticks.
            if place > 1 && *dts > frames[1].0 {
                assert_eq!(found, dts * FRAME, "{name}: {pts}");
            }
        }
        assert_eq!(times.depth(), *depth, "{name}");
    }
}

#[test]
fn without_reordering_decode_times_are_presentation_times() {
    let mut times = DecodeTimes::new(0, FRAME);
    for pts in [900_000, 903_600, 907_201, 1_000_000] {
        assert_eq!(times.push(pts), pts);
    }
    assert_eq!(times.depth(), 0);
}

#[test]
fn a_depth_that_nothing_needs_is_given_up() {
    let mut times = DecodeTimes::new(0, 1);
    times.push(10);
    times.push(5);
    assert_eq!(times.depth(), 1);
    for pts in 20..2 * i64::from(BLOCK) + 20 {
        assert!(times.push(pts) <= pts);
    }
    assert_eq!((times.depth(), times.push(10_000)), (0, 10_000));
}

#[test]
fn decode_times_rise_over_a_jump() {
    let mut times = DecodeTimes::new(2, FRAME);
    let mut last = i64::MIN;
    for pts in [0, 4, 2, 1, 3].map(|pts| pts * FRAME) {
        last = times.push(pts);
    }
    times.restart();
    let after = [1000, 1004, 1002, 1001, 1003].map(|pts| times.push(pts * FRAME));
    assert_eq!(after, [998, 999, 1000, 1001, 1002].map(|dts| dts * FRAME));
    // Without a gap, and within a group.
    times.restart();
    let after = [1005, 1004, 1006].map(|pts| times.push(pts * FRAME));
    assert!(last < after[0] && after.is_sorted_by(|a, b| a < b));
}

#[test]
fn nonsense_only_makes_decode_times_rise() {
    let mut times = DecodeTimes::new(200, i64::MAX);
    let mut random = fastrand::Rng::with_seed(1);
    let mut last = None;
    for _ in 0..10_000 {
        let pts = random.i64(i64::MIN..i64::MAX - 20_000);
        let dts = times.push(pts);
        assert!(last.is_none_or(|last| dts > last));
        last = Some(dts);
    }
    assert_eq!(usize::from(times.depth()), MOST);
}
