//! Text in blocks of Matroska (Matroska Codec Specifications, "Subtitles").

use super::{Cue, decode, markup, srt, ssa::Script, vtt};
use flate2::read::ZlibDecoder;
use millpond_media::{BlockEncoding, MatroskaText, TextBlock, TextForm};
use std::{borrow::Cow, io::Read as _};

/// Most bytes of a text that was compressed.
const MOST_TEXT: u64 = 64 << 10;

/// Reads the blocks of one track.
#[derive(Debug)]
pub struct BlockReader {
    form: TextForm,
    track: u64,
    encoding: BlockEncoding,
    script: Script,
}

impl BlockReader {
    /// Creates a reader for the blocks of a track.
    #[must_use]
    pub fn new(config: &MatroskaText) -> Self {
        let script = Script::read(&config.header);
        Self { form: config.form, track: config.track, encoding: config.encoding.clone(), script }
    }

    /// Returns the cue of a sample, without times; `None` where the sample has no block of the track, or the block no text.
    #[must_use]
    pub fn cue(&self, sample: &[u8]) -> Option<Cue> {
        let block = TextBlock::read(sample, self.track)?;
        let text = self.decoded(block.text);
        let text = whole_characters(&text);
        let cue = match self.form {
            TextForm::SubRip => {
                let (text, settings) = srt::cue_text(&decode::any(text));
                Cue { text, settings: settings.to_owned(), ..Cue::default() }
            }
            TextForm::Ssa => self.script.cue(&decode::any(text))?,
            TextForm::WebVtt => {
                let addition = decode::utf8(block.addition);
                let mut lines = vtt::Lines::new(&addition);
                let (settings, id) = (lines.next(), lines.next());
                web_vtt(&decode::utf8(text), settings, id)
            }
            TextForm::WebmVtt => {
                let text = decode::utf8(text);
                let (id, rest) = text.split_once('\n').unwrap_or_default();
                let (settings, text) = rest.split_once('\n').unwrap_or_default();
                web_vtt(text, Some(settings), Some(id))
            }
        };
        (!cue.text.is_empty()).then_some(cue)
    }

    /// Decodes a frame. Of one that is damaged, the part before the damage is returned.
    fn decoded<'a>(&self, frame: &'a [u8]) -> Cow<'a, [u8]> {
        match &self.encoding {
            BlockEncoding::Plain => Cow::Borrowed(frame),
            BlockEncoding::Stripped(prefix) => Cow::Owned([prefix, frame].concat()),
            BlockEncoding::Zlib => {
                let mut text = Vec::new();
                let _ = ZlibDecoder::new(frame).take(MOST_TEXT).read_to_end(&mut text);
                Cow::Owned(text)
            }
        }
    }
}

fn web_vtt(text: &str, settings: Option<&str>, id: Option<&str>) -> Cue {
    let id = id.map(str::trim).filter(|id| !id.is_empty());
    Cue {
        text: markup::tidy(&text.replace('\0', "\u{fffd}")),
        settings: vtt::settings(settings.unwrap_or_default()),
        id: id.map(str::to_owned),
        ..Cue::default()
    }
}

/// Returns the text up to the first zero byte, with which writers of C end it, and without a character that is cut at its end.
fn whole_characters(text: &[u8]) -> &[u8] {
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    match str::from_utf8(text) {
        Err(error) if error.error_len().is_none() => &text[..error.valid_up_to()],
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(text: &[u8], addition: &[u8]) -> Vec<u8> {
        let element = |id: &[u8], body: &[u8]| [id, &[0x80 | body.len() as u8], body].concat();
        let block = element(&[0xa1], &[&[0x82, 0, 5, 0][..], text].concat());
        let more = element(&[0xa6], &element(&[0xa5], addition));
        element(&[0xa0], &[block, element(&[0x75, 0xa1], &more)].concat())
    }

    /// A reader of track 2.
    fn reader(form: TextForm, encoding: BlockEncoding) -> BlockReader {
        BlockReader::new(&MatroskaText { form, track: 2, header: String::new(), encoding })
    }

    fn cue(form: TextForm, text: &str, addition: &str) -> Option<Cue> {
        reader(form, BlockEncoding::Plain).cue(&group(text.as_bytes(), addition.as_bytes()))
    }

    #[test]
    fn each_form_becomes_a_cue() {
        let made = |text: &str, settings: &str, id: Option<&str>| {
            Some(Cue { text: text.into(), settings: settings.into(), id: id.map(str::to_owned), ..Cue::default() })
        };
        assert_eq!(
            cue(TextForm::SubRip, "{\\an8}<i>a</i> & b\r\nc\0\u{7f}junk", ""),
            made("<i>a</i> &amp; b\nc", "line:0", None)
        );
        assert_eq!(
            cue(TextForm::WebVtt, "<v Ann>a\n\nb", "line:0 region:x\nintro\nnote"),
            made("<v Ann>a\nb", "line:0", Some("intro"))
        );
        assert_eq!(cue(TextForm::WebmVtt, "7\nalign:left\na\nb", ""), made("a\nb", "align:left", Some("7")));
        assert_eq!(cue(TextForm::WebmVtt, "\n\na", ""), made("a", "", None));
        assert_eq!(cue(TextForm::Ssa, "0,0,Default,,0,0,0,,a\\Nb, c", ""), made("a\nb, c", "", None));
    }

    #[test]
    fn a_text_that_is_cut_ends_with_a_whole_character() {
        let block = group("é日".as_bytes(), b"");
        let end = block.windows(3).position(|bytes| bytes == "日".as_bytes()).unwrap() + 2;
        let cue = reader(TextForm::SubRip, BlockEncoding::Plain).cue(&block[..end]).unwrap();
        assert_eq!(cue.text, "é");
    }

    #[test]
    fn blocks_without_text_show_nothing() {
        for form in [TextForm::SubRip, TextForm::Ssa, TextForm::WebVtt, TextForm::WebmVtt] {
            assert_eq!(cue(form, "", ""), None);
            assert_eq!(cue(form, "\0\0", ""), None);
        }
        assert_eq!(TextBlock::read(&group(b"of track 2", b""), 3), None);
    }

    #[test]
    fn encoded_frames_are_decoded() {
        let text = |encoding: BlockEncoding, frame: &[u8]| {
            reader(TextForm::SubRip, encoding).cue(&group(frame, b"")).map(|cue| cue.text)
        };
        assert_eq!(text(BlockEncoding::Stripped(b"He".to_vec()), b"llo").as_deref(), Some("Hello"));
        // `zlib.compress(b"Hello, Hello, Hello")` of Python.
        let zlib =
            [0x78, 0x9c, 0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0xd7, 0x51, 0xf0, 0x40, 0xa2, 0x00, 0x3f, 0xa8, 0x06, 0x75];
        assert_eq!(text(BlockEncoding::Zlib, &zlib).as_deref(), Some("Hello, Hello, Hello"));
        assert_eq!(text(BlockEncoding::Zlib, b"no zlib"), None);
    }
}
