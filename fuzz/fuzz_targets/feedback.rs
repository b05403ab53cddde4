//! Requests for lost packets (RFC 4585): what is read and written again is the same. Then the bytes are a sender's packets, two
//! for each: flags and milliseconds. A receiver asks for those that are passed over.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;
use millpond_rtp::{
    feedback::GenericNack,
    packet::Header,
    receive::{ReorderLimits, TrackReceiver},
    rtcp::{self, RtcpItem},
    rtx,
    sdp_reader::SessionDescription,
};
use std::time::Duration;

const DESCRIPTION: &str = "v=0\r\nm=audio 0 RTP/AVPF 96 97\r\na=rtpmap:96 opus/48000/2\r\na=rtpmap:97 rtx/48000\r\n\
    a=fmtp:97 apt=96;rtx-time=1000\r\n";

fuzz_target!(|bytes: &[u8]| {
    for item in rtcp::parse(bytes).unwrap_or_default() {
        if let RtcpItem::Nack(nack) = item {
            read_again(bytes.len(), &nack);
        }
    }
    receive(bytes);
});

fn read_again(length: usize, nack: &GenericNack) {
    assert!(4 * nack.lost.len() < length && nack.sequences().count() <= 17 * nack.lost.len());
    let mut compound = rtcp::receiver_report(nack.sender, &[], "fuzz");
    nack.append_to(&mut compound);
    assert!(compound.len() < 1400);
    let items = rtcp::parse(&compound).expect("a compound");
    let [RtcpItem::Nack(again)] = &items[..] else { panic!("{items:?}") };
    assert!(nack.lost.starts_with(&again.lost));
}

fn receive(bytes: &[u8]) {
    let description = SessionDescription::read(DESCRIPTION.as_bytes(), "rtsp://host/").expect("a description");
    let stream = &description.streams[0];
    let offer = stream.feedback.retransmission.expect("an offer");
    let mut now = Duration::ZERO;
    let receiver = TrackReceiver::new(stream, None, ReorderLimits::UDP, now).expect("a format");
    let mut receiver = receiver.with_retransmission(&offer);
    let (mut header, mut units, mut asked) = (Header { payload_type: 96, ..Header::default() }, Vec::new(), Vec::new());
    for packet in bytes.chunks_exact(2) {
        let [flags, wait] = [packet[0], packet[1]];
        now += Duration::from_millis(u64::from(wait));
        receiver.requested(Duration::from_millis(u64::from(flags)));
        receiver.tick(now, &mut units);
        let packet = if flags & 8 != 0 {
            let unasked = header.sequence.wrapping_sub(u16::from(flags));
            let sequence = if flags & 16 != 0 { unasked } else { asked.pop().unwrap_or(unasked) };
            let original = Header { sequence, ..header };
            [&rtx::header(original, 9, 97, u16::from(wait))[..], &[flags; 3]].concat()
        } else {
            header.sequence =
                header.sequence.wrapping_add(1 + u16::from(flags & 7) * if flags & 32 != 0 { 100 } else { 1 });
            header.timestamp = header.timestamp.wrapping_add(960);
            [&header.to_bytes()[..], &[flags; 3]].concat()
        };
        receiver.rtp(&packet.into(), now, &mut units);
        if let Some(request) = receiver.feedback(1, "fuzz", now) {
            let items = rtcp::parse(&request).expect("a compound");
            asked = items
                .iter()
                .flat_map(|item| match item {
                    RtcpItem::Nack(nack) => nack.sequences().collect(),
                    _ => Vec::new(),
                })
                .collect();
            assert!(!asked.is_empty());
        }
        assert!(receiver.wake().is_none_or(|wake| wake > now));
        assert!(receiver.hold(now) <= Duration::from_secs(2));
    }
    now += Duration::from_secs(10);
    receiver.tick(now, &mut units);
    let counts = receiver.repairs();
    assert!(receiver.wake().is_none() && counts.asked == counts.repaired + counts.too_late);
}
