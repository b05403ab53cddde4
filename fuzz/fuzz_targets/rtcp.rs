//! RTCP packets: what is read and written again is the same.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;
use millpond_rtp::rtcp::{self, RtcpItem};

fuzz_target!(|bytes: &[u8]| {
    let Ok(reports) = rtcp::parse(bytes) else { return };
    assert!(reports.len() <= bytes.len() / 4);
    for report in reports {
        let again = match &report {
            RtcpItem::Sender(sender) => sender.to_bytes("fuzz"),
            RtcpItem::Reception(reception) => {
                let seconds = reception.round_trip(0x1234_5678);
                assert!(seconds.is_none_or(|seconds| (0.0..32_769.0).contains(&seconds)));
                rtcp::receiver_report(1, &[*reception], "fuzz")
            }
            RtcpItem::Bye(_) | RtcpItem::Nack(_) | RtcpItem::KeyFrame => continue,
        };
        assert_eq!(rtcp::parse(&again), Ok(vec![report]));
    }
});
