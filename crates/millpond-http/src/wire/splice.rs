//! Sends many small file ranges through a kernel pipe (splice(2)).
//!
//! A `sendfile` for each of a segment's hundred ranges passes through TCP a hundred times, for three pages each. A pipe
//! queues the pages of many ranges, so that they leave in calls as large as for one range. No byte is copied.

use crate::body::Chunk;
use millpond_connections::kernel_pipe::KernelPipe;
use rustix::{
    fd::AsFd,
    io::Errno,
    pipe::{SpliceFlags, splice},
};
use std::io;

/// Bytes of the first batch. Those that the socket refuses are queued again.
const FIRST: u64 = 128 << 10;
/// Least bytes of a batch.
const LEAST: u64 = 32 << 10;
/// Most bytes of a batch.
const MOST: u64 = 512 << 10;

/// The reason for which a splice returned.
pub(super) enum Progress {
    /// All bytes are sent.
    All,
    /// The socket takes no more now.
    Blocked,
    /// A file has no more bytes, or can't be spliced.
    Stopped,
}

/// File ranges that are sent one after another.
pub(super) struct Splice<'a> {
    ranges: &'a [Chunk],
    len: u64,
    sent: u64,
    /// Bytes of the next batch: about as many as the socket takes.
    batch: u64,
}

impl<'a> Splice<'a> {
    /// Creates a splice of file ranges. Other chunks stop it.
    pub(super) fn new(ranges: &'a [Chunk]) -> Self {
        Self { ranges, len: ranges.iter().map(Chunk::len).sum(), sent: 0, batch: FIRST }
    }

    /// Returns the number of sent bytes.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// Sends as many bytes as the socket takes without waiting.
    ///
    /// # Errors
    /// Those of the socket.
    pub(super) fn advance(&mut self, socket: impl AsFd) -> io::Result<Progress> {
        while self.sent < self.len {
            // None is held while a client is waited for, so one for each thread is enough.
            let Ok(pipe) = KernelPipe::take() else { return Ok(Progress::Stopped) };
            let queued = self.fill(&pipe);
            if queued == 0 {
                pipe.put_back();
                return Ok(Progress::Stopped);
            }
            let mut left = queued;
            while left > 0 {
                let more = if self.sent + left < self.len { SpliceFlags::MORE } else { SpliceFlags::empty() };
                match splice(&pipe.read, None, &socket, None, left as usize, more | SpliceFlags::NONBLOCK) {
                    Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Ok(count) => {
                        self.sent += count as u64;
                        left = left.saturating_sub(count as u64);
                    }
                    Err(Errno::INTR) => {}
                    // The pipe is dropped with the bytes left in it.
                    Err(Errno::AGAIN) => {
                        self.batch = (queued - left).clamp(LEAST, MOST);
                        return Ok(Progress::Blocked);
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            self.batch = (self.batch * 2).min(MOST);
            pipe.put_back();
        }
        Ok(Progress::All)
    }

    /// Queues the next batch in an empty pipe. Returns its length.
    fn fill(&self, pipe: &KernelPipe) -> u64 {
        let (mut skip, mut queued) = (self.sent, 0);
        for chunk in self.ranges {
            if skip >= chunk.len() {
                skip -= chunk.len();
                continue;
            }
            let Chunk::File { file, range, .. } = chunk else { return queued };
            let mut at = range.start + std::mem::take(&mut skip);
            while at < range.end {
                let want = (range.end - at).min(self.batch - queued);
                match splice(file, Some(&mut at), &pipe.write, None, want as usize, SpliceFlags::NONBLOCK) {
                    Ok(0) => return queued,
                    Ok(count) => queued += count as u64,
                    Err(Errno::INTR) => {}
                    Err(_) => return queued,
                }
                if queued >= self.batch {
                    return queued;
                }
            }
        }
        queued
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        fs::File,
        io::{Read as _, Write as _},
        net::{TcpListener, TcpStream},
        ops::Range,
        sync::Arc,
    };

    fn file(len: usize) -> (Arc<File>, Vec<u8>) {
        let bytes: Vec<u8> = (0..len).map(|i| (i * 7 % 251) as u8).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        (Arc::new(file), bytes)
    }

    fn chunks(file: &Arc<File>, ranges: &[Range<u64>]) -> Vec<Chunk> {
        ranges.iter().map(|range| Chunk::File { file: file.clone(), range: range.clone(), pin: None }).collect()
    }

    fn connection() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        ours.set_nonblocking(true).unwrap();
        (ours, listener.accept().unwrap().0)
    }

    #[test]
    fn ranges_arrive_in_order_past_a_slow_client() {
        let (file, bytes) = file(40 << 20);
        let ranges: Vec<Range<u64>> = (0..3800).map(|n| n * 11_000 + 3..n * 11_000 + 10_700).collect();
        let expected: Vec<u8> =
            ranges.iter().flat_map(|range| bytes[range.start as usize..range.end as usize].to_vec()).collect();
        let chunks = chunks(&file, &ranges);
        let (ours, mut theirs) = connection();
        let (mut splice, mut got, mut blocked) = (Splice::new(&chunks), Vec::new(), 0);
        let mut buffer = vec![0; 300_000];
        loop {
            match splice.advance(&ours).unwrap() {
                Progress::All => break,
                Progress::Stopped => panic!("stopped at {}", splice.sent()),
                Progress::Blocked => {
                    blocked += 1;
                    let count = theirs.read(&mut buffer).unwrap();
                    got.extend_from_slice(&buffer[..count]);
                }
            }
        }
        drop(ours);
        theirs.read_to_end(&mut got).unwrap();
        assert!(blocked > 0, "40 MB fit no socket");
        assert_eq!(splice.sent(), expected.len() as u64);
        assert!(got == expected, "the bytes are not those of the ranges");
    }

    #[test]
    fn a_file_that_ends_stops_the_splice_at_its_end() {
        let (file, bytes) = file(50_000);
        let chunks = chunks(&file, &[0..20_000, 30_000..60_000, 0..10]);
        let (ours, mut theirs) = connection();
        let mut splice = Splice::new(&chunks);
        assert!(matches!(splice.advance(&ours).unwrap(), Progress::Stopped));
        assert_eq!(splice.sent(), 40_000);
        drop(ours);
        let mut got = Vec::new();
        theirs.read_to_end(&mut got).unwrap();
        assert!(got[..20_000] == bytes[..20_000] && got[20_000..] == bytes[30_000..]);
    }

    #[test]
    fn a_client_that_left_is_an_error() {
        let (file, _) = file(8 << 20);
        let chunks = chunks(&file, &[0..4 << 20, 4 << 20..8 << 20]);
        let (ours, theirs) = connection();
        drop(theirs);
        let mut splice = Splice::new(&chunks);
        let failed = (0..1000).find_map(|_| match splice.advance(&ours) {
            Err(error) => Some(error.kind()),
            Ok(_) => {
                std::thread::sleep(std::time::Duration::from_millis(2));
                None
            }
        });
        let kinds = [io::ErrorKind::ConnectionReset, io::ErrorKind::BrokenPipe];
        assert!(failed.is_some_and(|kind| kinds.contains(&kind)), "{failed:?}");
    }
}
