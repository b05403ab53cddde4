//! File reads that don't stall a serving thread: resident pages are read at once, others on a blocking thread.

use super::BodyError;
use rustix::io::{Errno, ReadWriteFlags};
use std::{
    cell::RefCell,
    fs::File,
    io::IoSliceMut,
    ops::Range,
    sync::Arc,
    time::{Duration, Instant},
};

/// Step in which files are made resident, because `sendfile` blocks its thread on a missing page.
const STEP: u64 = 256 << 10;

/// Reads from the page cache only. Returns `None` if a page is missing.
fn read_resident(file: &File, buffer: &mut [u8], offset: u64) -> rustix::io::Result<Option<usize>> {
    match rustix::io::preadv2(file, &mut [IoSliceMut::new(buffer)], offset, ReadWriteFlags::NOWAIT) {
        Ok(n) => Ok(Some(n)),
        Err(Errno::AGAIN) => Ok(None),
        // File systems without RWF_NOWAIT: an ordinary read.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => rustix::io::pread(file, buffer, offset).map(Some),
        Err(error) => Err(error),
    }
}

/// Appends a range of a file to `out`.
///
/// # Errors
/// A file that ends before the range does, and those of the disk.
pub(crate) async fn append(file: &Arc<File>, range: Range<u64>, out: &mut Vec<u8>) -> Result<(), BodyError> {
    let before = out.len();
    out.resize(before + (range.end - range.start) as usize, 0);
    read(file, range.start, &mut out[before..]).await
}

/// Fills `out` from offset `start` of a file.
///
/// # Errors
/// A file that ends before `out` is full, and those of the disk.
pub(crate) async fn read(file: &Arc<File>, start: u64, out: &mut [u8]) -> Result<(), BodyError> {
    let mut done = 0;
    while done < out.len() {
        let offset = start + done as u64;
        let failed = |error: std::io::Error| BodyError::File { offset, error };
        let read = match read_resident(file, &mut out[done..], offset) {
            Ok(Some(n)) => n,
            Ok(None) => {
                load(file, offset..start + out.len() as u64).await;
                // Resident by now. If it was evicted again, this read waits for the disk: correct, but slow.
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

/// A block of a file that was resident.
struct Seen {
    /// Address of the file's handle and number of the block.
    block: (usize, u64),
    /// Time of the check.
    at: Instant,
}

/// Number of blocks that a thread remembers.
const REMEMBERED: usize = 4096;
/// Time for which a resident block is assumed to stay. If it was evicted, sending it waits for the disk once.
const TRUSTED: Duration = Duration::from_secs(1);

thread_local! {
    static SEEN: RefCell<Vec<Option<Seen>>> = RefCell::new((0..REMEMBERED).map(|_| None).collect());
}

/// Makes a range resident before `sendfile` reads it.
pub(crate) async fn ensure(file: &Arc<File>, range: &Range<u64>) {
    let mut at = range.start - range.start % STEP;
    let now = Instant::now();
    while at < range.end {
        let step = at..at + STEP;
        let block = (Arc::as_ptr(file) as usize, at / STEP);
        at += STEP;
        let slot = (block.0 >> 4).wrapping_mul(31).wrapping_add(block.1 as usize) % REMEMBERED;
        let known = SEEN
            .with_borrow(|seen| seen[slot].as_ref().is_some_and(|seen| seen.block == block && now - seen.at < TRUSTED));
        if known {
            continue;
        }
        if !(probe(file, step.start) && probe(file, step.end - 1)) {
            load(file, step.clone()).await;
        }
        SEEN.with_borrow_mut(|seen| seen[slot] = Some(Seen { block, at: now }));
    }
}

/// Reads a range on a blocking thread, so that its pages are in the cache.
async fn load(file: &Arc<File>, range: Range<u64>) {
    let file = file.clone();
    // Sending the range meets the same failure again, and reports it.
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

/// Tells whether the page of an offset is resident.
fn probe(file: &File, offset: u64) -> bool {
    !matches!(read_resident(file, &mut [0], offset), Ok(None))
}
