//! Reading files without stalling a serving thread: what is in the page cache is taken at once, what is not is
//! read on a thread of its own.

use super::body::BodyError;
use rustix::io::{Errno, ReadWriteFlags};
use std::{
    cell::RefCell,
    fs::File,
    io::IoSliceMut,
    ops::Range,
    sync::Arc,
    time::{Duration, Instant},
};

/// `sendfile` blocks its thread on a cold page; files are made resident in steps of this size.
const STEP: u64 = 256 << 10;

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
    let before = out.len();
    out.resize(before + (range.end - range.start) as usize, 0);
    read(file, range.start, &mut out[before..]).await
}

/// Fills `out` from a file; an error where the file ends before `out` does.
pub(crate) async fn read(file: &Arc<File>, start: u64, out: &mut [u8]) -> Result<(), BodyError> {
    let mut done = 0;
    while done < out.len() {
        let offset = start + done as u64;
        let failed = |error: std::io::Error| BodyError::File { offset, error };
        let read = match read_resident(file, &mut out[done..], offset) {
            Ok(Some(n)) => n,
            Ok(None) => {
                load(file, offset..start + out.len() as u64).await;
                // By now resident; should it have gone again, this waits for the disk, which is right if not quick.
                rustix::io::pread(file, &mut out[done..], offset).map_err(|e| failed(e.into()))?
            }
            Err(error) => return Err(failed(error.into())),
        };
        if read == 0 {
            return Err(failed(std::io::ErrorKind::UnexpectedEof.into()));
        }
        done += read;
    }
    Ok(())
}

/// What was looked at lately: blocks of files, by a hash, each with when it was seen resident.
struct Seen {
    block: (usize, u64),
    at: Instant,
}

/// How many blocks a thread remembers.
const REMEMBERED: usize = 4096;
/// For how long: what was there is taken to be there still. Should it have gone, sending it waits for the disk once.
const TRUSTED: Duration = Duration::from_secs(1);

thread_local! {
    static SEEN: RefCell<Vec<Option<Seen>>> = RefCell::new((0..REMEMBERED).map(|_| None).collect());
}

/// Makes the steps that hold a range resident before `sendfile` takes it.
pub(crate) async fn ensure(file: &Arc<File>, range: &Range<u64>) {
    let mut at = range.start - range.start % STEP;
    let now = Instant::now();
    while at < range.end {
        let step = at..at + STEP;
        let block = (Arc::as_ptr(file) as usize, at / STEP);
        at += STEP;
        let place = (block.0 >> 4).wrapping_mul(31).wrapping_add(block.1 as usize) % REMEMBERED;
        let known = SEEN.with_borrow(|seen| {
            seen[place].as_ref().is_some_and(|seen| seen.block == block && now - seen.at < TRUSTED)
        });
        if known {
            continue;
        }
        if !(probe(file, step.start) && probe(file, step.end - 1)) {
            load(file, step.clone()).await;
        }
        SEEN.with_borrow_mut(|seen| seen[place] = Some(Seen { block, at: now }));
    }
}

/// Reads a range, so that its pages are in the cache.
async fn load(file: &Arc<File>, range: Range<u64>) {
    let file = file.clone();
    // A failure shows again, with its place, when the range is sent.
    let _ = tokio::task::spawn_blocking(move || {
        let mut buffer = vec![0; 128 << 10];
        let mut at = range.start;
        while at < range.end {
            let want = buffer.len().min((range.end - at) as usize);
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
