//! Pages as cues of WebVTT.

use super::page::{Line, Run};

/// Rows between two lines of one cue: lines of double height stand two rows apart.
const APART: usize = 2;
/// Columns of a page.
const COLUMNS: usize = 40;
/// Columns by which the middle of a centred line may be beside that of the page.
const BESIDE: usize = 2;
/// Part of the picture around the page, in percent on each side. Teletext fills the rest (EN 300 706 A.1 has no picture sizes; EBU
/// Tech 3380 and converters to TTML use these).
const MARGIN: usize = 10;

/// Text at one place of the picture, as a cue of WebVTT without times.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TeletextCue {
    /// Cue settings (WebVTT 4.4).
    pub settings: String,
    /// Cue text (WebVTT 4.2): escaped, with classes for colours.
    pub text: String,
}

impl TeletextCue {
    /// Returns the cues of a page: lines that stand below each other are one cue.
    pub(super) fn of_lines(lines: &[Line]) -> Vec<Self> {
        let is_next = |above: &Line, below: &Line| below.row - above.row <= APART + usize::from(above.is_double);
        lines.chunk_by(is_next).map(Self::of_block).collect()
    }

    fn of_block(lines: &[Line]) -> Self {
        let text: Vec<String> = lines.iter().map(|line| line.runs.iter().map(marked).collect()).collect();
        Self { settings: settings(lines), text: text.join("\n") }
    }

    /// Returns the sample of `wvtt` that shows cues (ISO/IEC 14496-30 7.4): an empty cue for none.
    #[must_use]
    pub fn sample(cues: &[Self]) -> Vec<u8> {
        if cues.is_empty() {
            return boxed(*b"vtte", &[]);
        }
        let cue = |cue: &Self| {
            let settings = boxed(*b"sttg", cue.settings.as_bytes());
            boxed(*b"vttc", &[settings, boxed(*b"payl", cue.text.as_bytes())].concat())
        };
        cues.iter().flat_map(cue).collect()
    }
}

fn boxed(kind: [u8; 4], body: &[u8]) -> Vec<u8> {
    // Texts of a page have at most a few kilobytes.
    [&(body.len() as u32 + 8).to_be_bytes()[..], &kind, body].concat()
}

/// Returns a run, escaped, in the classes of its colours.
fn marked(run: &Run) -> String {
    let mut escaped = String::with_capacity(run.text.len());
    for character in run.text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            character => escaped.push(character),
        }
    }
    let classes: String = run.colours.classes().map(|class| format!(".{class}")).collect();
    if classes.is_empty() {
        return escaped;
    }
    // Spaces behind a word need no colour.
    let text = escaped.trim_end_matches(' ');
    let rest = escaped.get(text.len()..).unwrap_or_default();
    format!("<c{classes}>{text}</c>{rest}")
}

/// Returns the place of lines as cue settings: the row of the first one, and where lines are not centred, their columns.
fn settings(lines: &[Line]) -> String {
    let row = lines.first().map_or(0, |line| line.row);
    let line = MARGIN + row * (100 - 2 * MARGIN) / 25;
    let percent = |column: usize| MARGIN + column * (100 - 2 * MARGIN) / COLUMNS;
    let is_centred = |line: &Line| (line.columns.0 + line.columns.1).abs_diff(COLUMNS) <= 2 * BESIDE;
    let first = |line: &Line| line.columns.0;
    let end = |line: &Line| line.columns.1;
    let same = |of: fn(&Line) -> usize| {
        let place = of(lines.first()?);
        lines.iter().all(|line| of(line) == place).then_some(place)
    };
    if lines.iter().all(is_centred) {
        return format!("line:{line}%");
    }
    match (same(first), same(end)) {
        (Some(first), _) => format!("line:{line}% position:{}% align:start", percent(first)),
        (None, Some(end)) => format!("line:{line}% position:{}% align:end", percent(end)),
        (None, None) => {
            let (left, right) = (lines.iter().map(first).min().unwrap_or(0), lines.iter().map(end).max().unwrap_or(0));
            let middle = MARGIN + (left + right) * (100 - 2 * MARGIN) / (2 * COLUMNS);
            if (left + right).abs_diff(COLUMNS) <= 2 * BESIDE {
                format!("line:{line}%")
            } else {
                format!("line:{line}% position:{middle}%")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_have_boxes() {
        assert_eq!(TeletextCue::sample(&[]), b"\0\0\0\x08vtte");
        let cue = TeletextCue { settings: "line:74%".to_owned(), text: "a".to_owned() };
        assert_eq!(TeletextCue::sample(&[cue]), b"\0\0\0\x21vttc\0\0\0\x10sttgline:74%\0\0\0\x09payla");
    }
}
