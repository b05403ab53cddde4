//! Whole bodies at once: in memory, or written to a file.

use super::{Body, BodyError, Chunk, buffers, residency};
use bytes::Bytes;
use std::io::Write;

impl Body {
    /// Gathers the whole body in memory. Returns `None` if it has more than `limit` bytes.
    ///
    /// # Errors
    /// Those of reading and rewriting.
    pub async fn collect(mut self, limit: usize) -> Result<Option<Bytes>, BodyError> {
        let mut all = Vec::new();
        let local = self.local();
        while let Some(chunk) = self.next().await? {
            if all.len() + chunk.len() as usize > limit {
                return Ok(None);
            }
            match chunk {
                Chunk::Bytes(b) => all.extend_from_slice(&b),
                Chunk::Owned(v) => {
                    all.extend_from_slice(&v);
                    self.recycle(v);
                }
                Chunk::File { file, range, pin: _pin } => {
                    let (whole, before) = (range.end - range.start, all.len());
                    if let Err(error) = residency::append(&file, range, &mut all).await {
                        all.truncate(before);
                        self.resume(whole, error)?;
                    }
                }
            }
        }
        // A cache keeps these bytes under a version. The check before the last of them was too early.
        local.map_or(Ok(()), |object| object.check())?;
        Ok(Some(all.into()))
    }

    /// Writes the whole body to `out`, in steps that fit the processor's cache.
    ///
    /// # Errors
    /// Those of reading, rewriting and writing.
    pub async fn write_to(mut self, out: &mut impl Write) -> Result<(), BodyError> {
        let mut gathered = buffers::PooledBuffer::new();
        let mut filled = 0;
        while let Some(chunk) = self.next().await? {
            match chunk {
                Chunk::File { file, mut range, pin: _pin } => {
                    while !range.is_empty() {
                        if filled == buffers::SIZE {
                            out.write_all(&gathered)?;
                            filled = 0;
                        }
                        let whole = range.end - range.start;
                        let step = usize::try_from(whole).unwrap_or(usize::MAX).min(buffers::SIZE - filled);
                        match residency::read(&file, range.start, &mut gathered[filled..filled + step]).await {
                            Ok(()) => {
                                filled += step;
                                range.start += step as u64;
                            }
                            Err(error) => {
                                self.resume(whole, error)?;
                                break;
                            }
                        }
                    }
                }
                Chunk::Bytes(bytes) if filled + bytes.len() <= buffers::SIZE => {
                    gathered[filled..filled + bytes.len()].copy_from_slice(&bytes);
                    filled += bytes.len();
                }
                Chunk::Bytes(bytes) => {
                    out.write_all(&gathered[..std::mem::take(&mut filled)])?;
                    out.write_all(&bytes)?;
                }
                Chunk::Owned(bytes) => {
                    out.write_all(&gathered[..std::mem::take(&mut filled)])?;
                    out.write_all(&bytes)?;
                    self.recycle(bytes);
                }
            }
        }
        Ok(out.write_all(&gathered[..filled])?)
    }
}
