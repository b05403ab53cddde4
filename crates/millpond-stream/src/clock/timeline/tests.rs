//! Tests on a virtual clock.

use super::*;
use crate::clock::{SECOND, Wrapped};
use millpond_media::units::Timescale;

const SOUND: usize = 1;
const MS: i64 = SECOND / 1000;

fn timeline() -> Timeline {
    let sound = Timescale::new(48_000).unwrap().into();
    Timeline::new(Duration::from_secs(1_000_000), &[Timescale::MPEG.into(), sound], 0)
}

fn stamp(timeline: &mut Timeline, track: usize, ticks: u32, millis: u64) -> Stamp {
    timeline.stamp(track, Wrapped::rtp(ticks), Duration::from_millis(millis), true).expect("a stamp")
}

fn millis(time: Duration) -> i64 {
    time.as_millis() as i64
}

/// NTP time of nanoseconds.
fn ntp(nanos: i64) -> u64 {
    (((nanos as u128) << 32) / 1_000_000_000) as u64
}

/// A source of pictures and sound whose clock is fast by `ppm`, with 25 pictures and 50 pieces of sound a second.
struct Source {
    timeline: Timeline,
    ppm: i64,
    /// Sound is fast by this beside the pictures.
    sound_ppm: i64,
    /// Whether the clock of sender reports is as fast as the others.
    drifts_as_a_whole: bool,
    random: fastrand::Rng,
    jitter: i64,
}

impl Source {
    fn new(ppm: i64) -> Self {
        let random = fastrand::Rng::with_seed(7);
        Self { timeline: timeline(), ppm, sound_ppm: 0, drifts_as_a_whole: true, random, jitter: 5 * MS }
    }

    fn media(&self, track: usize, now: i64) -> i64 {
        let ppm = self.ppm + if track == SOUND { self.sound_ppm } else { 0 };
        now + (i128::from(now) * i128::from(ppm) / 1_000_000) as i64
    }

    /// Ticks of what is captured `now`; both tracks have wrapped soon.
    fn ticks(&self, track: usize, now: i64) -> Wrapped {
        let (rate, start) = if track == SOUND { (48_000, u32::MAX - 100_000) } else { (90_000, u32::MAX - 7) };
        let ticks = i128::from(self.media(track, now)) * rate / i128::from(SECOND);
        Wrapped::rtp((ticks as u32).wrapping_add(start))
    }

    /// A frame captured `now`, which arrives later.
    fn frame(&mut self, track: usize, now: i64) -> Stamp {
        // Most frames wait in some queue, sound longer.
        let delay = self.random.i64(0..=self.jitter) + if track == SOUND { 70 * MS } else { 0 };
        let arrival = Duration::from_nanos((now + delay) as u64);
        self.timeline.stamp(track, self.ticks(track, now), arrival, true).expect("a stamp")
    }

    fn report(&mut self, track: usize, now: i64) {
        let clock = if self.drifts_as_a_whole { self.media(0, now) } else { now };
        let ticks = self.ticks(track, now);
        self.timeline.report(track, ntp(3_000_000_000 * SECOND + clock), ticks);
    }

    /// Plays for a time. Calls `check` with the time and stamps of both tracks of it.
    fn play(&mut self, seconds: i64, step: i64, mut check: impl FnMut(i64, Stamp, Stamp)) {
        for turn in 0..seconds * SECOND / step {
            let now = turn * step;
            if now % (5 * SECOND) == 0 {
                self.report(0, now);
            }
            if now == 0 || now % (5 * SECOND) == 4 * SECOND {
                self.report(SOUND, now);
            }
            let picture = self.frame(0, now);
            let sound = self.frame(SOUND, now);
            check(now, picture, sound);
        }
    }
}

#[test]
fn times_begin_at_ten_seconds_and_go_on_over_a_wrap() {
    let mut timeline = timeline();
    let first = stamp(&mut timeline, 0, u32::MAX - 1799, 500);
    assert_eq!((first.epoch, first.pts, first.begins), (0, 900_000, Some(EpochReason::Start)));
    assert_eq!(first.wall, Duration::from_millis(1_000_000_500));
    let next = stamp(&mut timeline, 0, 1800, 540);
    assert_eq!((next.pts, next.at, next.begins), (903_600, Duration::from_millis(10_040), None));
    assert_eq!(next.wall, Duration::from_millis(1_000_000_540));
}

