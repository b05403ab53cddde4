//! Programmes of a transport stream file: one programme is the movie, and another can be chosen instead.

use serde::{Deserialize, Serialize};

/// Most programmes that an error names.
const MOST_NAMED: usize = 16;

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

/// Names the programmes that can be chosen: the playable programmes, or all programmes if none is playable.
pub(crate) fn choices(programmes: &[FileProgramme]) -> String {
    let can_play = programmes.iter().any(|programme| programme.is_playable);
    let named = programmes.iter().filter(|programme| programme.is_playable || !can_play).take(MOST_NAMED);
    let named: Vec<String> = named.map(FileProgramme::named).collect();
    match named.is_empty() {
        true => "a programme association table in the first pieces of the file".to_owned(),
        false => format!("programme {}", named.join(", ")),
    }
}

impl FileProgramme {
    /// Returns number and name.
    fn named(&self) -> String {
        let name = self.name.as_ref().map_or_else(String::new, |name| format!(" ({name})"));
        format!("{}{name}", self.number)
    }

    /// Bytes of heap held.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        size_of::<Self>() + self.streams.len() + self.name.as_ref().map_or(0, String::len)
    }
}
