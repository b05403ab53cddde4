//! Subtitles: from SubRip, SSA, WebVTT, `tx3g` and `wvtt` to WebVTT, whole or in segments.
//!
//! All formats are converted to [`Cue`]s. [`srt::parse`] and [`vtt::parse`] read files next to the film, [`vtt_segments::parse`] reads
//! segments of HLS, [`segment`] plans the reading of a text track inside it, and [`webvtt`] writes.

pub mod matroska;
pub mod srt;
pub mod ssa;
pub mod track;
pub mod tx3g;
pub mod vtt;
pub mod vtt_segments;
pub mod webvtt;
pub mod wvtt;

mod boxes;
mod clock;
mod decode;
mod markup;
mod place;

#[cfg(test)]
mod robustness;

pub use track::{TextUnit, Window, segment};

/// One subtitle, in the model of WebVTT.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Cue {
    /// Start of display, in milliseconds of presentation time.
    pub start: i64,
    /// End of display, in milliseconds; after `start`.
    pub end: i64,
    /// Cue settings (WebVTT 4.4), such as `line:0 align:left`; empty for the default position.
    pub settings: String,
    /// Cue text (WebVTT 4.2): escaped, with the tags that WebVTT allows, and without empty lines.
    pub text: String,
    /// Cue identifier.
    pub id: Option<String>,
}

impl Cue {
    /// Bytes of heap held, with what the allocator adds to short texts.
    pub(crate) fn heap_bytes(&self) -> usize {
        allocated(&self.settings) + allocated(&self.text) + self.id.as_ref().map_or(0, allocated)
    }
}

/// Bytes that a text takes of the heap: a word more than its capacity, in steps of 16, and 32 at least (malloc(3) of glibc).
fn allocated(text: &String) -> usize {
    match text.capacity() {
        0 => 0,
        capacity => (capacity + size_of::<usize>()).next_multiple_of(16).max(32),
    }
}

/// Content of a subtitle file.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Subtitles {
    /// Cues by start time.
    pub cues: Vec<Cue>,
    /// Descriptions of skipped parts, with line numbers, for the log.
    pub warnings: Vec<String>,
}

/// Most warnings kept for a file.
const MOST_WARNINGS: usize = 20;

impl Subtitles {
    fn warn(&mut self, line: u32, what: &str) {
        if self.warnings.len() < MOST_WARNINGS {
            self.warnings.push(format!("line {line}: {what}"));
        }
    }

    fn sorted(mut self) -> Self {
        self.cues.sort_by_key(|cue| cue.start);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::Cue;

    #[test]
    fn short_texts_count_as_what_the_allocator_takes() {
        let cue = |text: &str, id: Option<&str>| Cue { text: text.into(), id: id.map(String::from), ..Cue::default() };
        assert_eq!(cue("", None).heap_bytes(), 0);
        assert_eq!(cue("x", Some("1")).heap_bytes(), 64);
        assert_eq!(cue(&"x".repeat(100), None).heap_bytes(), 112);
    }
}
