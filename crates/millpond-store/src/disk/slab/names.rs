//! The names of objects with slices, in a log. The log is read at the start, and rewritten when most entries are outdated.
//!
//! An entry begins with the length of its rest and a checksum of it (4 bytes each, little-endian). Then follow the
//! object's hash and the length of the object (8 bytes each), and place, path, version and tags, each after its length (2
//! bytes). Entries of earlier versions have no tags, and earlier versions skip them. The last entry of an object counts. Nothing is read behind an entry that is truncated or damaged.

use std::collections::HashMap;
use std::sync::Arc;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::selection::Candidate;
use crate::tags::ObjectTags;

/// Longest entry: a path of 4096 bytes, tags of 1024, and the other fields.
const LONGEST: usize = 16 << 10;

/// The name of an object at the time when slices of it were written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectName {
    /// The place.
    pub place: Arc<str>,
    /// The path inside the place.
    pub path: Arc<str>,
    /// Its version.
    pub version: Arc<str>,
    /// Its length in bytes.
    pub len: u64,
    /// Its tags.
    pub tags: ObjectTags,
}

impl ObjectName {
    /// Returns a hash of place and path.
    pub(super) fn location(&self) -> u64 {
        location(&self.place, &self.path)
    }
}

impl<'a> From<&'a ObjectName> for Candidate<'a> {
    fn from(name: &'a ObjectName) -> Self {
        Self { place: &name.place, path: &name.path, tags: &name.tags }
    }
}

/// Returns a hash of a place and a path.
pub(super) fn location(place: &str, path: &str) -> u64 {
    xxh3_64_with_seed(path.as_bytes(), xxh3_64(place.as_bytes()))
}

/// Returns an entry of the log; `None` where a text is too long.
pub(super) fn encode(object: u64, name: &ObjectName) -> Option<Vec<u8>> {
    let mut rest = Vec::with_capacity(64);
    rest.extend_from_slice(&object.to_le_bytes());
    rest.extend_from_slice(&name.len.to_le_bytes());
    for text in [&*name.place, &*name.path, &*name.version, name.tags.as_str()] {
        rest.extend_from_slice(&u16::try_from(text.len()).ok()?.to_le_bytes());
        rest.extend_from_slice(text.as_bytes());
    }
    let mut entry = u32::try_from(rest.len()).ok().filter(|len| *len as usize <= LONGEST)?.to_le_bytes().to_vec();
    entry.extend_from_slice(&(xxh3_64(&rest) as u32).to_le_bytes());
    entry.extend_from_slice(&rest);
    Some(entry)
}

/// Returns all names of a log, and the number of its valid bytes.
pub(super) fn decode(log: &[u8]) -> (HashMap<u64, ObjectName>, usize) {
    let mut names = HashMap::new();
    let mut at = 0;
    while let Some((object, name, size)) = log.get(at..).and_then(entry) {
        names.insert(object, name);
        at += size;
    }
    (names, at)
}

fn entry(bytes: &[u8]) -> Option<(u64, ObjectName, usize)> {
    let len = u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
    let sum = u32::from_le_bytes(bytes.get(4..8)?.try_into().ok()?);
    let mut rest = bytes.get(8..8usize.checked_add(len)?).filter(|_| len <= LONGEST)?;
    if xxh3_64(rest) as u32 != sum {
        return None;
    }
    let mut take = |count: usize| {
        let (first, others) = rest.split_at_checked(count)?;
        rest = others;
        Some(first)
    };
    let object = u64::from_le_bytes(take(8)?.try_into().ok()?);
    let object_len = u64::from_le_bytes(take(8)?.try_into().ok()?);
    let mut text = || {
        let len = u16::from_le_bytes(take(2)?.try_into().ok()?);
        std::str::from_utf8(take(usize::from(len))?).ok().map(Arc::<str>::from)
    };
    let (place, path, version) = (text()?, text()?, text()?);
    let tags = text().map(|text| ObjectTags::of_lines(&text)).unwrap_or_default();
    let name = ObjectName { place, path, version, len: object_len, tags };
    Some((object, name, 8 + len))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(path: &str) -> ObjectName {
        ObjectName {
            place: "films".into(),
            path: path.into(),
            version: "\"1\"".into(),
            len: 9,
            tags: ObjectTags::default(),
        }
    }

    #[test]
    fn a_log_is_read_up_to_what_is_damaged() {
        let mut log = encode(1, &name("a.mp4")).unwrap();
        let first = log.len();
        log.extend(encode(2, &name("b/ä.mp4")).unwrap());
        let (names, good) = decode(&log);
        assert_eq!((names.len(), good), (2, log.len()));
        assert_eq!(names[&2], name("b/ä.mp4"));
        for cut in 0..log.len() {
            let (names, good) = decode(&log[..cut]);
            assert_eq!((names.len(), good), if cut < first { (0, 0) } else { (1, first) });
        }
        for at in first..log.len() {
            let mut other = log.clone();
            other[at] ^= 0x40;
            assert_eq!(decode(&other).1, first, "byte {at}");
        }
        assert!(encode(3, &name(&"x".repeat(70_000))).is_none());
    }

    #[test]
    fn entries_have_tags_and_those_of_earlier_versions_have_none() {
        let tagged = ObjectName { tags: ObjectTags::of_lines("film-7\nb"), ..name("a.mp4") };
        let mut log = encode(1, &name("a.mp4")).unwrap();
        log.extend(encode(1, &tagged).unwrap());
        assert_eq!(decode(&log).0[&1], tagged, "the last entry counts");
        // Without the length of the tags, as earlier versions wrote it.
        let mut early = encode(1, &name("a.mp4")).unwrap();
        early.truncate(early.len() - 2);
        let length = (early.len() - 8) as u32;
        early[..4].copy_from_slice(&length.to_le_bytes());
        let sum = (xxh3_64(&early[8..]) as u32).to_le_bytes();
        early[4..8].copy_from_slice(&sum);
        let (names, good) = decode(&early);
        assert_eq!((&names[&1], good), (&name("a.mp4"), early.len()));
    }
}
