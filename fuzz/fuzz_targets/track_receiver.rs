//! Packets of a hostile source, reordered and joined to units. The first byte chooses the format; then come packets, each
//! with a byte of flags, one of milliseconds and one of length before its payload.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;
use millpond_rtp::{
    packet::Header,
    receive::{ReorderLimits, TrackReceiver},
    rtcp,
    sdp_reader::SessionDescription,
};
use std::time::Duration;

const FORMATS: [&str; 8] = [
    "H264/90000",
    "H265/90000",
    "opus/48000/2",
    "PCMU/8000",
    "MPA/90000",
    "VP8/90000",
    "AV1/90000",
    "mpeg4-generic/48000/2\r\na=fmtp:96 mode=AAC-hbr;sizelength=13;indexlength=3;indexdeltalength=3",
];

fuzz_target!(|bytes: &[u8]| {
    let Some((kind, mut rest)) = bytes.split_first() else { return };
    let map = FORMATS[usize::from(kind % 8)];
    let text = format!("v=0\r\nm=video 0 RTP/AVP 96\r\na=rtpmap:96 {map}\r\n");
    let description = SessionDescription::read(text.as_bytes(), "rtsp://host/").expect("a description");
    let limits = if kind & 8 != 0 { ReorderLimits::IN_ORDER } else { ReorderLimits::UDP };
    let mut now = Duration::ZERO;
    let mut receiver = TrackReceiver::new(&description.streams[0], None, limits, now).expect("a format");
    let (mut header, mut units) = (Header { payload_type: 96, ..Header::default() }, Vec::new());
    while let [flags, wait, length, after @ ..] = rest {
        let (payload, after) = after.split_at(usize::from(*length).min(after.len()));
        rest = after;
        now += Duration::from_millis(u64::from(*wait));
        receiver.tick(now, &mut units);
        header.marker = flags & 1 != 0;
        header.timestamp = header.timestamp.wrapping_add(u32::from(flags >> 1 & 1) * 3000);
        header.ssrc = u32::from(flags & 0xe0 == 0xe0);
        // Mostly the next one.
        header.sequence = header.sequence.wrapping_add(match flags >> 2 & 7 {
            0 => 0,
            1 => 2,
            2 => 700,
            3 => u16::MAX,
            4 => 40_000,
            _ => 1,
        });
        let packet = [&header.to_bytes()[..], payload].concat();
        receiver.rtp(&packet.into(), now, &mut units);
        let _ = receiver.rtcp(payload, now);
        assert!(receiver.wake().is_none_or(|wake| wake > now));
        assert!(rtcp::parse(&receiver.report(1, "fuzz", now)).is_ok());
    }
    receiver.tick(now + Duration::from_secs(1), &mut units);
    assert!(receiver.wake().is_none());
    for unit in units {
        assert!(!unit.bytes.is_empty() && unit.parameter_sets.iter().all(|set| !set.is_empty()));
    }
});