#[test]
fn a_stated_wall_clock_replaces_that_of_arrivals() {
    let wall = |millis: u64| Duration::from_secs(999_990) + Duration::from_millis(millis);
    let mut stated = timeline();
    stated.state_wall(0, Wrapped::rtp(9000), wall(0));
    let first = stamp(&mut stated, 0, 9000, 500);
    assert_eq!((first.wall, first.arrival), (wall(0), Duration::from_millis(1_000_000_500)));
    assert_eq!(stamp(&mut stated, 0, 12_600, 540).wall, wall(40));
    // A step of three seconds begins an epoch, in which times go on.
    stated.state_wall(0, Wrapped::rtp(16_200), wall(3080));
    let next = stamp(&mut stated, 0, 16_200, 580);
    assert_eq!((next.begins, next.wall), (Some(EpochReason::Jump), wall(3080)));
    assert_eq!(next.at, Duration::from_millis(10_080));
    // Statements from before the source begins again are forgotten.
    stated.restart(EpochReason::Reconnection);
    assert_eq!(stamp(&mut stated, 0, 0, 1000).wall, Duration::from_millis(1_000_001_000));
    let mut astray = timeline();
    astray.state_wall(0, Wrapped::rtp(9000), Duration::from_secs(77));
    assert_eq!(stamp(&mut astray, 0, 9000, 500).wall, Duration::from_millis(1_000_000_500));
}

#[test]
fn tracks_are_aligned_by_the_best_that_is_known() {
    // The first sound arrives 100 ms after the first picture, and belongs 40 ms after it.
    let sound = |timeline: &mut Timeline| {
        stamp(timeline, 0, 9000, 0);
        stamp(timeline, SOUND, 50_000, 100).at
    };
    assert_eq!(sound(&mut timeline()), Duration::from_millis(10_100), "by arrival");
    let mut by_start = timeline();
    by_start.start(0, Wrapped::rtp(9000));
    by_start.start(SOUND, Wrapped::rtp(50_000 - 1920));
    assert_eq!(sound(&mut by_start), Duration::from_millis(10_040));
    let mut by_reports = timeline();
    by_reports.report(0, 7 << 32, Wrapped::rtp(9000));
    by_reports.report(SOUND, 8 << 32, Wrapped::rtp(50_000 - 1920 + 48_000));
    assert_eq!(sound(&mut by_reports), Duration::from_millis(10_040));
    let clocks = [Timescale::MPEG.into(), Timescale::MPEG.into()];
    let mut shared = Timeline::new(Duration::ZERO, &clocks, 0);
    shared.share_clock(true);
    let mut stamp = |track, ticks, millis| {
        shared.stamp(track, Wrapped::mpeg(ticks), Duration::from_millis(millis), true).unwrap().at
    };
    assert_eq!(stamp(0, 100, 0), Duration::from_secs(10));
    // Sound is still before the wrap of 33 bits.
    assert_eq!(stamp(SOUND, (1 << 33) - 8900, 50), Duration::from_millis(9_900));
}

#[test]
fn statements_far_from_arrivals_are_lies() {
    let mut timeline = timeline();
    timeline.start(0, Wrapped::rtp(9000));
    timeline.start(SOUND, Wrapped::rtp(0xdead_beef));
    timeline.report(0, 1, Wrapped::rtp(9000));
    timeline.report(SOUND, 3_000 << 32, Wrapped::rtp(50_000));
    stamp(&mut timeline, 0, 9000, 0);
    assert_eq!(stamp(&mut timeline, SOUND, 50_000, 100).at, Duration::from_millis(10_100));
    // Later reports contradict each other and arrivals.
    let mut last = 10_100;
    for turn in 1..200_u32 {
        timeline.report(SOUND, (turn as u64 * 7919) << 40, Wrapped::rtp(turn.wrapping_mul(0x9e37_79b9)));
        timeline.report(0, u64::MAX - u64::from(turn), Wrapped::rtp(turn));
        stamp(&mut timeline, 0, 9000 + turn * 9000, u64::from(turn) * 100);
        let at = millis(stamp(&mut timeline, SOUND, 50_000 + turn * 4800, 100 + u64::from(turn) * 100).at);
        assert_eq!(at - std::mem::replace(&mut last, at), 100);
    }
}

