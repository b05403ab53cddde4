//! Reads samples of one object for rewriting.
//!
//! Samples are requested in nearly ascending order. The object is read in large steps, and a sample is returned as one
//! slice.

use super::{BodyError, RESUMES_MOST, buffers, residency};
use bytes::Bytes;
use millpond_store::{Chunk, Object, Pin, ReadCounts, Reader, Store};
use std::{collections::VecDeque, fs::File, ops::Range, sync::Arc};

/// Length of one read of a file. Large enough to make system calls cheap, small enough to stay in the processor's
/// cache.
const STEP: u64 = 128 << 10;
/// Most bytes kept behind the furthest read, for tracks whose samples lie slightly out of order.
const BEHIND: u64 = 1 << 20;

/// Reads samples of one object.
pub(crate) struct SampleReader {
    store: Store,
    object: Arc<Object>,
    /// Range that will be read, for one origin request.
    span: Range<u64>,
    reader: Option<Reader>,
    /// Chunk of the reader that is not loaded yet.
    pending: Option<Chunk>,
    /// Offset of the next byte to load.
    at: u64,
    /// Loaded bytes with their offsets, in order.
    blocks: VecDeque<(u64, Loaded)>,
    /// A sample that spans several blocks.
    scratch: Vec<u8>,
    /// Ranges that were fetched again.
    resumes: u32,
    /// Bytes read through the cache.
    counts: Option<Arc<ReadCounts>>,
}

/// Bytes in memory.
enum Loaded {
    /// Bytes of a cache.
    Shared(Bytes),
    /// A buffer of the pool and its filled length.
    Own(Vec<u8>, usize),
}

impl Loaded {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Shared(b) => b,
            Self::Own(v, filled) => v.get(..*filled).unwrap_or_default(),
        }
    }
}

impl SampleReader {
    /// Creates a reader of `span` of `object`.
    pub(crate) fn new(store: Store, object: Arc<Object>, span: Range<u64>) -> Self {
        let at = span.start;
        let (blocks, scratch) = (VecDeque::new(), Vec::new());
        Self { store, object, span, reader: None, pending: None, at, blocks, scratch, resumes: 0, counts: None }
    }

    /// Counts the bytes that it reads through the cache.
    pub(super) fn counted(mut self, counts: Arc<ReadCounts>) -> Self {
        self.counts = Some(counts);
        self
    }

    /// Returns the bytes of `range`. No later read lies before `floor`, so buffers before it are reused while they are
    /// in the processor's cache.
    ///
    /// # Errors
    /// Those of the origin and the file.
    pub(crate) async fn read(&mut self, range: Range<u64>, floor: u64) -> Result<&[u8], BodyError> {
        if range.is_empty() {
            return Ok(&[]);
        }
        let behind = self.blocks.front().map_or(self.at, |(offset, _)| *offset);
        let far_ahead = range.start > self.at.saturating_add(BEHIND);
        if range.start < behind || far_ahead || range.end > self.span.end {
            self.restart(range.start, range.end);
        }
        while self.blocks.front().is_some_and(|(offset, block)| offset + block.bytes().len() as u64 <= floor) {
            self.drop_first();
        }
        if self.blocks.is_empty() && self.object.file().is_some() {
            self.at = self.at.max(floor.min(range.start));
        }
        while self.at < range.end {
            self.load().await?;
        }
        self.find(range)
    }

    /// Drops all loaded bytes and reads from `at` on.
    fn restart(&mut self, at: u64, end: u64) {
        while self.drop_first() {}
        self.reader = None;
        self.pending = None;
        self.at = at;
        self.span.end = self.span.end.max(end);
    }

    /// Releases the buffers of a local file, which can be read again from the page cache.
    pub(super) fn release_buffers(&mut self) {
        if self.object.file().is_some()
            && let Some((offset, _)) = self.blocks.front()
        {
            let at = *offset;
            while self.drop_first() {}
            self.at = at;
        }
    }

    /// Releases the first block. Returns false if there is none.
    fn drop_first(&mut self) -> bool {
        let first = self.blocks.pop_front();
        let any = first.is_some();
        if let Some((_, Loaded::Own(buffer, _))) = first {
            buffers::give(buffer);
        }
        any
    }

