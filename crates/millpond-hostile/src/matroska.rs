//! Elements of Matroska (RFC 9559), and hostile files of them.

use crate::SparseObject;

/// Identifiers.
pub mod id {
    /// `Segment`.
    pub const SEGMENT: u32 = 0x1853_8067;
    /// `SeekHead`, `Seek`, `SeekID`, `SeekPosition`.
    pub const SEEK: [u32; 4] = [0x114d_9b74, 0x4dbb, 0x53ab, 0x53ac];
    /// `Info`.
    pub const INFO: u32 = 0x1549_a966;
    /// `TimestampScale`.
    pub const SCALE: u32 = 0x2a_d7b1;
    /// `Tracks`.
    pub const TRACKS: u32 = 0x1654_ae6b;
    /// `Cluster`.
    pub const CLUSTER: u32 = 0x1f43_b675;
    /// `Timestamp`.
    pub const TIME: u32 = 0xe7;
    /// `SimpleBlock`.
    pub const BLOCK: u32 = 0xa3;
    /// `BlockGroup`.
    pub const GROUP: u32 = 0xa0;
    /// `Cues`, `CuePoint`, `CueTime`, `CueTrackPositions`, `CueTrack`, `CueClusterPosition`.
    pub const CUES: [u32; 6] = [0x1c53_bb6b, 0xbb, 0xb3, 0xb7, 0xf7, 0xf1];
}

/// An element of a known size.
#[must_use]
pub fn element(id: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = identifier(id);
    bytes.extend((body.len() as u64 | 1 << 56).to_be_bytes());
    bytes.extend(body);
    bytes
}

/// The header of an element without size.
#[must_use]
pub fn endless(id: u32) -> Vec<u8> {
    let mut bytes = identifier(id);
    bytes.push(0xff);
    bytes
}

fn identifier(id: u32) -> Vec<u8> {
    id.to_be_bytes().into_iter().skip_while(|byte| *byte == 0).collect()
}

/// An element with a number.
#[must_use]
pub fn number(id: u32, value: u64) -> Vec<u8> {
    element(id, &value.to_be_bytes())
}

/// A track of pictures (type 1, VP8) or sound (type 2, PCM of two bytes).
#[must_use]
pub fn track(track: u64, kind: u64) -> Vec<u8> {
    track_with(track, kind, &[])
}

/// A track as [`track`], with further elements.
#[must_use]
pub fn track_with(track: u64, kind: u64, more: &[u8]) -> Vec<u8> {
    let codec: &[u8] = if kind == 1 { b"V_VP8" } else { b"A_PCM/INT/LIT" };
    let sound = element(0xe1, &[number(0x6264, 16), element(0xb5, &8000_f64.to_be_bytes())].concat());
    element(0xae, &[number(0xd7, track), number(0x83, kind), element(0x86, codec), sound, more.to_vec()].concat())
}

/// `ContentEncodings` of a track whose frames lack this common beginning (header stripping).
#[must_use]
pub fn stripping(prefix: &[u8]) -> Vec<u8> {
    let compression = [number(0x4254, 3), element(0x4255, prefix)].concat();
    element(0x6d80, &element(0x6240, &element(0x5034, &compression)))
}

/// A block of a track below 127 with one frame.
#[must_use]
pub fn block(track: u8, time: i16, is_key: bool, frame: &[u8]) -> Vec<u8> {
    let [high, low] = time.to_be_bytes();
    let mut bytes = vec![0xa3];
    bytes.extend(((frame.len() as u32 + 4) | 1 << 28).to_be_bytes());
    bytes.extend([0x80 | track, high, low, if is_key { 0x80 } else { 0 }]);
    bytes.extend(frame);
    bytes
}

/// A key frame of VP8 with 16 x 16 pixels, which no decoder shows.
pub const VP8_KEY: [u8; 10] = [0x10, 0, 0, 0x9d, 1, 0x2a, 16, 0, 16, 0];

/// A file of a segment with these elements. It has `zeros` bytes behind them.
#[must_use]
pub fn object(elements: &[Vec<u8>], zeros: u64) -> SparseObject {
    let mut head = element(0x1a45_dfa3, &element(0x4282, b"matroska"));
    let body = elements.concat();
    let mut segment = identifier(id::SEGMENT);
    segment.extend(((body.len() as u64 + zeros) | 1 << 56).to_be_bytes());
    head.extend(segment);
    head.extend(body);
    let len = head.len() as u64 + zeros;
    SparseObject { head: head.into(), len }
}
