//! A page of subtitles: its rows with their enhancements, as characters on a screen.

use super::{
    alphabet::{Alphabet, Designation, accented, supplement},
    hamming::odd_parity,
    packet::{BODY, COLUMNS, Header, TRIPLETS},
};

/// Rows of a page below its header.
pub(super) const ROWS: usize = 24;
/// Enhancement packets of a page.
const DESIGNATIONS: usize = 16;
/// Code of a space.
const SPACE: u8 = 0x20;

/// Colours of text and its background (12.2), by their numbers.
const COLOURS: [&str; 8] = ["black", "red", "lime", "yellow", "blue", "magenta", "cyan", "white"];
const BLACK: u8 = 0;
const WHITE: u8 = 7;

/// The received rows and enhancement packets of one teletext page.
#[derive(Clone, Debug)]
pub(super) struct Page {
    rows: [Option<[u8; BODY]>; ROWS],
    enhancements: [Option<[Option<u32>; TRIPLETS]>; DESIGNATIONS],
    /// Designation of X/28/0, and the option that it states.
    designation: Option<(Designation, u8)>,
}

/// A row of text on the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// Row on the screen, from 1.
    pub(super) row: usize,
    /// Columns from the first character to the last one, and the column behind it.
    pub(super) columns: (usize, usize),
    pub(super) is_double: bool,
    pub(super) runs: Vec<Run>,
}

/// Characters of one colour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) colours: Colours,
    pub(super) text: String,
}

/// Colours of a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Colours {
    text: u8,
    background: u8,
}

impl Colours {
    const USUAL: Self = Self { text: WHITE, background: BLACK };

    /// Returns the classes of WebVTT (5.1) for colours other than white on black.
    pub(super) fn classes(self) -> impl Iterator<Item = String> {
        let name = |colour: u8| COLOURS.get(usize::from(colour & 7)).copied().unwrap_or("white");
        let text = (self.text != WHITE).then(|| name(self.text).to_owned());
        let background = (self.background != BLACK).then(|| format!("bg_{}", name(self.background)));
        text.into_iter().chain(background)
    }
}

/// A character on the screen.
#[derive(Clone, Copy, Debug)]
struct Cell {
    character: char,
    colours: Colours,
    is_double: bool,
}

impl Page {
    pub(super) fn new() -> Self {
        Self { rows: [None; ROWS], enhancements: [None; DESIGNATIONS], designation: None }
    }

    /// Takes row `number`, from 1 on. A character with wrong parity keeps its place.
    pub(super) fn take_row(&mut self, number: u8, bytes: &[u8; BODY]) {
        let row = usize::from(number).checked_sub(1).and_then(|place| self.rows.get_mut(place));
        let Some(row) = row else { return };
        let known = row.unwrap_or([SPACE; BODY]);
        let mut taken = [SPACE; BODY];
        for ((to, byte), known) in taken.iter_mut().zip(bytes).zip(known) {
            *to = odd_parity(*byte).unwrap_or(known);
        }
        *row = Some(taken);
    }

    pub(super) fn take_enhancement(&mut self, designation: u8, triplets: &[Option<u32>; TRIPLETS]) {
        if let Some(place) = self.enhancements.get_mut(usize::from(designation)) {
            *place = Some(*triplets);
        }
    }

    pub(super) fn take_designation(&mut self, triplet: u32) {
        self.designation = Some(Designation::of_triplet(triplet));
    }

    /// Returns the text in boxes. `usual` has the designation of the page's magazine, or of its language, and the option that it states.
    pub(super) fn lines(&self, header: &Header, usual: (Designation, Option<u8>)) -> Vec<Line> {
        if !header.is_boxed || header.is_hidden {
            return Vec::new();
        }
        let stated = self.designation.map(|(designation, option)| (designation, Some(option)));
        let (designation, option) = stated.unwrap_or(usual);
        let alphabet = designation.chosen(header.option, option);
        let mut lines: Vec<Line> = Vec::new();
        for (row, bytes) in (1..).zip(&self.rows) {
            let Some(bytes) = bytes else { continue };
            // The lower half of double height covers the row below.
            let is_covered = lines.last().is_some_and(|line| line.is_double && line.row + 1 == row);
            if !is_covered {
                lines.extend(line(row, &cells(bytes, alphabet, &self.characters(row, alphabet))));
            }
        }
        lines
    }

