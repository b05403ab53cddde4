//! Receptions by UDP: real packets on the loopback interface.

use super::*;
use bytes::Bytes;
use tokio::net::UdpSocket;

/// Ports of the client in a `Transport` header.
fn port(transport: &str) -> u16 {
    let ports = transport.split(';').find_map(|field| field.strip_prefix("client_port=")).unwrap();
    ports.split('-').next().unwrap().parse().unwrap()
}

async fn send(socket: &UdpSocket, port: u16, packets: &[Bytes]) {
    for packet in packets {
        socket.send_to(packet, ("127.0.0.1", port)).await.unwrap();
    }
}

#[tokio::test]
async fn lost_packets_cost_their_frame_alone() {
    let (mut server, connector) = server();
    let mut viewer = start(connector, |source| source.transport = SourceTransport::Auto);
    let mut peer = server.play(SDP).await;
    let ports: Vec<u16> = peer.transports.iter().map(|transport| port(transport)).collect();
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    for number in 0..20_u8 {
        let mut packets =
            peer.packets(0, &picture(if number == 0 { 0x65 } else { 0x41 }, number), 3600 * u32::from(number));
        match number {
            // Lost.
            5 => drop(packets.remove(1)),
            // In another order, and one of them twice.
            7 => {
                packets.swap(0, 2);
                packets.push(packets[1].clone());
            }
            _ => {}
        }
        send(&socket, ports[0], &packets).await;
        let sound = peer.packets(1, &[number; 40], 1024 * u32::from(number));
        send(&socket, ports[1], &sound).await;
    }
    let frames = viewer.take(39).await;
    let pictures = of(&frames, 0);
    let expected: Vec<Vec<u8>> = (0..20)
        .filter(|number| *number != 5)
        .map(|number| picture(if number == 0 { 0x65 } else { 0x41 }, number))
        .collect();
    assert!(pictures.iter().zip(&expected).all(|(frame, expected)| frame.data == expected[..]));
    let numbers: Vec<u32> = pictures.iter().map(|frame| frame.number).collect();
    assert_eq!(numbers, (0..19).collect::<Vec<_>>(), "no hole");
    assert_eq!(pictures[5].pts - pictures[4].pts, 2 * 3600);
}

#[tokio::test(start_paused = true)]
async fn media_falls_back_to_the_connection() {
    let (mut server, connector) = server();
    let mut viewer = start(connector, |source| source.transport = SourceTransport::Auto);
    let mut peer = server.play(PICTURES).await;
    assert!(peer.transports[0].contains("client_port"));
    let began = Instant::now();
    assert_eq!(peer.request().await.unwrap().method(), &Method::Teardown);
    assert_eq!(began.elapsed().as_secs(), 3);
    let mut peer = server.play(PICTURES).await;
    assert!(peer.transports[0].contains("interleaved"));
    peer.frame(0, &picture(0x65, 1), 0).await;
    assert_eq!(viewer.take(1).await[0].number, 0);
    assert_eq!(viewer.epochs(), [(0, EpochReason::Start)]);
}

#[tokio::test(start_paused = true)]
async fn servers_that_refuse_udp_send_on_the_connection() {
    let (mut server, connector) = server();
    let mut viewer = start(connector, |source| source.transport = SourceTransport::Auto);
    let mut peer = server.accept().await;
    loop {
        let request = peer.request().await.unwrap();
        if matches!(request.method(), Method::Setup) {
            peer.reply(&request, "461 Unsupported Transport", "", "").await;
            break;
        }
        peer.reply(&request, "200 OK", "", PICTURES).await;
    }
    peer.play(PICTURES).await;
    peer.frame(0, &picture(0x65, 1), 0).await;
    assert_eq!(viewer.take(1).await.len(), 1);
}
