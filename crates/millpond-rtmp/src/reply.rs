//! Messages to the client.

use crate::{
    amf0::{write_null, write_number, write_object, write_string},
    chunk::CHUNK,
    message,
};

/// Chunk stream of protocol control messages (RTMP 1.0, 5.4).
const CONTROL_STREAM: u8 = 2;
/// Chunk stream of commands.
const COMMAND_STREAM: u8 = 3;
/// The message stream that each client gets.
pub(crate) const STREAM: u32 = 1;
/// Bytes after which the client and the server acknowledge.
pub(crate) const WINDOW: u32 = 2_500_000;
/// Events of user control messages (7.1.7).
const STREAM_BEGIN: u16 = 0;
const PONG: u16 = 7;
/// The limit of `Set Peer Bandwidth` is that of the client's choice too (5.4.5).
const DYNAMIC: u8 = 2;

/// Appends a message of type `kind` in chunks of 128 bytes.
fn write(output: &mut Vec<u8>, chunk_stream: u8, kind: u8, stream: u32, body: &[u8]) {
    let [_, length @ ..] = (body.len() as u32).to_be_bytes();
    output.extend([chunk_stream, 0, 0, 0]);
    output.extend(length);
    output.push(kind);
    output.extend(stream.to_le_bytes());
    for (number, chunk) in body.chunks(CHUNK).enumerate() {
        if number > 0 {
            output.push(0xc0 | chunk_stream);
        }
        output.extend_from_slice(chunk);
    }
}

fn control(output: &mut Vec<u8>, kind: u8, body: &[u8]) {
    write(output, CONTROL_STREAM, kind, 0, body);
}

/// Acknowledges all bytes that were received, modulo 2^32.
pub(crate) fn acknowledgement(output: &mut Vec<u8>, received: u32) {
    control(output, message::ACKNOWLEDGEMENT, &received.to_be_bytes());
}

/// Answers a ping request with its timestamp.
pub(crate) fn pong(output: &mut Vec<u8>, timestamp: [u8; 4]) {
    control(output, message::USER_CONTROL, &[&PONG.to_be_bytes()[..], &timestamp].concat());
}

/// Answers `connect`.
pub(crate) fn connected(output: &mut Vec<u8>, transaction: f64) {
    control(output, message::WINDOW_SIZE, &WINDOW.to_be_bytes());
    control(output, message::PEER_BANDWIDTH, &[&WINDOW.to_be_bytes()[..], &[DYNAMIC]].concat());
    let mut body = Vec::new();
    write_string(&mut body, "_result");
    write_number(&mut body, transaction);
    write_object(&mut body, &[("fmsVer", "FMS/3,5,7,7009")]);
    write_object(
        &mut body,
        &[("level", "status"), ("code", "NetConnection.Connect.Success"), ("description", "connected")],
    );
    write(output, COMMAND_STREAM, message::COMMAND, 0, &body);
}

/// Answers `createStream`.
pub(crate) fn created(output: &mut Vec<u8>, transaction: f64) {
    let mut body = Vec::new();
    write_string(&mut body, "_result");
    write_number(&mut body, transaction);
    write_null(&mut body);
    write_number(&mut body, STREAM.into());
    write(output, COMMAND_STREAM, message::COMMAND, 0, &body);
}

/// Tells the state of the stream.
pub(crate) fn status(output: &mut Vec<u8>, level: &str, code: &str, description: &str) {
    let mut body = Vec::new();
    write_string(&mut body, "onStatus");
    write_number(&mut body, 0.0);
    write_null(&mut body);
    write_object(&mut body, &[("level", level), ("code", code), ("description", description)]);
    write(output, COMMAND_STREAM, message::COMMAND, STREAM, &body);
}

/// Tells that the stream has begun.
pub(crate) fn began(output: &mut Vec<u8>) {
    control(output, message::USER_CONTROL, &[&STREAM_BEGIN.to_be_bytes()[..], &STREAM.to_be_bytes()].concat());
    status(output, "status", "NetStream.Publish.Start", "publishing");
}
