use super::*;
use crate::{Refusal, RtmpEvent, Session, StreamTarget};

const URL: &str = "rtmp://127.0.0.1:1936/live/key-secret?pass=secret";

/// A client and a server that are connected.
struct Pair {
    client: RtmpClient,
    server: Session,
    to_client: BytesMut,
    to_server: BytesMut,
}

impl Pair {
    fn new(purpose: RtmpPurpose) -> Self {
        let client = RtmpClient::new(RtmpUrl::parse(URL).unwrap(), purpose);
        Self { client, server: Session::default(), to_client: BytesMut::new(), to_server: BytesMut::new() }
    }

    /// Passes bytes between both until neither says anything.
    fn talk(&mut self) -> Result<(Vec<RtmpEvent>, Vec<ClientEvent>), RtmpError> {
        let (mut asked, mut told) = (Vec::new(), Vec::new());
        loop {
            let (up, down) = (self.client.take_output(), self.server.take_output());
            if up.is_empty() && down.is_empty() {
                return Ok((asked, told));
            }
            self.to_server.extend_from_slice(&up);
            self.to_client.extend_from_slice(&down);
            while let Some(event) = self.server.receive(&mut self.to_server).unwrap() {
                asked.push(event);
            }
            while let Some(event) = self.client.receive(&mut self.to_client)? {
                told.push(event);
            }
        }
    }
}

fn target() -> StreamTarget {
    StreamTarget { path: "live/key-secret".to_owned(), query: "pass=secret".to_owned() }
}

#[test]
fn a_client_publishes_to_our_session() {
    let mut pair = Pair::new(RtmpPurpose::Publish);
    assert_eq!(pair.client.awaits(), Some("the handshake"));
    assert_eq!(pair.talk(), Ok((vec![RtmpEvent::Publish(target())], vec![])));
    assert_eq!(pair.client.awaits(), Some("the answer to publish"));
    pair.client.send(&RtmpMedia { kind: 9, timestamp: 0, head: &[], data: b"early" });
    pair.server.accept();
    assert_eq!(pair.talk(), Ok((vec![], vec![ClientEvent::Ready])));
    assert!(pair.client.reads_tracks() && pair.client.awaits().is_none());
    let data = vec![5; 9000];
    pair.client.send(&RtmpMedia { kind: 18, timestamp: 0, head: &[], data: b"metadata" });
    pair.client.send(&RtmpMedia { kind: 9, timestamp: 40, head: &[0x17, 1, 0, 0, 0], data: &data });
    let (asked, _) = pair.talk().unwrap();
    let [RtmpEvent::Media(tag)] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!((tag.len(), &tag[..8]), (11 + 5 + 9000, &[9, 0, 0x23, 0x2d, 0, 0, 40, 0][..]));
    pair.client.finish();
    assert_eq!(pair.talk(), Ok((vec![RtmpEvent::End], vec![])));
}

#[test]
fn a_client_plays_from_our_session_until_the_stream_ends() {
    let mut pair = Pair::new(RtmpPurpose::Play);
    assert_eq!(pair.talk(), Ok((vec![RtmpEvent::Play(target())], vec![])));
    pair.server.accept();
    pair.server.send(&RtmpMedia { kind: 8, timestamp: 7, head: &[0xaf, 1], data: b"sound" });
    pair.server.finish("over");
    let (_, told) = pair.talk().unwrap();
    let [ClientEvent::Ready, ClientEvent::Media(tag), ClientEvent::Ended(_)] = &told[..] else { panic!("{told:?}") };
    assert_eq!(&tag[..], b"\x08\0\0\x07\0\0\x07\0\0\0\0\xaf\x01sound");
    // The stream number of the client's deleteStream comes late.
    pair.client.finish();
    assert_eq!(pair.talk(), Ok((vec![], vec![])));
}

#[test]
fn refusals_name_the_command_and_no_key() {
    for (purpose, expected) in [
        (RtmpPurpose::Publish, "the server refuses publish: NetStream.Publish.BadName, *** is taken"),
        (RtmpPurpose::Play, "the server refuses play: NetStream.Play.StreamNotFound, *** is taken"),
    ] {
        let mut pair = Pair::new(purpose);
        pair.talk().unwrap();
        pair.server.refuse(Refusal::Name, "key-secret is taken");
        let error = pair.talk().unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    // A refused connection, as servers with authmod tell it.
    let mut client = RtmpClient::new(RtmpUrl::parse(URL).unwrap(), RtmpPurpose::Publish);
    let mut body = begun("_error", CONNECT);
    write_null(&mut body);
    let words = "code=403 need auth; authmod=adobe";
    write_properties(&mut body, [("code", Property::Text("Rejected")), ("description", Property::Text(words))]);
    let mut server = Link::default();
    server.writer.command(&mut server.output, 0, &body);
    let handshake = [&[3][..], &[0; 2 * 1536]].concat();
    let mut input = BytesMut::from(&[handshake, server.output].concat()[..]);
    let error = client.receive(&mut input).unwrap_err().to_string();
    assert_eq!(error, "the server refuses connect: Rejected, code=403 need auth; authmod=adobe");
}

#[test]
fn another_protocol_is_no_server() {
    let mut client = RtmpClient::new(RtmpUrl::parse(URL).unwrap(), RtmpPurpose::Play);
    assert_eq!(client.receive(&mut BytesMut::from("HTTP/1.1 400")), Err(RtmpError::Version(b'H')));
}