    /// Returns the characters that enhancements put into a row, by column (12.3).
    fn characters(&self, wanted: usize, alphabet: Alphabet) -> [Option<char>; COLUMNS] {
        let mut characters = [None; COLUMNS];
        let mut row = 0;
        for triplet in self.enhancements.iter().flatten().flatten() {
            // A triplet with errors is ignored.
            let Some(triplet) = triplet else { continue };
            let (address, mode, data) = (triplet & 0x3f, triplet >> 6 & 0x1f, (triplet >> 11) as u8);
            match (address, mode) {
                (63, 0x1f) => break,
                // Full row colour, and active position; the address 40 is row 24.
                (40..=63, 0x01 | 0x04) => row = if address == 40 { 24 } else { address as usize - 40 },
                (63, 0x07) => row = 0,
                (0..=39, _) if row == wanted && data >= SPACE => {
                    let character = match mode {
                        0x0f => Some(supplement(data)),
                        0x10 if data == b'*' => Some('@'),
                        0x09 | 0x10 => Some(alphabet.unmodified(data)),
                        0x11..=0x1f => Some(accented(alphabet.unmodified(data), (mode & 0xf) as u8)),
                        _ => None,
                    };
                    if let Some(place) = characters.get_mut(address as usize).filter(|_| character.is_some()) {
                        *place = character;
                    }
                }
                _ => {}
            }
        }
        characters
    }
}

/// Returns the cells of a row: those in boxes have characters (12.2).
fn cells(bytes: &[u8; BODY], alphabet: Alphabet, enhanced: &[Option<char>; COLUMNS]) -> [Option<Cell>; COLUMNS] {
    let mut cells = [None; COLUMNS];
    let mut colours = Colours::USUAL;
    let (mut is_boxed, mut is_mosaic, mut is_concealed, mut is_double) = (false, false, false, false);
    for ((cell, code), enhanced) in cells.iter_mut().zip(bytes).zip(enhanced) {
        // These act on their own cell, other codes on the one behind it.
        match code {
            0x0c => is_double = false,
            0x18 => is_concealed = true,
            0x1c => colours.background = BLACK,
            0x1d => colours.background = colours.text,
            _ => {}
        }
        let character = match code {
            0..SPACE => ' ',
            _ if is_concealed => ' ',
            // Mosaics are no text. Capital letters are shown among them.
            0x20..=0x3f | 0x60.. if is_mosaic => ' ',
            _ => alphabet.character(*code),
        };
        let character = enhanced.filter(|_| !is_concealed).unwrap_or(character);
        *cell = is_boxed.then_some(Cell { character, colours, is_double });
        match code {
            0x00..=0x07 => (colours.text, is_mosaic, is_concealed) = (*code, false, false),
            0x10..=0x17 => (colours.text, is_mosaic, is_concealed) = (*code & 7, true, false),
            0x0a => is_boxed = false,
            0x0b => is_boxed = true,
            0x0d | 0x0f => is_double = true,
            0x0e => is_double = false,
            _ => {}
        }
    }
    cells
}

