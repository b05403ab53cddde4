//! A moving view of one object for rewriting: samples are asked for in nearly rising order, the object is read in
//! large steps, and a sample comes back as one slice.

use super::{
    body::{BodyError, MOST_RESUMED},
    buffers, residency,
};
use bytes::Bytes;
use millpond_store::{Chunk, Object, Pin, Reader, Store};
use std::{collections::VecDeque, fs::File, io::ErrorKind, ops::Range, sync::Arc};

/// One read of a file: large enough that system calls don't count, small enough to stay in the cache.
const BLOCK: u64 = 128 << 10;
/// Most bytes kept behind the furthest read, for streams whose samples lie a little out of order.
const BEHIND: u64 = 1 << 20;

/// Reads samples of one object.
pub(crate) struct Window {
    store: Store,
    object: Arc<Object>,
    /// What will be read, for one origin request.
    span: Range<u64>,
    reader: Option<Reader>,
    /// What the reader gave and is not loaded yet.
    given: Option<Chunk>,
    /// Offset of the next byte to come.
    at: u64,
    blocks: VecDeque<(u64, Block)>,
    scratch: Vec<u8>,
    /// Parts that could not be read and were fetched again.
    resumed: u32,
}

enum Block {
    Shared(Bytes),
    /// A buffer and how much of it is filled.
    Own(Vec<u8>, usize),
}

impl Block {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Shared(b) => b,
            Self::Own(v, filled) => v.get(..*filled).unwrap_or_default(),
        }
    }
}

impl Window {
    /// A window over `span` of `object`.
    pub(crate) fn new(store: Store, object: Arc<Object>, span: Range<u64>) -> Self {
        let at = span.start;
        let (blocks, scratch) = (VecDeque::new(), Vec::new());
        Self { store, object, span, reader: None, given: None, at, blocks, scratch, resumed: 0 }
    }

    /// The bytes of `range`. Nothing before `floor` will be read any more: its buffers are used again while they are in the
    /// processor's cache.
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

    fn restart(&mut self, at: u64, end: u64) {
        while self.drop_first() {}
        self.reader = None;
        self.given = None;
        self.at = at;
        self.span.end = self.span.end.max(end);
    }

    /// Gives the buffers back while nobody takes what is made of them. A file is read again, from the page cache.
    pub(crate) fn rest(&mut self) {
        if self.object.file().is_some()
            && let Some((offset, _)) = self.blocks.front()
        {
            let at = *offset;
            while self.drop_first() {}
            self.at = at;
        }
    }

    fn drop_first(&mut self) -> bool {
        let first = self.blocks.pop_front();
        let any = first.is_some();
        if let Some((_, Block::Own(buffer, _))) = first {
            buffers::give(buffer);
        }
        any
    }

    async fn load(&mut self) -> Result<(), BodyError> {
        while self.blocks.front().is_some_and(|(offset, b)| offset + b.bytes().len() as u64 + BEHIND < self.at)
            || self.blocks.len() > 64
        {
            self.drop_first();
        }
        let block = match self.object.file().cloned() {
            Some(file) => {
                let read = Self::of_file(&file, self.at..self.span.end.min(self.at + BLOCK)).await;
                read.or_else(|error| self.lost(None, error).and_then(|()| Err(BodyError::cut(self.at))))?
            }
            None => self.next_given().await?,
        };
        let offset = self.at;
        self.at += block.bytes().len() as u64;
        self.blocks.push_back((offset, block));
        Ok(())
    }

    async fn of_file(file: &Arc<File>, range: Range<u64>) -> Result<Block, BodyError> {
        let mut block = Block::Own(buffers::take(), (range.end - range.start) as usize);
        if let Block::Own(buffer, filled) = &mut block {
            residency::read(file, range.start, &mut buffer[..*filled]).await?;
        }
        Ok(block)
    }

    async fn next_given(&mut self) -> Result<Block, BodyError> {
        loop {
            let reader = self.reader.get_or_insert_with(|| self.store.read(&self.object, self.at..self.span.end));
            let mut chunk = match self.given.take() {
                Some(chunk) => chunk,
                None => reader
                    .next()
                    .await
                    .ok_or_else(|| BodyError::Short { path: self.object.path().to_string(), offset: self.at })??,
            };
            let first = match chunk {
                Chunk::Bytes(bytes) if bytes.is_empty() => continue,
                Chunk::Bytes(bytes) => return Ok(Block::Shared(bytes)),
                Chunk::File { .. } => chunk.split_to(BLOCK),
            };
            if !chunk.is_empty() {
                self.given = Some(chunk);
            }
            if let Chunk::File { file, range, pin } = first {
                match Self::of_file(&file, range).await {
                    Ok(block) => return Ok(block),
                    Err(error) => self.lost(pin, error)?,
                }
            }
        }
    }

    /// Takes note of bytes that could not be read. Those that the disk cache has lost are fetched again.
    fn lost(&mut self, pin: Option<Pin>, error: BodyError) -> Result<(), BodyError> {
        let is_short = matches!(&error, BodyError::File { error, .. } if error.kind() == ErrorKind::UnexpectedEof);
        self.resumed += 1;
        if self.resumed > MOST_RESUMED || (pin.is_none() && !is_short) {
            return Err(error);
        }
        self.store.lost(&self.object, self.at, pin.as_ref())?;
        self.reader = None;
        self.given = None;
        Ok(())
    }

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

impl Drop for Window {
    fn drop(&mut self) {
        while self.drop_first() {}
    }
}
