//! Clocks of a hostile source. The first byte chooses the kind of timestamps; then come events of 10 bytes: one that chooses the
//! event, its track and whether the frame is a key frame, one of time passed, and eight of a timestamp or a difference.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;
use millpond_media::units::Timescale;
use millpond_stream::{
    EpochReason,
    clock::{DecodeTimes, Timeline, Wrapped},
};
use std::time::Duration;

fuzz_target!(|bytes: &[u8]| {
    let Some((kind, events)) = bytes.split_first() else { return };
    let wrapped = |ticks: u64| match kind % 3 {
        0 => Wrapped::rtp(ticks as u32),
        1 => Wrapped::mpeg(ticks),
        _ => Wrapped::whole(ticks),
    };
    let clocks = [90_000, 48_000, 1].map(|rate| Timescale::new(rate).expect("a rate").into());
    let mut timeline = Timeline::new(Duration::from_secs(1000), &clocks, 0);
    if kind & 4 != 0 {
        timeline.share_clock(true);
    }
    let mut decode = [0, 2, 16].map(|depth| DecodeTimes::new(depth, 3600));
    let (mut now, mut ticks, mut times) = (Duration::ZERO, [0_u64; 3], [(i64::MIN, 0_u64, Duration::ZERO); 3]);
    for event in events.chunks_exact(10) {
        let track = usize::from(event[0] >> 4 & 3);
        let value = u64::from_le_bytes(event[2..].try_into().expect("eight bytes"));
        match event[0] & 15 {
            0 => timeline.start(track, wrapped(value)),
            1 => timeline.report(track, value, wrapped(value.rotate_left(32))),
            2 => timeline.restart(EpochReason::Reconnection),
            3 => timeline.split(EpochReason::Formats),
            4 => timeline.set_clock(Duration::from_nanos(value), now),
            step => {
                now += Duration::from_millis(u64::from(event[1]).pow(if step == 5 { 3 } else { 1 }));
                let Some(last) = ticks.get_mut(track) else { continue };
                // Mostly the next frame.
                *last = if step == 6 { value } else { last.wrapping_add(value & 0x3fff) };
                let Some(stamp) = timeline.stamp(track, wrapped(*last), now, event[0] & 64 != 0) else { continue };
                let dts = decode[track].push(stamp.pts);
                let (dts_before, ticks_before, at) = times[track];
                assert!(dts > dts_before);
                assert!(last.wrapping_sub(ticks_before) >= 10_000 || ticks_before == 0 || stamp.at >= at);
                times[track] = (dts, *last, stamp.at);
            }
        }
    }
});
