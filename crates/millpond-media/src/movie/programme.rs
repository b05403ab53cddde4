//! Programmes of a transport stream file: one of them is the movie, and the others can be chosen instead.

use serde::{Deserialize, Serialize};

/// A programme of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileProgramme {
    /// `program_number`, by which it is chosen.
    pub number: u16,
    /// Name in the service description table, where the file has one.
    pub name: Option<String>,
    /// Codings of its streams, such as `H.264, AAC in ADTS, teletext`.
    pub streams: String,
    /// Whether it has pictures or sound that can be read.
    pub is_playable: bool,
    /// Whether it is the movie.
    pub is_chosen: bool,
}

impl FileProgramme {
    /// Bytes of heap held.
    pub(crate) fn heap_bytes(&self) -> usize {
        size_of::<Self>() + self.streams.len() + self.name.as_ref().map_or(0, String::len)
    }
}
