//! Packets that a receiver asks for again.

use super::*;
use millpond_rtp::{feedback::GenericNack, rtx};

/// Sends a request for a packet; returns the packets that are sent again.
fn ask(net: &mut Simulation, (source, sequence): (u32, u16), from: SocketAddr) -> Vec<(SocketAddr, Vec<u8>)> {
    let mut request = rtcp::receiver_report(5, &[], "test");
    GenericNack::new(5, source, [sequence]).append_to(&mut request);
    let (now, mut again) = (net.now(), Vec::new());
    net.rounds.hear(&mut request, from, now);
    net.rounds.flush(|datagrams, _| again.extend(datagrams.again.take()));
    again
}

#[test]
fn receivers_get_packets_again_and_strangers_get_none() {
    let mut net = Simulation::new();
    let mut sender = track(udp());
    sender.keep_packets(127, None);
    net.play(vec![sender], Duration::ZERO, Lateness::None);
    net.load(0..100, 1000);
    net.run(1000 * MS);
    let (_, lost, timestamp, _) = net.got[net.got.len() - 3];
    let again = ask(&mut net, (SSRC, lost), receiver_at(5001));
    let [(to, bytes)] = &again[..] else { panic!("{again:?}") };
    let (header, payload) = packet::parse(bytes).unwrap();
    assert_eq!((*to, header.payload_type, header.timestamp), (receiver_at(5000), 127, timestamp));
    assert_eq!(rtx::original(payload).unwrap().0, lost);
    // From another port of the receiver's: address translators choose it.
    assert_eq!(ask(&mut net, (SSRC, lost), receiver_at(7777)).len(), 1);
    let stranger = ([192, 0, 2, 9], 5001).into();
    for (source, sequence, from) in [(SSRC, lost, stranger), (SSRC + 1, lost, receiver_at(5001))] {
        assert!(ask(&mut net, (source, sequence), from).is_empty());
    }
    assert!(ask(&mut net, (SSRC, lost.wrapping_add(500)), receiver_at(5001)).is_empty());
    let counts = [
        net.count(|counters| &counters.repeated_packets),
        net.count(|counters| &counters.refused_repeats),
        net.count(|counters| &counters.foreign_feedback),
    ];
    assert_eq!(counts, [2, 1, 2]);
    // The thread looks at what receivers say more often than there are frames.
    let next = net.rounds.next().unwrap() - net.start;
    assert!(next <= net.gone + ROUND * 3, "{next:?}");
    net.stop();
    net.run(1000 * MS);
    assert_eq!(net.rounds.next(), None);
}

#[test]
fn packets_of_other_receivers_are_not_kept() {
    let mut net = Simulation::new();
    net.play(vec![track(udp())], Duration::ZERO, Lateness::None);
    net.load(0..10, 1000);
    net.run(200 * MS);
    let lost = net.got[1].1;
    assert!(ask(&mut net, (SSRC, lost), receiver_at(5001)).is_empty());
    assert_eq!(net.count(|counters| &counters.refused_repeats), 1);
}
