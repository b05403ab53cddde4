//! Chunks of RIFF: each has a type, a size, and a body that is padded to an even length.

use crate::boxes::FourCc;

/// Bytes of the header of a chunk.
pub(super) const CHUNK_HEADER: u64 = 8;
/// Bytes of the header of a `LIST` or `RIFF` chunk, with the list's type.
pub(super) const LIST_HEADER: u64 = 12;

/// Most bytes of a chunk that is a sample, or whose data are read. PCM is cut into samples, so chunks that an index lists may be larger.
pub(super) const MOST_CHUNK: u64 = 16 << 20;
/// Last bytes of the types of chunks with media: compressed and uncompressed pictures, and sound.
const MEDIA: [&[u8; 2]; 3] = [b"dc", b"db", b"wb"];

/// A chunk that is held in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk<'a> {
    pub(super) kind: FourCc,
    pub(super) body: &'a [u8],
    /// Offset of the body in the file.
    pub(super) at: u64,
}

/// Returns the chunks of a list's body, which begins at the offset `at` in the file. The last chunk may be truncated.
pub(super) fn chunks(body: &[u8], at: u64) -> impl Iterator<Item = Chunk<'_>> {
    let (mut rest, mut at) = (body, at);
    std::iter::from_fn(move || {
        let (kind, size) = header(rest)?;
        let after = rest.get(CHUNK_HEADER as usize..)?;
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let chunk = Chunk { kind, body: after.get(..size).unwrap_or(after), at: at + CHUNK_HEADER };
        rest = after.get(size.saturating_add(size % 2)..).unwrap_or_default();
        at = at.saturating_add(CHUNK_HEADER).saturating_add(padded(size as u64));
        Some(chunk)
    })
}

/// Returns type and size of the chunk with which `bytes` begin.
pub(super) fn header(bytes: &[u8]) -> Option<(FourCc, u64)> {
    Some((*bytes.first_chunk()?, u32_at(bytes, 4)?.into()))
}

/// Size of a body with its padding.
pub(super) const fn padded(size: u64) -> u64 {
    size.saturating_add(size % 2)
}

/// Returns the number of the stream to which a chunk of media belongs, and the last two bytes of the chunk's type.
pub(super) fn stream_of(kind: FourCc) -> Option<(usize, [u8; 2])> {
    let [tens, ones, form @ ..] = kind;
    let digit = |byte: u8| byte.is_ascii_digit().then(|| usize::from(byte - b'0'));
    Some((digit(tens)? * 10 + digit(ones)?, form))
}

/// Returns the number of the stream to whose media a chunk belongs.
pub(super) fn media_of(kind: FourCc) -> Option<usize> {
    stream_of(kind).filter(|(_, form)| MEDIA.contains(&form)).map(|(stream, _)| stream)
}

/// Whether a chunk is an index of media: `idx1`, or a standard index of OpenDML.
pub(super) fn is_index(kind: FourCc) -> bool {
    matches!(&kind, b"idx1" | [b'i', b'x', b'0'..=b'9', b'0'..=b'9'])
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}