/// Tracks of a clock that is 200 ppm fast stay together, and with the time of this machine.
#[test]
fn tracks_stay_within_a_millisecond_for_an_hour() {
    for (ppm, drifts_as_a_whole) in [(200, true), (200, false), (-200, false)] {
        let mut source = Source { drifts_as_a_whole, ..Source::new(ppm) };
        source.play(3600, 40 * MS, |now, picture, sound| {
            assert_eq!((picture.epoch, sound.epoch), (0, 0));
            let apart = picture.at.abs_diff(sound.at);
            assert!(apart < Duration::from_millis(1), "{ppm} ppm, {now}: {apart:?}");
            let lag = millis(picture.at) - 10_000 - now / MS;
            assert!(lag.abs() < 20, "{ppm} ppm, {now}: {lag} ms");
        });
        let correction = source.timeline.figures().correction;
        assert!((correction + ppm as f64).abs() < 40.0, "{correction}");
    }
}

#[test]
fn a_day_with_a_drifting_clock_stays_within_twenty_milliseconds() {
    for ppm in [-200, 200] {
        let mut source = Source::new(ppm);
        let mut worst = 0;
        source.play(24 * 3600, SECOND / 5, |now, picture, _| {
            worst = worst.max((millis(picture.at) - 10_000 - now / MS).abs());
            assert_eq!(picture.epoch, 0);
        });
        assert!(worst < 20, "{ppm} ppm: {worst} ms");
    }
}

#[test]
fn a_good_clock_is_left_alone() {
    let mut source = Source { jitter: MS, ..Source::new(0) };
    source.play(600, 40 * MS, |now, picture, sound| {
        assert_eq!(picture.pts, 900_000 + now / MS * 90);
        assert_eq!(sound.pts, 480_000 + now / MS * 48);
    });
}

/// Sound with a crystal of its own follows the pictures by sender reports.
#[test]
fn clocks_of_tracks_that_differ_are_brought_together() {
    let mut source = Source { sound_ppm: 100, drifts_as_a_whole: false, ..Source::new(0) };
    let mut worst = Duration::ZERO;
    source.play(3600, 40 * MS, |_, picture, sound| worst = worst.max(picture.at.abs_diff(sound.at)));
    assert!(worst < Duration::from_millis(4), "{worst:?}");
}

#[test]
fn sound_placed_by_its_arrival_is_moved_slowly() {
    let mut source = Source { jitter: 0, ..Source::new(0) };
    // Without reports, sound is placed 70 ms late.
    let apart = source.frame(SOUND, 0);
    assert_eq!(apart.at, Duration::from_secs(10));
    let mut last = None;
    source.play(60, 20 * MS, |now, picture, sound| {
        if let Some(last) = last.replace(sound.at) {
            let step = sound.at.abs_diff(last).as_micros();
            assert!((19_890..=20_110).contains(&step), "{now}: {step} us");
        }
        if now > 40 * SECOND {
            assert!(picture.at.abs_diff(sound.at) < Duration::from_micros(1100));
        }
    });
}

#[test]
fn a_jump_of_the_lead_begins_an_epoch() {
    for jump in [90_000 * 2_i64, 90_000 * 100_000 / 10, -70_000, -90_000 * 50] {
        let mut timeline = timeline();
        let mut last = Duration::ZERO;
        for turn in 0..100_u32 {
            let ticks = i64::from(turn) * 3600 + if turn >= 50 { jump } else { 0 };
            let found = stamp(&mut timeline, 0, ticks as u32, u64::from(turn) * 40);
            let begins = (turn == 50).then_some(EpochReason::Jump).or((turn == 0).then_some(EpochReason::Start));
            assert_eq!((found.begins, found.epoch), (begins, u32::from(turn >= 50)), "{jump}, {turn}");
            assert!(found.at > last && found.at.abs_diff(last) <= Duration::from_secs(10));
            last = found.at;
            let sound = stamp(&mut timeline, SOUND, turn * 1920, u64::from(turn) * 40);
            assert_eq!(sound.at.abs_diff(found.at), Duration::ZERO, "{jump}, {turn}");
        }
        assert_eq!(timeline.figures().jumps, 1);
    }
}

