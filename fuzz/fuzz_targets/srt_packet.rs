//! Packets of SRT: what is read is written as it was, lists of losses are as long as their bytes allow, and stream ids are read.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;
use millpond_srt::{
    Destination, StreamId,
    packet::{PacketWriter, SequenceRange, SrtBody, read},
};

fuzz_target!(|bytes: &[u8]| {
    let _ = StreamId::parse(bytes);
    let Some(packet) = read(bytes) else {
        assert_eq!(Destination::of(bytes), None);
        return;
    };
    let writer = PacketWriter { timestamp: packet.timestamp, to: packet.to };
    let written = match &packet.body {
        SrtBody::Data(data) => writer.data(data),
        SrtBody::Losses(losses) => {
            let ranges: Vec<SequenceRange> = losses.ranges().collect();
            assert!(ranges.len() <= bytes.len() / 4 && ranges.iter().all(|range| range.count() > 0));
            writer.losses(ranges)
        }
        SrtBody::Acknowledgement(of) => writer.acknowledgement(of),
        SrtBody::Acknowledged(number) => writer.acknowledged(*number),
        SrtBody::Dropped(range) => writer.dropped(*range),
        SrtBody::KeyMaterial { is_answer, bytes } => writer.key_material(*is_answer, bytes),
        SrtBody::KeepAlive => writer.keep_alive(),
        SrtBody::Shutdown => writer.shutdown(),
        SrtBody::Handshake(..) | SrtBody::Other => return,
    };
    let again = read(&written).expect("a packet that was written");
    match (&packet.body, &again.body) {
        // A long list is cut.
        (SrtBody::Losses(before), SrtBody::Losses(after)) => {
            assert!(before.ranges().zip(after.ranges()).all(|(before, after)| before == after));
        }
        _ => assert_eq!(again, packet),
    }
});
