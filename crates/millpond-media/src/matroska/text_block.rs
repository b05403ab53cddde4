//! Reads the text of a block (RFC 9559 5.1.3.4, 5.1.3.5).

use super::{
    block,
    ebml::{self, Elements, Header},
    ids,
};
/// Most bytes before the block: cues don't tell how long the header of its cluster is.
const MOST_BEFORE: usize = 7;

/// The text of a block, in the form that the codec tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextBlock<'a> {
    /// The block's frame. It is cut where `bytes` ended.
    pub text: &'a [u8],
    /// First block addition: settings and identifier of a WebVTT cue; empty where there is none.
    pub addition: &'a [u8],
}

impl<'a> TextBlock<'a> {
    /// Reads the first block of a track in `bytes`, the [range](crate::Sample::range) of a sample of text. `None` where there is none.
    #[must_use]
    pub fn read(bytes: &'a [u8], track: u64) -> Option<Self> {
        let group = |before: usize| {
            let (header, body) = element(bytes.get(before..)?)?;
            if header.id == ids::BLOCK_GROUP { Self::in_group(body, header.body?, track) } else { None }
        };
        let simple = || {
            let (header, body) = element(bytes)?;
            let text = if header.id == ids::SIMPLE_BLOCK { frame(body, header.body?, track)? } else { return None };
            Some(Self { text, addition: &[] })
        };
        (0..=MOST_BEFORE).find_map(group).or_else(simple)
    }

    /// Reads a group of `size` bytes that begins with `group`.
    fn in_group(group: &'a [u8], size: u64, track: u64) -> Option<Self> {
        let (mut text, mut addition) = (None, &[][..]);
        let (mut rest, mut left) = (group, size);
        while let Some((header, body)) = element(rest) {
            let whole = header.whole()?;
            left = left.checked_sub(whole)?;
            match header.id {
                ids::BLOCK => text = Some(frame(body, header.body?, track)?),
                ids::BLOCK_ADDITIONS => {
                    let more = Elements::new(body, 0).find(|element| element.id == ids::BLOCK_MORE);
                    let found = more.and_then(|more| more.child(ids::BLOCK_ADDITIONAL));
                    addition = found.map_or(&[][..], |found| found.body);
                }
                _ => {}
            }
            rest = rest.get(usize::try_from(whole).unwrap_or(usize::MAX)..).unwrap_or_default();
        }
        Some(Self { text: text?, addition })
    }
}

/// Returns the element at the beginning of `bytes`: its header, and its body or as much of it as there is.
fn element(bytes: &[u8]) -> Option<(Header, &[u8])> {
    let ebml::Read::Header(header) = Header::read(bytes) else { return None };
    let body = bytes.get(usize::try_from(header.length).ok()?..)?;
    let size = usize::try_from(header.body?).unwrap_or(usize::MAX);
    Some((header, body.get(..size).unwrap_or(body)))
}

/// Returns the first frame of a block of `size` bytes.
fn frame(bytes: &[u8], size: u64, track: u64) -> Option<&[u8]> {
    let mut frames = Vec::new();
    let block::Read::Head(head) = block::read(bytes, size, &mut frames) else { return None };
    let (place, length) = frames.first().filter(|_| head.track == track)?;
    let place = usize::try_from(*place).ok()?;
    let end = place.saturating_add(usize::try_from(*length).unwrap_or(usize::MAX)).min(bytes.len());
    bytes.get(place..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(id: &[u8], body: &[u8]) -> Vec<u8> {
        [id, &[0x80 | body.len() as u8], body].concat()
    }

    fn group(text: &[u8], addition: &[u8]) -> Vec<u8> {
        let block = written(&[0xa1], &[&[0x83, 0, 5, 0][..], text].concat());
        let more = written(&[0xa6], &[written(&[0xee], &[1]), written(&[0xa5], addition)].concat());
        written(&[0xa0], &[block, written(&[0x9b], &[9]), written(&[0x75, 0xa1], &more)].concat())
    }

    #[test]
    fn a_group_has_text_and_settings() {
        let bytes = group(b"Hello", b"line:0\n");
        let expected = TextBlock { text: b"Hello", addition: b"line:0\n" };
        assert_eq!(TextBlock::read(&bytes, 3), Some(expected));
        assert_eq!(TextBlock::read(&bytes, 4), None);
    }

    #[test]
    fn a_block_may_begin_some_bytes_later() {
        for before in 0..=MOST_BEFORE {
            let bytes =
                [&[0x1f, 0x43, 0xb6, 0x75, 1, 0, 0][..before], &group(b"a", b""), b"\xa3\x85\x83\0\0\0x"].concat();
            assert_eq!(TextBlock::read(&bytes, 3).map(|block| block.text), Some(&b"a"[..]), "{before}");
        }
        assert_eq!(TextBlock::read(b"\xa3\x85\x83\0\0\0x", 3).map(|block| block.text), Some(&b"x"[..]));
    }

    #[test]
    fn a_block_may_be_cut() {
        let bytes = group(b"Hello", b"line:0\n");
        assert_eq!(TextBlock::read(&bytes[..11], 3).map(|block| block.text), Some(&b"Hel"[..]));
        for end in 0..bytes.len() {
            let _ = TextBlock::read(&bytes[..end], 3);
        }
    }
}