    /// Loads the next block.
    async fn load(&mut self) -> Result<(), BodyError> {
        while self.blocks.front().is_some_and(|(offset, b)| offset + b.bytes().len() as u64 + BEHIND < self.at)
            || self.blocks.len() > 64
        {
            self.drop_first();
        }
        let block = match self.object.file().cloned() {
            Some(file) => {
                let read = Self::of_file(&file, self.at..self.span.end.min(self.at + STEP)).await;
                read.or_else(|error| self.lost(None, error).and_then(|()| Err(BodyError::end_of_file(self.at))))?
            }
            None => self.next_of_reader().await?,
        };
        let offset = self.at;
        self.at += block.bytes().len() as u64;
        self.blocks.push_back((offset, block));
        Ok(())
    }

    /// Reads a block of a file.
    async fn of_file(file: &Arc<File>, range: Range<u64>) -> Result<Loaded, BodyError> {
        let mut block = Loaded::Own(buffers::take(), (range.end - range.start) as usize);
        if let Loaded::Own(buffer, filled) = &mut block {
            residency::read(file, range.start, &mut buffer[..*filled]).await?;
        }
        Ok(block)
    }

    /// Loads the next block from the store.
    async fn next_of_reader(&mut self) -> Result<Loaded, BodyError> {
        loop {
            let reader = self.reader.get_or_insert_with(|| {
                self.store.read(&self.object, self.at..self.span.end).counted(self.counts.clone())
            });
            let mut chunk = match self.pending.take() {
                Some(chunk) => chunk,
                None => reader
                    .next()
                    .await
                    .ok_or_else(|| BodyError::Short { path: self.object.path().to_string(), offset: self.at })??,
            };
            let first = match chunk {
                Chunk::Bytes(bytes) if bytes.is_empty() => continue,
                Chunk::Bytes(bytes) => return Ok(Loaded::Shared(bytes)),
                Chunk::File { .. } => chunk.split_to(STEP),
            };
            if !chunk.is_empty() {
                self.pending = Some(chunk);
            }
            if let Chunk::File { file, range, pin } = first {
                match Self::of_file(&file, range).await {
                    Ok(block) => return Ok(block),
                    Err(error) => self.lost(pin, error)?,
                }
            }
        }
    }

    /// Handles bytes that could not be read. Those that the disk cache has lost are fetched again.
    ///
    /// # Errors
    /// `error`, if the bytes have no other source or too many ranges were lost.
    fn lost(&mut self, pin: Option<Pin>, error: BodyError) -> Result<(), BodyError> {
        self.resumes += 1;
        if self.resumes > RESUMES_MOST || (pin.is_none() && !error.is_end_of_file()) {
            return Err(error);
        }
        self.store.lost(&self.object, self.at, pin.as_ref())?;
        self.reader = None;
        self.pending = None;
        Ok(())
    }

    /// Returns loaded bytes as one slice.
    fn find(&mut self, range: Range<u64>) -> Result<&[u8], BodyError> {
        let first = self.blocks.partition_point(|(offset, b)| offset + b.bytes().len() as u64 <= range.start);
        let short = || BodyError::Short { path: self.object.path().to_string(), offset: range.start };
        let (offset, block) = self.blocks.get(first).ok_or_else(short)?;
        let from = (range.start - offset) as usize;
        let len = (range.end - range.start) as usize;
        if block.bytes().len() >= from + len {
            return Ok(&block.bytes()[from..from + len]);
        }
        self.scratch.clear();
        for (offset, block) in self.blocks.iter().skip(first) {
            let bytes = block.bytes();
            let start = range.start.saturating_sub(*offset) as usize;
            let end = ((range.end - offset) as usize).min(bytes.len());
            self.scratch.extend_from_slice(&bytes[start..end]);
            if self.scratch.len() >= len {
                break;
            }
        }
        Ok(&self.scratch)
    }
}

impl Drop for SampleReader {
    fn drop(&mut self) {
        while self.drop_first() {}
    }
}
