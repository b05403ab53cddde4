//! Text in blocks of Matroska (Matroska Codec Specifications, "Subtitles").

use super::{Cue, decode, markup, srt, ssa::Script, vtt};
use millpond_media::{MatroskaText, TextBlock, TextForm};

/// Reads the blocks of one track.
#[derive(Debug)]
pub struct BlockReader {
    form: TextForm,
    track: u64,
    script: Script,
}

impl BlockReader {
    /// Creates a reader for the blocks of a track.
    #[must_use]
    pub fn new(config: &MatroskaText) -> Self {
        Self { form: config.form, track: config.track, script: Script::read(&config.header) }
    }

    /// Returns the cue of a sample, without times; `None` where the sample has no block of the track, or the block no text.
    #[must_use]
    pub fn cue(&self, sample: &[u8]) -> Option<Cue> {
        let block = TextBlock::read(sample, self.track)?;
        let cue = match self.form {
            TextForm::SubRip => {
                let (text, settings) = srt::cue_text(&decode::any(without_end(block.text)));
                Cue { text, settings: settings.to_owned(), ..Cue::default() }
            }
            TextForm::Ssa => self.script.cue(&decode::any(without_end(block.text)))?,
            TextForm::WebVtt => {
                let addition = decode::utf8(block.addition);
                let mut lines = vtt::Lines::new(&addition);
                let (settings, id) = (lines.next(), lines.next());
                web_vtt(&decode::utf8(without_end(block.text)), settings, id)
            }
            TextForm::WebmVtt => {
                let text = decode::utf8(without_end(block.text));
                let (id, rest) = text.split_once('\n').unwrap_or_default();
                let (settings, text) = rest.split_once('\n').unwrap_or_default();
                web_vtt(text, Some(settings), Some(id))
            }
        };
        (!cue.text.is_empty()).then_some(cue)
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

/// Some writers end the text with zero bytes.
fn without_end(text: &[u8]) -> &[u8] {
    text.iter().rposition(|byte| *byte != 0).map_or(&[], |last| &text[..=last])
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

    fn cue(form: TextForm, text: &str, addition: &str) -> Option<Cue> {
        let reader = BlockReader::new(&MatroskaText { form, track: 2, header: String::new() });
        reader.cue(&group(text.as_bytes(), addition.as_bytes()))
    }

    #[test]
    fn each_form_becomes_a_cue() {
        let made = |text: &str, settings: &str, id: Option<&str>| {
            Some(Cue { text: text.into(), settings: settings.into(), id: id.map(str::to_owned), ..Cue::default() })
        };
        assert_eq!(
            cue(TextForm::SubRip, "{\\an8}<i>a</i> & b\r\nc\0", ""),
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
    fn blocks_without_text_show_nothing() {
        for form in [TextForm::SubRip, TextForm::Ssa, TextForm::WebVtt, TextForm::WebmVtt] {
            assert_eq!(cue(form, "", ""), None);
            assert_eq!(cue(form, "\0\0", ""), None);
        }
        let reader = BlockReader::new(&MatroskaText { form: TextForm::SubRip, track: 3, header: String::new() });
        assert_eq!(reader.cue(&group(b"of another track", b"")), None);
    }
}
