//! Chunks of AVI (RIFF and OpenDML), and hostile files of them.

use crate::SparseObject;

/// A chunk with its padding.
#[must_use]
pub fn chunk(kind: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let mut bytes = claimed(kind, body.len() as u32);
    bytes.extend(body);
    bytes.resize(bytes.len().next_multiple_of(2), 0);
    bytes
}

/// The header of a chunk that claims to have `size` bytes.
#[must_use]
pub fn claimed(kind: &[u8; 4], size: u32) -> Vec<u8> {
    [&kind[..], &size.to_le_bytes()].concat()
}

/// A `LIST` chunk of this type.
#[must_use]
pub fn list(kind: &[u8; 4], body: &[u8]) -> Vec<u8> {
    chunk(b"LIST", &[&kind[..], body].concat())
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A list `strl` of pictures with this code, `rate / scale` in a second. The chunks `further` follow the format.
#[must_use]
pub fn pictures(code: &[u8; 4], (scale, rate): (u32, u32), further: &[u8]) -> Vec<u8> {
    let header = [&b"vids"[..], code, &words(&[0, 0, 0, scale, rate, 0, 0, 0, 0, 0, 0, 0])].concat();
    list(b"strl", &[chunk(b"strh", &header), picture_format(code, &[]), further.to_vec()].concat())
}

/// A chunk `strf` of pictures with this code. `extra` is the codec's configuration.
#[must_use]
pub fn picture_format(code: &[u8; 4], extra: &[u8]) -> Vec<u8> {
    chunk(b"strf", &[&words(&[40, 16, 16, 1 | 24 << 16]), &code[..], &words(&[0; 5]), extra].concat())
}

/// A list `strl` of sound with this format tag: two channels of 16 bits with 8 kHz. The chunks `further` follow the format.
#[must_use]
pub fn sound(tag: u16, further: &[u8]) -> Vec<u8> {
    let header = [&b"auds"[..], &words(&[0, 0, 0, 0, 1, 8000, 0, 0, 0, 0, 4, 0, 0])].concat();
    let format = [&tag.to_le_bytes()[..], &[2, 0], &words(&[8000, 32_000]), &[4, 0, 16, 0, 0, 0]].concat();
    list(b"strl", &[chunk(b"strh", &header), chunk(b"strf", &format), further.to_vec()].concat())
}

/// A list `hdrl` of streams.
#[must_use]
pub fn header(streams: &[Vec<u8>]) -> Vec<u8> {
    list(b"hdrl", &[chunk(b"avih", &[0; 56]), streams.concat()].concat())
}

/// An entry of `idx1`, with the flag of a key frame.
#[must_use]
pub fn entry(kind: &[u8; 4], offset: u32, size: u32) -> Vec<u8> {
    [&kind[..], &words(&[0x10, offset, size])].concat()
}

/// A chunk `indx`: a super index of standard indexes at these offsets with these sizes.
#[must_use]
pub fn super_index(places: &[(u64, u32)]) -> Vec<u8> {
    let mut body = [&[4, 0, 0, 0][..], &words(&[places.len() as u32]), b"00dc", &[0; 12]].concat();
    for (place, size) in places {
        body.extend(place.to_le_bytes());
        body.extend(words(&[*size, 1]));
    }
    chunk(b"indx", &body)
}

/// A chunk `ix00`: a standard index of chunks at these offsets from `base` with these sizes.
#[must_use]
pub fn standard_index(base: u64, chunks: &[(u32, u32)]) -> Vec<u8> {
    let mut body = [&[2, 0, 0, 1][..], &words(&[chunks.len() as u32]), b"00dc", &base.to_le_bytes(), &[0; 4]].concat();
    chunks.iter().for_each(|(offset, size)| body.extend(words(&[*offset, *size])));
    chunk(b"ix00", &body)
}

/// A file of chunks, with `zeros` bytes behind them.
#[must_use]
pub fn object(chunks: &[Vec<u8>], zeros: u64) -> SparseObject {
    let body = chunks.concat();
    let size = u32::try_from(body.len() as u64 + zeros + 4).unwrap_or(u32::MAX);
    let head = [claimed(b"RIFF", size), b"AVI ".to_vec(), body].concat();
    let len = head.len() as u64 + zeros;
    SparseObject { head: head.into(), len }
}
