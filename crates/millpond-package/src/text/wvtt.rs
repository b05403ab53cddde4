//! Samples of WebVTT in MP4 (`wvtt`; ISO/IEC 14496-30, clause 7).

use super::{
    Cue, boxes,
    boxes::{Boxes, SampleBox},
    decode, markup, vtt,
};
use bytes::Bytes;

/// A cue in one sample, without times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleCue {
    /// `source_ID` of `vsid`: the same in all samples that show parts of one cue.
    pub source: Option<u32>,
    /// Text and settings of the cue. Its times are 0.
    pub cue: Cue,
}

/// The reason why a sample is no WebVTT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// Offset in the sample.
    pub offset: u64,
    /// Value found.
    pub found: String,
}

/// Most cues that are read from a sample: more than a screen has lines.
const MOST_CUES: usize = 256;

/// Returns the sample that shows no cue (7.4).
#[must_use]
pub fn empty_sample() -> Bytes {
    Bytes::from_static(b"\0\0\0\x08vtte")
}

/// Returns the cues of a sample: its `vttc` boxes. `vtte` (an empty cue) and `vtta` (comments) are skipped.
///
/// # Errors
/// Boxes that don't fit the sample.
pub fn cues(sample: &[u8]) -> Result<Vec<SampleCue>, Malformed> {
    let mut cues = Vec::new();
    let mut offset = 0;
    for found in Boxes::new(sample) {
        let found = found.map_err(|e| at(0, e))?;
        if found.fourcc == *b"vttc" && cues.len() < MOST_CUES {
            cues.extend(cue(found.body).map_err(|e| at(offset + 8, e))?);
        }
        offset += found.body.len() + 8;
    }
    Ok(cues)
}

fn at(base: usize, error: boxes::Malformed) -> Malformed {
    Malformed { offset: (base + error.offset) as u64, found: error.found }
}

/// Returns the cue of a `vttc` box, unless it is empty.
fn cue(body: &[u8]) -> Result<Option<SampleCue>, boxes::Malformed> {
    let mut found = SampleCue { source: None, cue: Cue::default() };
    for inner in Boxes::new(body) {
        let SampleBox { fourcc, body } = inner?;
        let text = || decode::utf8(body);
        match &fourcc {
            b"vsid" => found.source = body.first_chunk().map(|id| u32::from_be_bytes(*id)),
            b"iden" => found.cue.id = Some(text().into_owned()).filter(|id| !id.is_empty()),
            b"sttg" => found.cue.settings = vtt::settings(&text()),
            b"payl" => found.cue.text = markup::tidy(&text().replace('\0', "\u{fffd}")),
            _ => {}
        }
    }
    Ok(Some(found).filter(|found| !found.cue.text.is_empty()))
}

/// Joins cues of samples in order of time. A cue that overlaps others is stored in several samples (ISO/IEC 14496-30,
/// 7.3): these become one cue again.
#[derive(Debug, Default)]
pub struct Joiner {
    /// Cues that the last sample shows.
    open: Vec<SampleCue>,
    done: Vec<Cue>,
}

impl Joiner {
    /// Adds the cues of a sample shown from `start` to `end`, in milliseconds.
    pub fn push(&mut self, start: i64, end: i64, cues: Vec<SampleCue>) {
        let mut before = std::mem::take(&mut self.open);
        for mut next in cues {
            let same = |open: &SampleCue| {
                open.cue.end == start
                    && open.source == next.source
                    && (&open.cue.text, &open.cue.settings, &open.cue.id)
                        == (&next.cue.text, &next.cue.settings, &next.cue.id)
            };
            next.cue.start = start;
            if let Some(place) = before.iter().position(same) {
                next.cue.start = before.swap_remove(place).cue.start;
            }
            next.cue.end = end;
            self.open.push(next);
        }
        self.done.extend(before.into_iter().map(|open| open.cue));
    }

    /// Returns all cues, by start time.
    #[must_use]
    pub fn finish(mut self) -> Vec<Cue> {
        self.done.extend(self.open.into_iter().map(|open| open.cue));
        self.done.retain(|cue| cue.start < cue.end);
        self.done.sort_by_key(|cue| cue.start);
        self.done
    }
}

#[cfg(test)]
mod tests {
    use super::{super::boxes::make, *};

    fn vttc(source: Option<u32>, id: &str, settings: &str, text: &str) -> Vec<u8> {
        let mut body = Vec::new();
        if let Some(source) = source {
            body.extend(make(b"vsid", &source.to_be_bytes()));
        }
        body.extend(make(b"iden", id.as_bytes()));
        body.extend(make(b"sttg", settings.as_bytes()));
        body.extend(make(b"payl", text.as_bytes()));
        make(b"vttc", &body)
    }

    fn cue(start: i64, end: i64, text: &str) -> Cue {
        Cue { start, end, text: text.into(), ..Cue::default() }
    }

    #[test]
    fn cues_of_a_sample() {
        let sample = [
            vttc(Some(7), "a", "line:0 region:x", "one\n\ntwo"),
            make(b"vtte", b""),
            make(b"vtta", b"note"),
            vttc(None, "", "", ""),
        ]
        .concat();
        let expected = Cue { settings: "line:0".into(), id: Some("a".into()), ..cue(0, 0, "one\ntwo") };
        assert_eq!(cues(&sample).unwrap(), [SampleCue { source: Some(7), cue: expected }]);
        assert_eq!(cues(b"").unwrap(), []);
    }

    #[test]
    fn cues_go_on_over_samples() {
        let mut joiner = Joiner::default();
        let one = || SampleCue { source: Some(1), cue: cue(0, 0, "one") };
        let two = || SampleCue { source: None, cue: cue(0, 0, "two") };
        joiner.push(0, 1000, vec![one()]);
        joiner.push(1000, 2000, vec![two(), one()]);
        joiner.push(2000, 3000, vec![two()]);
        joiner.push(3000, 3500, vec![]);
        joiner.push(3500, 4000, vec![two()]);
        joiner.push(4100, 4200, vec![two()]);
        let expected = [cue(0, 2000, "one"), cue(1000, 3000, "two"), cue(3500, 4000, "two"), cue(4100, 4200, "two")];
        assert_eq!(joiner.finish(), expected);
    }

    #[test]
    fn another_source_is_another_cue() {
        let mut joiner = Joiner::default();
        joiner.push(0, 1000, vec![SampleCue { source: Some(1), cue: cue(0, 0, "a") }]);
        joiner.push(1000, 2000, vec![SampleCue { source: Some(2), cue: cue(0, 0, "a") }]);
        assert_eq!(joiner.finish(), [cue(0, 1000, "a"), cue(1000, 2000, "a")]);
    }

    #[test]
    fn broken_boxes_name_their_offset() {
        let inner = [make(b"iden", b"abc"), b"\0\0\0\x63payl".to_vec()].concat();
        let sample = [make(b"vtte", b""), make(b"vttc", &inner)].concat();
        let error = cues(&sample).unwrap_err();
        assert_eq!(error, Malformed { offset: 8 + 8 + 11, found: "box size 99 with 8 bytes left".into() });
    }
}
