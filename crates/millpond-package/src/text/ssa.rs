//! Events of SubStation Alpha scripts: SSA (v4.00) and ASS (v4.00+).

use super::{
    Cue,
    markup::{self, STYLES, Tags},
    place::Place,
};
use std::collections::HashMap;

/// Fields of an event in Matroska: order, layer, style, name, three margins, effect, text.
const FIELDS: usize = 9;
const STYLE: usize = 2;
/// Size of the screen that positions refer to, where a script states none.
const SCREEN: (f64, f64) = (384.0, 288.0);
/// Most styles that are read.
const MOST_STYLES: usize = 4096;
/// Most bytes of an override block.
const LONGEST_BLOCK: usize = 4096;
/// Height of a line as a part of the screen, by which texts are moved up from where they end.
const LINE: f64 = 5.33;

/// The styles of a script.
#[derive(Debug, Default)]
pub struct Script {
    /// Width and height that positions refer to.
    screen: Option<(f64, f64)>,
    styles: HashMap<String, Style>,
}

/// The parts of a style that WebVTT can show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Style {
    place: Place,
    /// Bold, italic, underlined, in the order of [`STYLES`].
    faces: [bool; 3],
}

impl Script {
    /// Reads the header of a script. Lines that can't be read are skipped.
    pub(super) fn read(header: &str) -> Self {
        let mut script = Self::default();
        let (mut width, mut height) = (None, None);
        let (mut is_old, mut columns) = (false, Vec::new());
        for line in header.lines().map(str::trim) {
            if line.starts_with('[') {
                is_old = line.eq_ignore_ascii_case("[V4 Styles]");
                columns.clear();
                continue;
            }
            let Some((key, value)) = line.split_once(':') else { continue };
            let fields = value.split(',').map(str::trim);
            match key.trim() {
                "PlayResX" => width = size(value),
                "PlayResY" => height = size(value),
                "Format" => columns = fields.map(str::to_ascii_lowercase).collect(),
                "Style" if script.styles.len() < MOST_STYLES => {
                    let fields: Vec<(&str, &str)> = columns.iter().map(String::as_str).zip(fields).collect();
                    script.styles.extend(style(&fields, is_old));
                }
                _ => {}
            }
        }
        // A script may state one of both: pictures of 4:3 are then assumed.
        script.screen = match (width, height) {
            (Some(width), Some(height)) => Some((width, height)),
            (Some(width), None) => Some((width, width * SCREEN.1 / SCREEN.0)),
            (None, Some(height)) => Some((height * SCREEN.0 / SCREEN.1, height)),
            (None, None) => None,
        };
        script
    }

    /// Returns the cue of an event, without times; `None` where the event has too few fields.
    pub(super) fn cue(&self, event: &str) -> Option<Cue> {
        let fields: Vec<&str> = event.splitn(FIELDS, ',').collect();
        let [.., text] = fields[..] else { return None };
        let name = fields.get(STYLE).filter(|_| fields.len() == FIELDS)?;
        let style = self.style(name);
        let mut shown = Shown { style, place: style.place, at: None, out: String::new(), tags: Tags::default() };
        shown.faces(style);
        self.read_text(text, &mut shown);
        let Shown { place, at, mut out, mut tags, .. } = shown;
        tags.close_all(&mut out);
        let text = markup::tidy(&out);
        if markup::is_blank(&text) {
            return Some(Cue::default());
        }
        let settings = match at {
            Some(at) => self.position(at, place, text.lines().count()),
            None => place.settings().to_owned(),
        };
        Some(Cue { text, settings, ..Cue::default() })
    }

    fn style(&self, name: &str) -> Style {
        let name = name.trim().trim_start_matches('*');
        self.styles.get(name).or_else(|| self.styles.get("Default")).copied().unwrap_or_default()
    }