/// Returns the text of a row; `None` for one without.
fn line(row: usize, cells: &[Option<Cell>; COLUMNS]) -> Option<Line> {
    let is_text = |cell: &Option<Cell>| cell.is_some_and(|cell| cell.character != ' ');
    let (first, last) = (cells.iter().position(is_text)?, cells.iter().rposition(is_text)?);
    let mut runs: Vec<Run> = Vec::new();
    let mut is_double = false;
    for cell in cells.get(first..=last).unwrap_or_default() {
        let character = cell.map_or(' ', |cell| cell.character);
        is_double |= cell.is_some_and(|cell| cell.is_double);
        let colours = cell.filter(|_| character != ' ').map(|cell| cell.colours);
        match runs.last_mut() {
            // Spaces have no colour of their own.
            Some(run) if colours.is_none_or(|colours| colours == run.colours) => run.text.push(character),
            _ => runs.push(Run { colours: colours.unwrap_or(Colours::USUAL), text: character.to_string() }),
        }
    }
    Some(Line { row, columns: (first, last + 1), is_double, runs })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::teletext::hamming::encode;

    const HEADER: Header = Header {
        number: 0x888,
        erases: true,
        is_boxed: true,
        is_subtitle: true,
        is_hidden: false,
        is_serial: false,
        option: 0,
    };

    fn row(text: &[u8]) -> [u8; BODY] {
        let mut bytes = [encode::odd_parity(b' '); BODY];
        bytes.iter_mut().zip(text).for_each(|(to, from)| *to = encode::odd_parity(*from));
        bytes
    }

    /// The lines of a page: row, columns, double height, and runs with their classes.
    fn shown(page: &Page, option: u8) -> Vec<(usize, (usize, usize), bool, String)> {
        let lines = page.lines(&Header { option, ..HEADER }, (Designation::default(), None));
        let run = |run: &Run| {
            let classes: Vec<_> = run.colours.classes().collect();
            if classes.is_empty() { run.text.clone() } else { format!("[{}:{}]", classes.join("."), run.text) }
        };
        let line = |line: Line| (line.row, line.columns, line.is_double, line.runs.iter().map(run).collect());
        lines.into_iter().map(line).collect()
    }

    fn of_row(text: &[u8]) -> String {
        let mut page = Page::new();
        page.take_row(20, &row(text));
        shown(&page, 0).pop().map_or_else(String::new, |(_, _, _, text)| text)
    }

    #[test]
    fn text_in_boxes_is_shown() {
        let mut page = Page::new();
        page.take_row(20, &row(b"out\x0d\x0b\x0bIn a box \x0a\x0aout"));
        page.take_row(21, &row(b"\x0b\x0bcovered by double height"));
        page.take_row(23, &row(b"\x0b\x0b  "));
        page.take_row(24, &row(b"\x0b\x0bto the end"));
        assert_eq!(
            shown(&page, 0),
            [(20, (6, 14), true, "In a box".to_owned()), (24, (2, 12), false, "to the end".to_owned())]
        );
        let header = |is_boxed, is_hidden| Header { is_boxed, is_hidden, ..HEADER };
        let usual = (Designation::default(), None);
        assert!(
            page.lines(&header(false, false), usual).is_empty() && page.lines(&header(true, true), usual).is_empty()
        );
    }

    #[test]
    fn colours_are_runs() {
        assert_eq!(of_row(b"\x0b\x0b\x03He:\x07Yes\x02no"), "[yellow:He: ]Yes [lime:no]");
        assert_eq!(of_row(b"\x0b\x0b\x04\x1d\x03on blue\x1c black"), "[yellow.bg_blue:on blue  ][yellow:black]");
        assert_eq!(of_row(b"\x0b\x0b\x01a\x0a\x0a   \x0b\x0bb"), "[red:a       b]", "one colour for a row");
        assert_eq!(of_row(b"\x0b\x0ba\x18secret\x07b"), "a        b");
        assert_eq!(of_row(b"\x0b\x0b\x13~~A~\x03b"), "[yellow:A  b]", "mosaics");
    }

    #[test]
    fn enhancements_replace_characters() {
        let at = |address: u32, mode: u32, data: u8| address | mode << 6 | u32::from(data) << 11;
        let mut page = Page::new();
        page.take_row(22, &row(b"\x0b\x0bcafe? 3\x0a\x0a"));
        page.take_row(24, &row(b"\x0b\x0bx"));
        let mut triplets = [None; TRIPLETS];
        let list = [
            at(62, 0x04, 0),
            at(5, 0x12, b'e'),
            at(6, 0x0f, 0x55),
            at(7, 0x10, b'*'),
            at(40, 0x04, 0),
            at(2, 0x1b, b'c'),
            at(63, 0x1f, 0),
            at(2, 0x10, b'z'),
        ];
        triplets.iter_mut().zip(list).for_each(|(to, from)| *to = Some(from));
        page.take_enhancement(0, &triplets);
        let found = shown(&page, 0);
        assert_eq!((found[0].3.as_str(), found[1].3.as_str()), ("café♪@3", "ç"));
    }

    #[test]
    fn national_options_and_designations_choose_the_letters() {
        let mut page = Page::new();
        page.take_row(22, &row(b"\x0b\x0b{|}~#"));
        assert_eq!(shown(&page, 1).pop().unwrap().3, "äöüß#");
        page.take_designation(4 << 3 | 4);
        assert_eq!(shown(&page, 4).pop().unwrap().3, "шэщч#");
    }

    #[test]
    fn a_character_with_wrong_parity_keeps_the_one_before() {
        let mut page = Page::new();
        page.take_row(22, &row(b"\x0b\x0bone"));
        let mut damaged = row(b"\x0b\x0btwo");
        damaged[3] ^= 1;
        page.take_row(22, &damaged);
        assert_eq!(shown(&page, 0).pop().unwrap().3, "tno");
        page.take_row(0, &damaged);
        page.take_row(25, &damaged);
    }
}
