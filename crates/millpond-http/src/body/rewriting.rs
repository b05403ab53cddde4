//! Content whose samples are rewritten on the way, such as TS.

use super::{BodyError, Chunk, Inputs, buffers, sample_reader::SampleReader};
use millpond_package::plan::{Damage, ObjectRange, Rewrite};
use millpond_store::{Object, OriginError, ReadCounts, Store};
use std::sync::Arc;

/// Length from which rewritten bytes are handed on. Large enough for few system calls, small enough to stay in the
/// processor's second-level cache until the kernel copies them. The buffer fits one more sample read.
const CHUNK_LENGTH: usize = 120 << 10;
/// The same for the first chunk, for which a client waits.
const FIRST_LENGTH: usize = 64 << 10;

/// Samples being rewritten.
pub(super) struct Rewriting {
    rewrite: Box<dyn Rewrite>,
    /// A reader per object, once samples of it are read.
    readers: Vec<Option<SampleReader>>,
    store: Store,
    objects: Vec<Arc<Object>>,
    /// Buffer of the next chunk.
    out: Vec<u8>,
    /// Length from which the next chunk is handed on.
    chunk_length: usize,
    /// Number of bytes that were handed on.
    made: u64,
    is_done: bool,
    /// Bytes read through the cache.
    pub(super) counts: Arc<ReadCounts>,
}

impl Rewriting {
    /// Creates the content of a plan. `objects` are the asset's.
    pub(super) fn new(store: &Store, objects: &[Arc<Object>], rewrite: Box<dyn Rewrite>) -> Self {
        Self {
            rewrite,
            readers: objects.iter().map(|_| None).collect(),
            store: store.clone(),
            objects: objects.to_vec(),
            out: Vec::new(),
            chunk_length: FIRST_LENGTH,
            made: 0,
            is_done: false,
            counts: Arc::default(),
        }
    }

    /// Returns the inputs of the whole content.
    pub(super) fn inputs(&self) -> Inputs {
        let of = |read: &ObjectRange| {
            let object = self.objects.get(usize::from(read.object.0))?;
            Some((object.clone(), read.range.start..read.range.end))
        };
        let ranges = self.rewrite.covering().iter().filter_map(of).collect();
        Inputs { generated: 0, ranges, rewritten: true }
    }

    /// Releases buffers that can be read again.
    pub(super) fn release_buffers(&mut self) {
        self.readers.iter_mut().flatten().for_each(SampleReader::release_buffers);
    }

    /// Takes a sent buffer back for the next chunk.
    pub(super) fn recycle(&mut self, buffer: Vec<u8>) {
        buffers::give(std::mem::replace(&mut self.out, buffer));
    }

    /// Returns the next chunk, or `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Chunk>, BodyError> {
        if self.is_done {
            return Ok(None);
        }
        let mut out = std::mem::take(&mut self.out);
        if out.capacity() == 0 {
            out = buffers::take_empty();
        }
        out.clear();
        let length = std::mem::replace(&mut self.chunk_length, CHUNK_LENGTH);
        while out.len() < length {
            let Some(read) = self.rewrite.next_read() else {
                self.rewrite.finish(&mut out)?;
                self.check()?;
                self.is_done = true;
                break;
            };
            self.ensure_reader(read)?;
            let floor = self.rewrite.floor(read.object);
            let Some(Some(reader)) = self.readers.get_mut(usize::from(read.object.0)) else {
                return Err(unknown_object(read));
            };
            let sample = reader.read(read.range.start..read.range.end, floor).await?;
            self.rewrite.push(sample, &mut out)?;
        }
        self.made += out.len() as u64;
        // The last bytes leave only if all bytes are of one version.
        if self.rewrite.len() == Some(self.made) {
            self.check()?;
        }
        Ok(if out.is_empty() { None } else { Some(Chunk::Owned(out)) })
    }

    /// Checks that the files being read have not changed since they were opened.
    ///
    /// # Errors
    /// A file that has.
    pub(super) fn check(&self) -> Result<(), OriginError> {
        let read = self.readers.iter().zip(&self.objects).filter(|(reader, _)| reader.is_some());
        read.into_iter().try_for_each(|(_, object)| object.check())
    }

    /// Logs that parts of samples are missing from the body, the first time for a version of an object.
    fn log(&self, Damage { object, first, samples }: &Damage) {
        if let Some(object) = self.objects.get(usize::from(object.0)).filter(|object| object.note_damage()) {
            tracing::warn!(object = %object.path(), samples, error = %first, "damaged parts of samples were left out");
        }
    }

    /// Opens the reader of an object, over all samples that will be read of it.
    fn ensure_reader(&mut self, read: ObjectRange) -> Result<(), BodyError> {
        let index = usize::from(read.object.0);
        let (Some(slot), Some(object)) = (self.readers.get_mut(index), self.objects.get(index)) else {
            return Err(unknown_object(read));
        };
        if slot.is_none() {
            let span = self.rewrite.covering().iter().filter(|r| r.object == read.object).fold(read.range, |a, r| {
                millpond_media::ByteRange::new(a.start.min(r.range.start), a.end.max(r.range.end))
            });
            let reader = SampleReader::new(self.store.clone(), object.clone(), span.start..span.end);
            *slot = Some(reader.counted(self.counts.clone()));
        }
        Ok(())
    }
}

impl Drop for Rewriting {
    fn drop(&mut self) {
        self.rewrite.damage().into_iter().for_each(|damage| self.log(damage));
        buffers::give(std::mem::take(&mut self.out));
    }
}

/// Returns the error of a plan that names an unknown object.
fn unknown_object(read: ObjectRange) -> BodyError {
    BodyError::NoObject { object: read.object.0 }
}
