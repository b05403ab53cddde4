//! Samples of 3GPP timed text (`tx3g`; 3GPP TS 26.245, 5.17).

use super::{
    boxes::Boxes,
    decode,
    markup::{self, STYLES, Tags},
};

/// The reason why a sample is no timed text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// Offset in the sample.
    pub offset: u64,
    /// Value found.
    pub found: String,
    /// Value expected.
    pub expected: &'static str,
}

/// A run of characters in one style (5.17.1.1 `StyleRecord`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Style {
    start: usize,
    end: usize,
    /// Flags for bold, italic and underline, from the lowest bit up.
    face: u8,
}

/// Length of a style record in bytes.
const RECORD: usize = 12;

/// Returns the cue text of a sample; empty where the sample shows nothing.
///
/// # Errors
/// The sample is shorter than its stated text. Invalid modifier boxes after the text are ignored, because the text is
/// complete without them.
pub fn cue_text(sample: &[u8]) -> Result<String, Malformed> {
    let Some((length, rest)) = sample.split_first_chunk::<2>() else {
        if sample.is_empty() {
            return Ok(String::new());
        }
        let found = format!("a sample of {} bytes", sample.len());
        return Err(Malformed { offset: 0, found, expected: "a text length of 2 bytes" });
    };
    let length = usize::from(u16::from_be_bytes(*length));
    let Some((text, modifiers)) = rest.split_at_checked(length) else {
        let found = format!("text length {length} with {} bytes left", rest.len());
        return Err(Malformed { offset: 0, found, expected: "a length within the sample" });
    };
    let text = decode::utf16(text).unwrap_or_else(|| decode::utf8(text).into_owned());
    Ok(markup::tidy(&styled(&text, &styles(modifiers))))
}

/// Returns the styles in all `styl` boxes of a sample.
fn styles(modifiers: &[u8]) -> Vec<Style> {
    let records = Boxes::new(modifiers).map_while(Result::ok).filter(|b| b.fourcc == *b"styl").flat_map(|b| {
        let (count, records) = b.body.split_first_chunk::<2>().unwrap_or((&[0, 0], &[]));
        records.as_chunks::<RECORD>().0.iter().take(usize::from(u16::from_be_bytes(*count)))
    });
    let mut styles: Vec<_> = records
        .map(|r| Style {
            start: usize::from(u16::from_be_bytes([r[0], r[1]])),
            end: usize::from(u16::from_be_bytes([r[2], r[3]])),
            face: r[6] & 7,
        })
        .filter(|style| style.face != 0 && style.start < style.end)
        .collect();
    // The standard requires ordered runs without overlaps. Where they overlap, the earlier one ends first.
    styles.sort_by_key(|style| style.start);
    styles
}

fn styled(text: &str, styles: &[Style]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut tags = Tags::default();
    let mut styles = styles.iter().peekable();
    let mut until = None;
    for (at, c) in text.chars().enumerate() {
        while let Some(style) = styles.next_if(|style| style.start <= at) {
            tags.close_all(&mut out);
            until = Some(style.end);
            let face = |bit: usize| style.face >> bit & 1 == 1;
            STYLES.into_iter().enumerate().filter(|(bit, _)| face(*bit)).for_each(|(_, tag)| tags.open(&mut out, tag));
        }
        if until.is_some_and(|end| end <= at) {
            tags.close_all(&mut out);
            until = None;
        }
        markup::push_escaped(&mut out, c);
    }
    tags.close_all(&mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::{super::boxes::make, *};

    fn sample(text: &[u8], styles: &[(u16, u16, u8)]) -> Vec<u8> {
        let mut body = (styles.len() as u16).to_be_bytes().to_vec();
        for (start, end, face) in styles {
            body.extend_from_slice(&[start.to_be_bytes(), end.to_be_bytes(), [0, 1]].concat());
            body.extend_from_slice(&[*face, 18, 255, 255, 255, 255]);
        }
        [&(text.len() as u16).to_be_bytes()[..], text, &make(b"styl", &body)].concat()
    }

    #[test]
    fn text_in_both_encodings() {
        assert_eq!(cue_text(b"\0\x05a & b").unwrap(), "a &amp; b");
        assert_eq!(cue_text(b"\0\x06\xfe\xff\0a\0\n").unwrap(), "a");
        assert_eq!(cue_text(b"\0\0").unwrap(), "");
        assert_eq!(cue_text(b"").unwrap(), "");
    }

    #[test]
    fn styles_become_tags() {
        assert_eq!(
            cue_text(&sample("grün rot".as_bytes(), &[(0, 4, 2), (5, 8, 5)])).unwrap(),
            "<i>grün</i> <b><u>rot</u></b>"
        );
        assert_eq!(cue_text(&sample(b"ab", &[(0, 99, 1)])).unwrap(), "<b>ab</b>");
        assert_eq!(cue_text(&sample(b"abc", &[(0, 3, 1), (1, 2, 2)])).unwrap(), "<b>a</b><i>b</i>c");
        assert_eq!(cue_text(&sample(b"abc", &[(2, 1, 1), (7, 9, 1), (0, 1, 0)])).unwrap(), "abc");
    }

    #[test]
    fn a_broken_modifier_leaves_the_text() {
        assert_eq!(cue_text(b"\0\x01a\0\0\0\x02styl").unwrap(), "a");
        let mut cut = sample(b"ab", &[(0, 1, 1), (1, 2, 2)]);
        cut.truncate(cut.len() - 3);
        assert_eq!(cue_text(&cut).unwrap(), "ab");
    }

    #[test]
    fn a_length_beyond_the_sample_is_told() {
        let error = cue_text(b"\0\x09abc").unwrap_err();
        assert_eq!(error.found, "text length 9 with 3 bytes left");
        assert!(cue_text(b"\0").is_err());
    }
}
