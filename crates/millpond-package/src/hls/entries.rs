//! The entries of a media playlist, one after the other (RFC 8216 4.3.2.1).
//!
//! Most entries differ from the one before in the last digits of a number: only those are written anew.

use crate::writing::digits;

/// Writes entries whose numbers follow each other, from 1.
pub(super) struct Entries<'a> {
    /// Begin of the names.
    prefix: &'a str,
    /// End of the names, with the end of the line.
    suffix: &'a str,
    /// Duration of the last entry in millionths of a second.
    micros: Option<u64>,
    /// The tag of the last entry, and the begin of its name.
    begin: String,
    /// Number of the last entry.
    number: String,
}

impl<'a> Entries<'a> {
    pub(super) fn new(prefix: &'a str, suffix: &'a str) -> Self {
        Self { prefix, suffix, micros: None, begin: String::with_capacity(32), number: "0".to_owned() }
    }

    /// Writes the next entry.
    pub(super) fn push(&mut self, out: &mut String, micros: u64) {
        if self.micros != Some(micros) {
            self.micros = Some(micros);
            self.begin.clear();
            self.begin.push_str("#EXTINF:");
            digits::push_micros(&mut self.begin, micros);
            self.begin.push_str(",\n");
            self.begin.push_str(self.prefix);
        }
        advance(&mut self.number);
        out.push_str(&self.begin);
        out.push_str(&self.number);
        out.push_str(self.suffix);
    }
}

/// Adds one to a decimal number.
fn advance(number: &mut String) {
    let mut zeros = 0;
    while number.ends_with('9') {
        number.pop();
        zeros += 1;
    }
    let next = match number.pop() {
        Some(digit) => char::from_u32(u32::from(digit) + 1).unwrap_or(digit),
        None => '1',
    };
    number.push(next);
    number.extend(std::iter::repeat_n('0', zeros));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_count_in_decimal() {
        let mut number = "0".to_owned();
        for expected in 1..12_345 {
            advance(&mut number);
            assert_eq!(number, expected.to_string());
        }
    }

    #[test]
    fn entries_have_their_own_durations() {
        let (mut out, mut entries) = (String::new(), Entries::new("i", ".m4s\n"));
        for micros in [4_000_000, 4_000_000, 3_500_000, 4_000_000] {
            entries.push(&mut out, micros);
        }
        let entry = |seconds: &str, number: u32| format!("#EXTINF:{seconds},\ni{number}.m4s\n");
        let expected = [entry("4.000000", 1), entry("4.000000", 2), entry("3.500000", 3), entry("4.000000", 4)];
        assert_eq!(out, expected.concat());
    }
}