    fn read_text(&self, text: &str, shown: &mut Shown) {
        let mut is_drawing = false;
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let near = &rest[..rest.floor_char_boundary(LONGEST_BLOCK)];
            let mut length = c.len_utf8();
            match (c, rest.as_bytes().get(1)) {
                ('{', _) if let Some(end) = near.find('}') => {
                    self.overrides(&near[1..end], shown, &mut is_drawing);
                    length = end + 1;
                }
                ('\\', Some(escaped @ (b'N' | b'n' | b'h'))) => {
                    length = 2;
                    if !is_drawing {
                        shown.out.push(match escaped {
                            b'N' => '\n',
                            b'n' => ' ',
                            _ => '\u{a0}',
                        });
                    }
                }
                _ if is_drawing => {}
                _ => markup::push_escaped(&mut shown.out, c),
            }
            rest = &rest[length..];
        }
    }

    /// Applies the tags of an override block. Colours, sizes, movements and others are not shown.
    fn overrides(&self, block: &str, shown: &mut Shown, is_drawing: &mut bool) {
        for tag in block.split('\\').skip(1).map(str::trim) {
            if let Some(digits) = tag.strip_prefix("an") {
                shown.place = digits.parse().ok().and_then(Place::of_keypad).unwrap_or(shown.place);
            } else if let Some(at) = tag.strip_prefix("pos(") {
                let mut numbers = at
                    .trim_end_matches(')')
                    .split(',')
                    .map(|number| number.trim().parse::<f64>().ok().filter(|number| number.is_finite()));
                shown.at = shown.at.or_else(|| numbers.next().flatten().zip(numbers.next().flatten()));
            } else if let Some(name) = tag.strip_prefix('r') {
                let style = if name.is_empty() { shown.style } else { self.style(name) };
                shown.faces(style);
            } else if let Some(level) = tag.strip_prefix('p').and_then(|level| level.parse::<u32>().ok()) {
                *is_drawing = level > 0;
            } else if let Some(place) = tag.strip_prefix('a').and_then(|digits| digits.parse().ok()) {
                shown.place = Place::of_ssa(place).unwrap_or(shown.place);
            } else {
                shown.face(tag);
            }
        }
    }

    /// Returns the settings of a text of some `lines` that is anchored at a point.
    fn position(&self, (x, y): (f64, f64), place: Place, lines: usize) -> String {
        let (width, height) = self.screen.unwrap_or(SCREEN);
        let percent = |part: f64, whole: f64| part / whole * 100.0;
        let above = LINE * lines as f64 * place.part_above();
        let line = (percent(y, height) - above).clamp(0.0, 100.0);
        let position = percent(x, width).clamp(0.0, 100.0);
        let align = place.align();
        format!("line:{line:.0}% position:{position:.0}% align:{align}")
    }
}

/// Text that is being made.
struct Shown {
    /// Style of the event.
    style: Style,
    place: Place,
    /// The point at which it is anchored.
    at: Option<(f64, f64)>,
    out: String,
    tags: Tags,
}

impl Shown {
    /// Shows the faces of a style, and no others.
    fn faces(&mut self, style: Style) {
        let faces = || STYLES.into_iter().zip(style.faces);
        faces().filter(|(_, is_on)| !is_on).for_each(|(face, _)| self.set(face, false));
        faces().filter(|(_, is_on)| *is_on).for_each(|(face, _)| self.set(face, true));
    }

    /// Applies a tag that begins or ends a face, such as `i1`.
    fn face(&mut self, tag: &str) {
        let Some(face) = STYLES.into_iter().find(|face| tag.starts_with(face)) else { return };
        match tag[face.len()..].parse::<u32>() {
            // A weight from 500 on is bold.
            Ok(value) => self.set(face, value == 1 || face == "b" && value >= 500),
            Err(_) if tag == face => {
                let usual = STYLES.into_iter().zip(self.style.faces).any(|(other, is_on)| other == face && is_on);
                self.set(face, usual);
            }
            Err(_) => {}
        }
    }

    fn set(&mut self, face: &'static str, is_on: bool) {
        if is_on { self.tags.open(&mut self.out, face) } else { self.tags.close(&mut self.out, face) }
    }
}

