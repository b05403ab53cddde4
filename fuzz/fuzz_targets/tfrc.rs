//! Reports of a lying receiver, late, spoofed or about packets that were never sent. Rate control keeps its rate within bounds.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;
use millpond_rtp::{
    rtcp::ReportBlock,
    tfrc::{RateControl, Receiver},
};
use std::time::Duration;

fuzz_target!(|bytes: &[u8]| {
    // The first byte is the second at which the session begins.
    let Some((start, mut rest)) = bytes.split_first() else { return };
    let (mut now, mut sequence) = (Duration::from_secs((*start).into()), 0_u16);
    let (mut control, mut receiver) = (RateControl::new(now), Receiver::default());
    while let [act, a, b, c, d, after @ ..] = rest {
        rest = after;
        let (short, word) = (u16::from_be_bytes([*a, *b]), u32::from_be_bytes([*a, *b, *c, *d]));
        let ssrc = u32::from(act >> 7);
        match act & 7 {
            0 => now += Duration::from_millis(word.into()),
            1 => now = now.saturating_sub(Duration::from_millis(short.into())),
            2 => {
                control.refresh(Duration::from_millis(word.into()), now);
                for _ in 0..control.packets().min(usize::from(*a)) {
                    control.sent(ssrc, sequence, 1, usize::from(short), now);
                    sequence = sequence.wrapping_add(1);
                }
                control.limited(now);
                let _ = control.wait();
            }
            3 => {
                control.reported(ssrc, word, now);
                if control.repeats() > 0 {
                    control.repeated(usize::from(act >> 6), usize::from(short));
                }
            }
            4 => control.missing(ssrc, [short, u16::from_be_bytes([*c, *d])], now),
            5 => {
                receiver.packet(word.into(), usize::from(*d), Duration::from_millis(u64::from(*act)), now);
                let _ = receiver.feedback(now).map(|all| assert!((0.0..=1.0).contains(&all.loss_event_rate)));
            }
            _ => {
                let (lost, delay) = (i32::from(*c as i8), u32::from(*d) << 8);
                let last_report = u32::from(act >> 4);
                let highest = if act & 8 == 0 { sequence.wrapping_sub(short >> 8) } else { short };
                let block = ReportBlock {
                    ssrc,
                    fraction_lost: *c,
                    lost: lost << (act >> 3 & 15),
                    highest: highest.into(),
                    jitter: word,
                    last_report,
                    delay,
                };
                control.report(&block, now);
            }
        }
        assert!((1.0..=1.25e9).contains(&control.rate()), "{}", control.rate());
    }
});
