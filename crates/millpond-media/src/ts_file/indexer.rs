//! Reads the index of a stored transport stream: all of it, once.

use super::{requests::Requests, scan::Scan, survey::Survey};
use crate::{
    error::MediaError,
    movie::{Movie, extraction::PacketForm},
    units::ByteRange,
    work::Work,
};
use bytes::Bytes;

/// Reads the index of one file.
#[derive(Debug)]
pub(crate) struct TsFileIndexer {
    object_len: u64,
    form: PacketForm,
    /// Offset of the first packet.
    start: u64,
    requests: Requests,
    /// Offsets at which counters may begin anew, in rising order.
    joints: Vec<u64>,
    /// Number of the programme; `None` for the first one with pictures, else with sound.
    programme: Option<u16>,
    /// `None` before the programme is chosen.
    scan: Option<Box<Scan>>,
    work: Work,
}

/// Result of one step.
#[derive(Debug)]
pub(crate) enum TsFileStep {
    /// The bytes of these ranges are needed.
    Needs(Vec<ByteRange>),
    Done(Box<Movie>),
}

impl TsFileIndexer {
    /// Creates an indexer for an object of `object_len` bytes, whose first packet is at `start`. It requests at most `batch` bytes
    /// together.
    pub(crate) fn new(object_len: u64, form: PacketForm, (start, batch): (u64, u64), work: Work) -> Self {
        Self {
            object_len,
            form,
            start,
            requests: Requests::new(start, object_len, batch),
            joints: Vec::new(),
            programme: None,
            scan: None,
            work,
        }
    }

    /// Notes the offsets at which counters may begin anew, in rising order.
    pub(crate) fn joined_at(self, joints: Vec<u64>) -> Self {
        Self { joints, ..self }
    }

    /// Reads this programme instead of the first one.
    pub(crate) fn of_programme(self, programme: Option<u16>) -> Self {
        Self { programme, ..self }
    }

    /// Bytes of heap that the tables and unfinished frames hold so far.
    pub(crate) fn scanned_bytes(&self) -> usize {
        self.scan.as_ref().map_or(0, |scan| scan.heap_bytes())
    }

    /// Returns the movie of the frames that were read so far: the beginning of the finished movie. `None` while the beginning is not
    /// certain.
    pub(crate) fn so_far(&self) -> Option<Movie> {
        self.scan.as_ref()?.so_far(self.object_len)
    }

    /// Takes the bytes of a range that was needed.
    pub(crate) fn supply(&mut self, range: ByteRange, bytes: Bytes) {
        self.requests.supply(range, bytes);
    }

    /// Reads as far as the bytes allow.
    ///
    /// # Errors
    /// No stream can be played, or the job has ended.
    pub(crate) fn step(&mut self) -> Result<TsFileStep, MediaError> {
        while let Some(pieces) = self.requests.take() {
            let scan = match &mut self.scan {
                Some(scan) => scan,
                none => {
                    let choice = Survey::of(self.form, self.start, &pieces).choose(self.programme)?;
                    let scan = Scan::new(self.form, self.start, choice, self.work.clone());
                    none.insert(Box::new(scan.joined_at(std::mem::take(&mut self.joints))))
                }
            };
            for piece in pieces {
                scan.push(&piece)?;
            }
        }
        let needs = self.requests.needs();
        if !needs.is_empty() {
            return Ok(TsFileStep::Needs(needs));
        }
        match self.scan.take() {
            Some(scan) => Ok(TsFileStep::Done(Box::new(scan.finish(self.object_len)?.movie))),
            None => Err(MediaError::invalid("the object", 0, "no packets of a transport stream", "some")),
        }
    }
}
