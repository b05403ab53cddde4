//! Properties of timelines of hostile sources.

use super::*;
use crate::clock::Wrapped;
use millpond_media::units::Timescale;
use proptest::prelude::*;

/// Something that happens at a source.
#[derive(Clone, Debug)]
enum Event {
    /// A frame: track, ticks since the last one, milliseconds until it arrives, whether it is a key frame.
    Frame(usize, i64, u64, bool),
    Report(usize, u64, u64),
    Start(usize, u64),
    Restart,
    Split,
    Clock(u64),
}

fn event() -> impl Strategy<Value = Event> {
    let ticks = prop_oneof![
        8 => 0..10_000_i64,
        2 => -40_000..40_000_i64,
        1 => any::<i64>(),
    ];
    let wait = prop_oneof![8 => 0..80_u64, 1 => 0..20_000_u64];
    prop_oneof![
        40 => (0..3_usize, ticks, wait, any::<bool>()).prop_map(|(track, ticks, wait, is_sync)| Event::Frame(track, ticks, wait, is_sync)),
        3 => (0..3_usize, any::<u64>(), any::<u64>()).prop_map(|(track, clock, ticks)| Event::Report(track, clock, ticks)),
        1 => (0..3_usize, any::<u64>()).prop_map(|(track, ticks)| Event::Start(track, ticks)),
        1 => Just(Event::Restart),
        1 => Just(Event::Split),
        1 => (0..4_000_000_u64).prop_map(Event::Clock),
    ]
}

/// Timestamp of a kind.
fn wrapped(kind: u8, ticks: i64) -> Wrapped {
    match kind {
        0 => Wrapped::rtp(ticks as u32),
        1 => Wrapped::mpeg(ticks as u64),
        _ => Wrapped::whole(ticks as u64),
    }
}

proptest! {
    /// Frames with rising timestamps have times that do not fall; after a source
    /// began again, no frame has a time of before.
    #[test]
    fn times_never_fall(
        kind in 0..3_u8,
        first in any::<i64>(),
        shares_clock: bool,
        events in prop::collection::vec(event(), 1..400),
    ) {
        let clocks = [90_000, 48_000, 1].map(|rate| Timescale::new(rate).unwrap().into());
        let mut timeline = Timeline::new(Duration::from_secs(1000), &clocks, 0);
        if shares_clock {
            timeline.share_clock(true);
        }
        let (mut now, mut ticks) = (Duration::ZERO, [first; 3]);
        // Of each track: whether the timestamp rose, and the last time; the greatest time of earlier epochs.
        let mut last: [Option<(i64, Stamp)>; 3] = [None; 3];
        let (mut before, mut greatest, mut epoch) = ([None; 3], [None; 3], 0);
        for event in events {
            match event {
                Event::Frame(track, ahead, wait, is_sync) => {
                    now += Duration::from_millis(wait);
                    ticks[track] = ticks[track].wrapping_add(ahead);
                    let Some(found) = timeline.stamp(track, wrapped(kind, ticks[track]), now, is_sync) else { continue };
                    prop_assert_eq!(found.begins.is_some(), found.epoch != epoch || found.begins == Some(EpochReason::Start));
                    prop_assert!(found.epoch == epoch || found.epoch == epoch + 1);
                    if found.begins == Some(EpochReason::Reconnection) {
                        before = greatest;
                    }
                    epoch = found.epoch;
                    prop_assert!(before[track] <= Some(found.at), "of an earlier epoch");
                    if let Some((ticks_before, stamp)) = last[track]
                        && (0..10_000).contains(&ticks[track].wrapping_sub(ticks_before))
                    {
                        prop_assert!(found.at >= stamp.at && found.pts >= stamp.pts, "{:?} after {:?}", found, stamp);
                    }
                    last[track] = Some((ticks[track], found));
                    greatest[track] = greatest[track].max(Some(found.at));
                }
                Event::Report(track, clock, ticks) => timeline.report(track, clock, wrapped(kind, ticks as i64)),
                Event::Start(track, ticks) => timeline.start(track, wrapped(kind, ticks as i64)),
                Event::Restart => timeline.restart(EpochReason::Reconnection),
                Event::Split => timeline.split(EpochReason::Formats),
                Event::Clock(millis) => timeline.set_clock(Duration::from_millis(millis), now),
            }
        }
    }
}
