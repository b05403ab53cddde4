//! Messages of a server to its client.

use crate::{
    amf0::{Property, write_boolean, write_null, write_number, write_object, write_properties, write_string},
    capabilities::{Capabilities, OURS},
    chunk_writer::RtmpMedia,
    link::{Link, STREAM_EOF, WINDOW},
    message,
};

/// The message stream that each client gets.
pub(crate) const STREAM: u32 = 1;
/// Event of user control messages (RTMP 1.0, 7.1.7).
const STREAM_BEGIN: u16 = 0;
/// The limit of `Set Peer Bandwidth` is that of the client's choice too (5.4.5).
const DYNAMIC: u8 = 2;

/// Answers `connect`. A client that announces capabilities of Enhanced RTMP is told ours.
pub(crate) fn connected(link: &mut Link, transaction: f64, client: Capabilities) {
    let window = WINDOW.to_be_bytes();
    link.writer.control(&mut link.output, message::WINDOW_SIZE, &[&window]);
    link.writer.control(&mut link.output, message::PEER_BANDWIDTH, &[&window, &[DYNAMIC]]);
    let mut body = begun("_result", transaction);
    let usual = [("fmsVer", Property::Text("FMS/3,5,7,7009")), ("capabilities", Property::Number(31.0))];
    let ours = OURS.into_iter().filter(|_| client.is_enhanced);
    write_properties(&mut body, usual.into_iter().chain(ours));
    let words = [("level", "status"), ("code", "NetConnection.Connect.Success"), ("description", "connected")];
    let encoding = ("objectEncoding", Property::Number(0.0));
    write_properties(&mut body, words.map(|(name, text)| (name, Property::Text(text))).into_iter().chain([encoding]));
    link.writer.command(&mut link.output, 0, &body);
}

/// Answers a command whose result is a number, or nothing.
pub(crate) fn result(link: &mut Link, transaction: f64, number: Option<f64>) {
    let mut body = begun("_result", transaction);
    write_null(&mut body);
    match number {
        Some(number) => write_number(&mut body, number),
        None => write_null(&mut body),
    }
    link.writer.command(&mut link.output, 0, &body);
}

/// Tells that a client is known by the name of a stream, as `FCPublish` and `FCSubscribe` ask.
pub(crate) fn known(link: &mut Link, name: &str, code: &str) {
    let mut body = begun(name, 0.0);
    write_null(&mut body);
    write_object(&mut body, &[("level", "status"), ("code", code), ("description", "known")]);
    link.writer.command(&mut link.output, 0, &body);
}

/// Tells the state of the stream.
pub(crate) fn status(link: &mut Link, level: &str, code: &str, description: &str) {
    let mut body = begun("onStatus", 0.0);
    write_null(&mut body);
    write_object(&mut body, &[("level", level), ("code", code), ("description", description)]);
    link.writer.command(&mut link.output, STREAM, &body);
}

/// Tells that the stream of a publisher has begun.
pub(crate) fn publishing(link: &mut Link) {
    event(link, STREAM_BEGIN);
    status(link, "status", "NetStream.Publish.Start", "publishing");
}

/// Tells that a stream begins to play. Its media are in larger chunks.
pub(crate) fn playing(link: &mut Link) {
    link.writer.enlarge(&mut link.output);
    event(link, STREAM_BEGIN);
    status(link, "status", "NetStream.Play.Reset", "playing");
    status(link, "status", "NetStream.Play.Start", "playing");
    // The client may read pictures and sound, as some players want to know.
    let mut body = Vec::new();
    write_string(&mut body, "|RtmpSampleAccess");
    write_boolean(&mut body, true);
    write_boolean(&mut body, true);
    let data = RtmpMedia { kind: message::DATA, timestamp: 0, head: &[], data: &body };
    link.writer.media(&mut link.output, STREAM, &[], &data);
}

/// Tells that a stream that plays has ended.
pub(crate) fn ended(link: &mut Link, description: &str) {
    event(link, STREAM_EOF);
    status(link, "status", "NetStream.Play.UnpublishNotify", description);
    status(link, "status", "NetStream.Play.Stop", description);
}

fn event(link: &mut Link, event: u16) {
    link.writer.control(&mut link.output, message::USER_CONTROL, &[&event.to_be_bytes(), &STREAM.to_be_bytes()]);
}

/// Begins the body of a command.
fn begun(name: &str, transaction: f64) -> Vec<u8> {
    let mut body = Vec::new();
    write_string(&mut body, name);
    write_number(&mut body, transaction);
    body
}
