//! Programmes of a transport stream file: one programme is the movie, and another can be chosen instead.

use serde::{Deserialize, Serialize};

/// A programme of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileProgramme {
    /// `program_number`, which chooses the programme.
    pub number: u16,
    /// Name in the service description table, if the file has the table.
    pub name: Option<String>,
    /// Codings of the programme's streams, such as `H.264, AAC in ADTS, teletext`.
    pub streams: String,
    /// Whether the programme has pictures or sound that can be read.
    pub is_playable: bool,
    /// Whether the programme is the movie.
    pub is_chosen: bool,
    /// Whether the programme is the movie if no number is given.
    pub is_default: bool,
}

impl FileProgramme {
    /// Bytes of heap held.
    pub(crate) fn heap_bytes(&self) -> usize {
        size_of::<Self>() + self.streams.len() + self.name.as_ref().map_or(0, String::len)
    }
}
