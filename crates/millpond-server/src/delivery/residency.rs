//! Reading files without stalling a serving thread: what is in the page cache is taken at once, what is not is
//! read on a thread of its own.

use super::body::BodyError;
use rustix::io::{Errno, ReadWriteFlags};
use std::{fs::File, io::IoSliceMut, ops::Range, sync::Arc};

/// `sendfile` blocks its thread on a cold page; ranges are made resident in steps of this size.
const STEP: u64 = 1 << 20;

/// Reads from the page cache only; `None` where a page is missing.
fn read_resident(file: &File, buffer: &mut [u8], offset: u64) -> rustix::io::Result<Option<usize>> {
    match rustix::io::preadv2(file, &mut [IoSliceMut::new(buffer)], offset, ReadWriteFlags::NOWAIT) {
        Ok(n) => Ok(Some(n)),
        Err(Errno::AGAIN) => Ok(None),
        // File systems without RWF_NOWAIT: an ordinary read.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => rustix::io::pread(file, buffer, offset).map(Some),
        Err(error) => Err(error),
    }
}

/// Appends a range of a file to `out`; an error where the file ends before the range does.
pub(crate) async fn append(file: &Arc<File>, range: Range<u64>, out: &mut Vec<u8>) -> Result<(), BodyError> {
    let len = (range.end - range.start) as usize;
    let before = out.len();
    out.resize(before + len, 0);
    let mut done = 0;
    while done < len {
        let offset = range.start + done as u64;
        let read = match read_resident(file, &mut out[before + done..], offset) {
            Ok(Some(n)) => n,
            Ok(None) => {
                let (file, want) = (file.clone(), len - done);
                let buffer = tokio::task::spawn_blocking(move || {
                    let mut buffer = vec![0; want];
                    rustix::io::pread(&*file, &mut buffer, offset).map(|n| {
                        buffer.truncate(n);
                        buffer
                    })
                })
                .await
                .map_err(|e| file_error(offset, std::io::Error::other(e)))?
                .map_err(|e| file_error(offset, e.into()))?;
                out[before + done..before + done + buffer.len()].copy_from_slice(&buffer);
                buffer.len()
            }
            Err(e) => return Err(file_error(offset, e.into())),
        };
        if read == 0 {
            return Err(file_error(offset, std::io::ErrorKind::UnexpectedEof.into()));
        }
        done += read;
    }
    Ok(())
}

/// Makes a range resident before `sendfile` takes it. Costs two short reads where it is resident already.
pub(crate) async fn ensure(file: &Arc<File>, range: Range<u64>) {
    if range.is_empty() || (probe(file, range.start) && probe(file, range.end - 1)) {
        return;
    }
    let file = file.clone();
    // A failure shows again, with its place, when the range is sent.
    let _ = tokio::task::spawn_blocking(move || {
        let mut buffer = vec![0; 128 << 10];
        let end = range.end.min(range.start + STEP);
        let mut at = range.start;
        while at < end {
            let want = buffer.len().min((end - at) as usize);
            match rustix::io::pread(&*file, &mut buffer[..want], at) {
                Ok(n) if n > 0 => at += n as u64,
                _ => return,
            }
        }
    })
    .await;
}

fn probe(file: &File, offset: u64) -> bool {
    !matches!(read_resident(file, &mut [0], offset), Ok(None))
}

fn file_error(offset: u64, error: std::io::Error) -> BodyError {
    BodyError::File { path: "file".to_owned(), offset, error }
}