#[test]
fn a_jump_of_another_track_moves_only_that_track() {
    for jump in [480_000_i64, -480_000] {
        let mut timeline = timeline();
        let mut last = Duration::ZERO;
        for turn in 0..100_u32 {
            let picture = stamp(&mut timeline, 0, turn * 3600, u64::from(turn) * 40);
            assert_eq!((picture.pts, picture.epoch), (900_000 + i64::from(turn) * 3600, 0));
            let ticks = i64::from(turn) * 1920 + if turn >= 50 { jump } else { 0 };
            let sound = stamp(&mut timeline, SOUND, ticks as u32, u64::from(turn) * 40 + 10);
            assert!(sound.at > last);
            last = sound.at;
        }
        assert_eq!(last, Duration::from_millis(10_000 + 99 * 40 + 10));
        assert_eq!((timeline.figures().jumps, timeline.figures().moved), (0, 1));
    }
}

#[test]
fn a_source_that_begins_again_goes_on_after_what_was_given() {
    let mut timeline = timeline();
    for turn in 0..50_u32 {
        stamp(&mut timeline, 0, turn * 3600, u64::from(turn) * 40);
        stamp(&mut timeline, SOUND, turn * 1920, u64::from(turn) * 40);
    }
    timeline.restart(EpochReason::Reconnection);
    // Five seconds later, with other timestamps; RTP-Info aligns again.
    timeline.start(0, Wrapped::rtp(77));
    timeline.start(SOUND, Wrapped::rtp(3_000_000_000));
    let sound = stamp(&mut timeline, SOUND, 3_000_000_000, 7_000);
    assert_eq!((sound.begins, sound.epoch), (Some(EpochReason::Reconnection), 1));
    assert_eq!(sound.at, Duration::from_secs(17));
    assert_eq!(sound.wall, Duration::from_millis(1_000_007_000));
    let picture = stamp(&mut timeline, 0, 77 + 900, 7_100);
    assert_eq!((picture.begins, picture.at), (None, Duration::from_millis(17_010)));
}

#[test]
fn pictures_out_of_order_are_no_jump() {
    let mut timeline = timeline();
    // 16 pictures between two references.
    for group in 0..20_u32 {
        for (order, offset) in (0..17).zip([17].into_iter().chain(1..17)) {
            let arrival = u64::from(group * 17 + order) * 40;
            let found = stamp(&mut timeline, 0, (group * 17 + offset) * 3600, arrival);
            assert_eq!(found.epoch, 0);
        }
    }
}

#[test]
fn timestamps_that_stop_follow_arrivals() {
    let mut timeline = timeline();
    let mut last = Duration::ZERO;
    for turn in 0..300_u32 {
        let ticks = if turn < 100 { turn } else { (turn - 100).max(99).min(turn) };
        let found = stamp(&mut timeline, 0, ticks * 3600, u64::from(turn) * 40);
        assert!(found.at >= last && found.epoch == 0);
        last = found.at;
    }
    let lag = 10_000 + 299 * 40 - millis(last);
    assert!((0..1100).contains(&lag), "{lag}");
    assert!(timeline.figures().moved > 50);
}

#[test]
fn parts_of_a_picture_that_are_held_up_are_no_stop() {
    let mut timeline = timeline();
    for (ticks, arrival) in [(0, 0), (3600, 40), (3600, 5040), (7200, 5041), (7200, 5042)] {
        assert_eq!(stamp(&mut timeline, 0, ticks, arrival).pts, 900_000 + i64::from(ticks));
    }
}

/// Pictures arrive half as fast as they tell: stream time keeps up by epochs.
#[test]
fn a_slow_source_keeps_up_by_epochs() {
    let mut timeline = timeline();
    let mut worst = 0;
    for turn in 0..3000_u32 {
        let found = stamp(&mut timeline, 0, turn * 1800, u64::from(turn) * 40);
        worst = worst.max(10_000 + i64::from(turn) * 40 - millis(found.at));
    }
    assert!((15_000..25_000).contains(&worst), "{worst}");
    assert!((2..10).contains(&timeline.figures().jumps));
}

