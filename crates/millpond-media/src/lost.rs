//! Places of a file where media is damaged or missing.

use crate::units::ByteRange;
use std::fmt::Write as _;

/// Most places that are listed.
const MOST_LISTED: usize = 8;

/// Places without media, and the number of bytes in them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lost {
    bytes: u64,
    count: u64,
    /// Offsets of the first places, and their times in seconds where the times are known.
    listed: Vec<(u64, Option<f64>)>,
}

impl Lost {
    /// Adds a place.
    pub(crate) fn push(&mut self, range: ByteRange, seconds: Option<f64>) {
        self.bytes = self.bytes.saturating_add(range.len());
        self.count += 1;
        if self.listed.len() < MOST_LISTED {
            self.listed.push((range.start, seconds));
        }
    }

    /// Number of bytes in all places.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of places and the first places as text; `None` without a place.
    pub(crate) fn places(&self) -> Option<String> {
        let mut words = match self.count {
            0 => return None,
            1 => "in 1 place".to_owned(),
            count => format!("in {count} places"),
        };
        for (place, (offset, seconds)) in self.listed.iter().enumerate() {
            words.push_str(if place == 0 { ": byte " } else { ", byte " });
            let _ = write!(words, "{offset}");
            if let Some(seconds) = seconds {
                let _ = write!(words, " ({seconds:.3} s)");
            }
        }
        let further = self.count.saturating_sub(self.listed.len() as u64);
        if further > 0 {
            let _ = write!(words, " and {further} more");
        }
        Some(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_places_are_listed_and_all_are_counted() {
        let mut lost = Lost::default();
        assert_eq!(lost.places(), None);
        lost.push(ByteRange::at(100, 7), Some(1.5));
        assert_eq!(lost.places().as_deref(), Some("in 1 place: byte 100 (1.500 s)"));
        (2..12).for_each(|n| lost.push(ByteRange::at(n * 100, 1), None));
        let words = lost.places().unwrap();
        assert!(words.starts_with("in 11 places: byte 100 (1.500 s), byte 200, "), "{words}");
        assert!(words.ends_with("byte 800 and 3 more"), "{words}");
        assert_eq!(lost.bytes(), 17);
    }
}