/// Reads a style by the names of its columns. `is_old` tells that places are numbered as in SSA.
fn style(fields: &[(&str, &str)], is_old: bool) -> Option<(String, Style)> {
    let field = |name: &str| fields.iter().find(|(column, _)| *column == name).map(|(_, value)| *value);
    let is_on = |name: &str| field(name).and_then(|value| value.parse::<i32>().ok()).is_some_and(|value| value != 0);
    let number = field("alignment").and_then(|value| value.parse().ok());
    let place = number.and_then(if is_old { Place::of_ssa } else { Place::of_keypad }).unwrap_or_default();
    let faces = [is_on("bold"), is_on("italic"), is_on("underline")];
    Some((field("name")?.trim_start_matches('*').to_owned(), Style { place, faces }))
}

fn size(value: &str) -> Option<f64> {
    value.trim().parse().ok().filter(|size: &f64| *size >= 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "[Script Info]\r\nPlayResX: 640\r\nPlayResY: 480\r\n\r\n[V4+ Styles]\r\n\
        Format: Name, Fontname, Fontsize, Bold, Italic, Underline, Alignment\r\n\
        Style: Default,Arial,20,0,0,0,2\r\nStyle: Sign,Arial,20,-1,0,0,8\r\nbroken\r\nStyle: Thought,Arial,20,0,1,0,2\r\n";

    fn shown(text: &str) -> (String, String) {
        let cue = Script::read(HEADER).cue(text).unwrap();
        (cue.text, cue.settings)
    }

    #[test]
    fn styles_give_faces_and_places() {
        let made = |text: &str, settings: &str| (text.to_owned(), settings.to_owned());
        assert_eq!(shown("1,0,Default,,0,0,0,,Hello, you"), made("Hello, you", ""));
        assert_eq!(shown("1,0,Sign,,0,0,0,,EXIT"), made("<b>EXIT</b>", "line:0"));
        assert_eq!(shown("1,0,*Thought,,0,0,0,,a{\\i0}b{\\i}c"), made("<i>a</i>b<i>c</i>", ""));
        assert_eq!(shown("1,0,Unknown,,0,0,0,,x"), made("x", ""));
        assert_eq!(shown("1,0,Sign,,0,0,0,,a{\\rThought}b{\\r}c"), made("<b>a</b><i>b</i><b>c</b>", "line:0"));
    }

    #[test]
    fn overrides_are_shown_or_dropped() {
        for (text, expected, settings) in [
            ("{\\an8}up", "up", "line:0"),
            ("{\\a6}up", "up", "line:0"),
            ("{\\b1}a{\\b0}{\\c&HFF&}b{\\fs20}", "<b>a</b>b", ""),
            ("{\\b700}a{\\b100}b", "<b>a</b>b", ""),
            ("a\\Nb\\nc\\hd", "a\nb c\u{a0}d", ""),
            ("{\\p1}m 0 0 l 9 9{\\p0}sign", "sign", ""),
            ("{\\pos(320,480)}x", "x", "line:95% position:50% align:center"),
            ("{\\pos(9,nan)}x", "x", ""),
            ("{\\an7\\pos(64,48)}x", "x", "line:10% position:10% align:left"),
            ("{a comment}x < y & z", "x &lt; y &amp; z", ""),
            ("{unfinished", "{unfinished", ""),
            ("a \\x", "a \\x", ""),
        ] {
            assert_eq!(shown(&format!("1,0,Default,,0,0,0,,{text}")), (expected.into(), settings.into()), "{text}");
        }
    }

    #[test]
    fn events_without_text_show_nothing() {
        assert_eq!(shown("1,0,Default,,0,0,0,,{\\p1}m 0 0{\\p0}").0, "");
        assert_eq!(shown("1,0,Default,,0,0,0,,").0, "");
        assert!(Script::default().cue("1,0,Default").is_none());
    }

    #[test]
    fn old_scripts_number_places_differently() {
        let script = Script::read("[V4 Styles]\nFormat: Name, Alignment\nStyle: Default,6\n");
        assert_eq!(script.cue("1,0,Default,,0,0,0,,x").unwrap().settings, "line:0");
    }
}