#[test]
fn a_step_of_this_machines_clock_begins_an_epoch_at_a_key_frame() {
    let mut timeline = timeline();
    let began = Duration::from_secs(1_000_000);
    let at = |millis: u64| Duration::from_millis(millis);
    let wall = |timeline: &mut Timeline, turn: u32, is_sync| {
        let arrival = at(u64::from(turn) * 40);
        let found = timeline.stamp(0, Wrapped::rtp(turn * 3600), arrival, is_sync).unwrap();
        (found.epoch, millis(found.wall - began) - i64::from(turn) * 40)
    };
    assert_eq!(wall(&mut timeline, 0, true), (0, 0));
    timeline.set_clock(began + at(500 + 40), at(40));
    for turn in 1..5000 {
        let (epoch, ahead) = wall(&mut timeline, turn, false);
        assert!(epoch == 0 && ahead <= (i64::from(turn) + 125) / 5 && ahead <= 500, "{turn}: {ahead}");
    }
    assert_eq!(wall(&mut timeline, 5000, false), (0, 500));
    timeline.set_clock(began + at(200_000) - Duration::from_secs(30), at(200_000));
    assert_eq!(wall(&mut timeline, 5001, false), (0, 500));
    assert_eq!(wall(&mut timeline, 5002, true), (1, -30_000));
}

#[test]
fn formats_that_change_split_the_time() {
    let mut timeline = timeline();
    stamp(&mut timeline, 0, 0, 0);
    timeline.split(EpochReason::Formats);
    let next = stamp(&mut timeline, 0, 3600, 40);
    assert_eq!((next.epoch, next.begins, next.pts), (1, Some(EpochReason::Formats), 903_600));
    assert!(timeline.stamp(2, Wrapped::rtp(0), Duration::ZERO, true).is_none(), "no such track");
}

/// A source that begins with what it has buffered, and a network that stalls.
#[test]
fn bursts_and_stalls_are_no_drift() {
    let mut timeline = timeline();
    for turn in 0..10_000_u64 {
        let sent = turn * 40;
        // The first two seconds come at once; from 100 s to 110 s nothing comes, then all that waited.
        let arrival = if (100_000..110_000).contains(&sent) { 110_000 } else { sent.max(2000) };
        let found = stamp(&mut timeline, 0, (turn * 3600) as u32, arrival);
        assert_eq!((found.epoch, found.pts), (0, 900_000 + turn as i64 * 3600), "{turn}");
    }
    assert_eq!(timeline.figures(), TimelineFigures::default());
}

#[test]
fn a_track_that_was_silent_for_long_goes_on_and_not_back() {
    for seconds in (300..4000).step_by(100) {
        let mut timeline = timeline();
        let before = stamp(&mut timeline, SOUND, 0, 0);
        let mut ticks = 0_f64;
        for second in 0..seconds {
            // The clock is fast and slow in turn, so that its correction changes all the time.
            let ppm = if second / 100 % 2 == 0 { 400e-6 } else { -400e-6 };
            ticks += 90_000.0 * (1.0 + ppm);
            stamp(&mut timeline, 0, ticks as u32, second * 1000);
        }
        let after = stamp(&mut timeline, SOUND, 480, seconds * 1000);
        assert!(after.at >= before.at, "{seconds} s: {:?} after {:?}", after.at, before.at);
    }
}

/// Found by fuzzing: frames out of order have times in the order of their timestamps, however late they arrive.
#[test]
fn a_late_frame_out_of_order_keeps_its_place_among_its_neighbours() {
    for seconds in (300..4000).step_by(100) {
        let mut timeline = timeline();
        let [_, after, before] = [0, 9600, 480].map(|ticks| stamp(&mut timeline, SOUND, ticks, 0));
        let mut ticks = 0_f64;
        for second in 0..seconds {
            let ppm = if second / 100 % 2 == 0 { 400e-6 } else { -400e-6 };
            ticks += 90_000.0 * (1.0 + ppm);
            stamp(&mut timeline, 0, ticks as u32, second * 1000);
        }
        let between = stamp(&mut timeline, SOUND, 960, seconds * 1000);
        let is_between = (before.at..=after.at).contains(&between.at);
        assert!(is_between, "{seconds} s: {:?} between {:?} and {:?}", between.at, before.at, after.at);
    }
}

#[test]
fn timestamps_of_millions_of_years_keep_their_order() {
    let mut timeline = timeline();
    let far = 0xa5a5_a5a5_a5a5_a5a5_u64;
    let stamps = (0..12).filter_map(|n| {
        timeline.stamp(SOUND, Wrapped::whole(far + n * 1024), Duration::from_millis(n * n * 700), true)
    });
    let times: Vec<_> = stamps.map(|stamp| stamp.at).collect();
    assert!(times.len() > 6 && times.is_sorted(), "{times:?}");
}
