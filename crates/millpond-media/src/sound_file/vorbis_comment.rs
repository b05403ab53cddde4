//! Vorbis comments of FLAC (RFC 9639 8.6) and Opus (RFC 7845 5.2).

use crate::movie::tags::{TagName, Tags};

/// Type of the metadata block of FLAC.
pub(super) const BLOCK: u8 = 4;
/// Bytes of comments that are read. Pictures may follow them as text.
pub(super) const LOOKED: u64 = 64 << 10;
/// Most comments that are examined.
pub(super) const MOST_COMMENTS: u32 = 1024;

/// Reads the tags of comments that begin with `bytes`: a vendor, a number of comments, and comments such as `TITLE=text`. Each text has
/// its length before it.
pub(super) fn tags(bytes: &[u8]) -> Tags {
    let mut tags = Tags::default();
    let Some((_, rest)) = text(bytes) else { return tags };
    let Some((count, mut rest)) = number(rest) else { return tags };
    for _ in 0..count.min(MOST_COMMENTS) {
        let Some((comment, behind)) = text(rest) else { break };
        rest = behind;
        let Some(equals) = comment.iter().position(|byte| *byte == b'=') else { continue };
        let (name, value) = comment.split_at(equals);
        if let Some(name) = TagName::of_text(name) {
            tags.add(name, &String::from_utf8_lossy(value.get(1..).unwrap_or_default()));
        }
    }
    tags
}

/// Returns the text at the beginning of `bytes`, and what follows it.
fn text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = number(bytes)?;
    rest.split_at_checked(usize::try_from(length).ok()?)
}

fn number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u32::from_le_bytes(*number), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_read_as_far_as_they_are_whole() {
        let text = |text: &str| [&(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat();
        let comments = ["artist=A", "ARTIST=B", "COMMENT=no", "nothing", "Title=größer = besser", "album="].map(text);
        let whole = [&text("vendor")[..], &9_u32.to_le_bytes(), &comments.concat()].concat();
        let found = tags(&whole);
        assert_eq!(found.artist.as_deref(), Some("A; B"));
        assert_eq!((found.title.as_deref(), &found.album), (Some("größer = besser"), &None));
        for end in 0..whole.len() {
            let part = tags(&whole[..end]);
            assert!(part.title.is_none_or(|title| "größer = besser" == title));
            let mut damaged = whole.clone();
            damaged[end] ^= 0xff;
            tags(&damaged);
        }
    }
}
