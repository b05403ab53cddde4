//! Macintosh alias records, with which QuickTime files name the file that holds their media.
//!
//! ISO base media files name that file by URL, but ffmpeg follows only aliases. Only the path in a record is used
//! (Inside Macintosh: Files, and the `alis` data reference of the QuickTime File Format).

/// Length of the record before its tagged fields, in bytes.
const FIXED: usize = 150;
/// Tag of the full path.
const PATH: u16 = 2;
/// Tag of the end of the record.
const END: u16 = 0xffff;

/// Returns a record that names `path`; `None` where the path is too long for a record.
pub(crate) fn write(path: &str) -> Option<Vec<u8>> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let name = name.get(..name.len().min(63)).unwrap_or_default();
    let mut record = vec![0; FIXED];
    // The version is 2; the file's name is a Pascal string in 64 bytes.
    record.get_mut(7..8)?.fill(2);
    record.get_mut(50..51)?.fill(u8::try_from(name.len()).ok()?);
    record.get_mut(51..51 + name.len())?.copy_from_slice(name.as_bytes());
    // Directory levels up from the record's file and down to the target. A relative path names a file in the same
    // folder. Absolute paths have no levels: readers use the path.
    let levels = if path.starts_with('/') { [0xff; 4] } else { [0, 1, 0, 1] };
    record.get_mut(130..134)?.copy_from_slice(&levels);
    record.extend(PATH.to_be_bytes());
    record.extend(u16::try_from(path.len()).ok()?.to_be_bytes());
    record.extend(path.as_bytes());
    if path.len() % 2 == 1 {
        record.push(0);
    }
    record.extend(END.to_be_bytes());
    record.extend([0, 0]);
    let len = u16::try_from(record.len()).ok()?;
    record.get_mut(4..6)?.copy_from_slice(&len.to_be_bytes());
    Some(record)
}

/// Returns the path that `record` names.
pub(crate) fn path(record: &[u8]) -> Option<String> {
    let mut rest = record.get(FIXED..)?;
    loop {
        let (tag, after) = rest.split_first_chunk().map(|(tag, after)| (u16::from_be_bytes(*tag), after))?;
        let (len, after) =
            after.split_first_chunk().map(|(len, after)| (usize::from(u16::from_be_bytes(*len)), after))?;
        match tag {
            END => return None,
            PATH => {
                let path = after.get(..len)?;
                return Some(crate::boxes::text(path)).filter(|path| !path.is_empty());
            }
            _ => rest = after.get(len.next_multiple_of(2)..)?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_come_back() {
        for name in ["/media/film.mp4", "film.mp4", "/odd/län.mp4", "/media/even.mp4"] {
            let record = write(name).unwrap();
            assert_eq!(path(&record).as_deref(), Some(name));
            assert_eq!(record.len() % 2, 0);
            for cut in 0..record.len() - 4 {
                let _ = path(&record[..cut]);
            }
        }
        assert_eq!(write(&"x".repeat(70_000)), None);
        assert_eq!(path(&[0; 150]), None);
    }
}
