//! Access units of AAC and PCM as Opus: whatever they hold, packets last as long as the units.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;
use millpond_media::{
    codec::{ByteOrder, PcmCoding, make},
    movie::Track,
    units::Timescale,
};
use millpond_sound::OpusTranscoder;

/// Most units of an input: each is encoded.
const MOST: usize = 40;

fn track(kind: u8) -> Option<Track> {
    // AAC LC of two channels and of one, with 44.1 and 22.05 kHz.
    let aac = |config: &[u8; 2], rate| Some((make::aac(config).ok()?, Timescale::new(rate)?));
    let pcm = |coding, channels, rate| {
        let rate = Timescale::new(rate)?;
        Some((make::pcm(coding, channels, rate).ok()?, rate))
    };
    let (made, rate) = match kind % 4 {
        0 => aac(&[0x12, 0x10], 44_100),
        1 => aac(&[0x13, 0x88], 22_050),
        2 => pcm(PcmCoding::Signed16(ByteOrder::Big), 2, 32_000),
        _ => pcm(PcmCoding::MuLaw, 1, 8000),
    }?;
    Some(Track::live(1, made, rate, "und"))
}

fuzz_target!(|bytes: &[u8]| {
    let Some((kind, mut rest)) = bytes.split_first() else { return };
    let Some((mut transcoder, _)) = track(*kind).and_then(|track| OpusTranscoder::of(&track)) else { return };
    let (mut pts, mut out) = (0_i64, Vec::new());
    // Each unit after a step in time of 16 bits and a length of 8 bits.
    for _ in 0..MOST {
        let [high, low, length, after @ ..] = rest else { break };
        let (unit, after) = after.split_at(usize::from(*length).min(after.len()));
        rest = after;
        pts += i64::from(i16::from_be_bytes([*high, *low]));
        transcoder.push(pts, unit, &mut out);
    }
    assert!(out.windows(2).all(|two| two[1].pts >= two[0].pts + 960));
    assert!(out.iter().all(|packet| !packet.data.is_empty() && packet.data.len() <= 1275));
});
