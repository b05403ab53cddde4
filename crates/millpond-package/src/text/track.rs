//! Text tracks inside the film: samples to WebVTT.

use super::{Cue, matroska::BlockReader, tx3g, webvtt, wvtt};
use crate::{
    ObjectIndex, ObjectRange, PackageError, Plan, Rewrite,
    plan::{Damage, reads},
};
use millpond_media::{Codec, Movie, units::ByteRange};
use std::{ops::Range, sync::Arc};

/// One sample of a text track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextUnit {
    /// Byte range in the object.
    pub range: ByteRange,
    /// Start of display, in milliseconds of presentation time.
    pub start_ms: i64,
    /// End of display.
    pub end_ms: i64,
}

/// The requested part of a text track.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Window {
    /// The whole track in one file.
    Whole,
    /// A period in one file: its time range in milliseconds.
    Period(Range<i64>),
    /// An HLS segment: its time range in milliseconds, and presentation time 0 on the 90 kHz clock of the media.
    Segment(Range<i64>, u64),
}

/// Returns WebVTT from samples of a text track: those shown in the window, by time. The length is unknown before the
/// samples are read, and all output is written at the end.
///
/// # Errors
/// A track that doesn't exist, or whose codec is neither `tx3g` nor `wvtt` nor text of Matroska.
pub fn segment(
    movie: &Arc<Movie>,
    track: usize,
    object: ObjectIndex,
    units: Vec<TextUnit>,
    window: Window,
) -> Result<Plan, PackageError> {
    let missing = || PackageError::Track { object, track, found: movie.tracks.len() };
    let codec = &movie.track(track).ok_or_else(missing)?.codec;
    let form = match codec {
        Codec::Tx3g => Form::Tx3g(Vec::new()),
        Codec::Wvtt(_) => Form::Wvtt(wvtt::Joiner::default()),
        Codec::MatroskaText(config) => Form::Matroska(BlockReader::new(config), Vec::new()),
        other => {
            let found = other.name().to_owned();
            return Err(PackageError::Container {
                container: "WebVTT",
                found,
                expected: "tx3g, wvtt or text of Matroska",
            });
        }
    };
    let floors = reads::floors(units.iter().map(|unit| unit.range));
    Ok(Plan::Rewrite(Box::new(Rewriter { object, units, floors, window, form, at: 0, pending: None, damage: None })))
}

enum Form {
    Tx3g(Vec<Cue>),
    Wvtt(wvtt::Joiner),
    Matroska(BlockReader, Vec<Cue>),
}

struct Rewriter {
    object: ObjectIndex,
    units: Vec<TextUnit>,
    /// For each unit, the lowest offset of it and all later units.
    floors: Vec<u64>,
    window: Window,
    form: Form,
    /// Number of units read.
    at: usize,
    /// The last read, and the number of units it covers.
    pending: Option<(usize, ObjectRange)>,
    damage: Option<Damage>,
}

impl Rewriter {
    fn reads(&self) -> impl Iterator<Item = ObjectRange> + '_ {
        self.units.iter().map(|unit| ObjectRange { object: self.object, range: unit.range })
    }

    /// Takes the cues of a sample. The cues of a damaged sample are left out.
    fn take(&mut self, unit: TextUnit, sample: &[u8]) {
        if let Err(fault) = self.read(unit, sample) {
            Damage::count(&mut self.damage, self.object, fault);
        }
    }

    fn read(&mut self, unit: TextUnit, sample: &[u8]) -> Result<(), PackageError> {
        let (object, range) = (self.object, unit.range);
        let TextUnit { start_ms, end_ms, .. } = unit;
        match &mut self.form {
            Form::Tx3g(cues) => {
                let text = tx3g::cue_text(sample).map_err(|e| PackageError::Sample {
                    object,
                    range,
                    offset: e.offset,
                    found: e.found,
                    expected: e.expected,
                })?;
                if !text.is_empty() && start_ms < end_ms {
                    cues.push(Cue { start: start_ms, end: end_ms, text, ..Cue::default() });
                }
            }
            Form::Wvtt(joiner) => {
                let cues = wvtt::cues(sample).map_err(|e| PackageError::Sample {
                    object,
                    range,
                    offset: e.offset,
                    found: e.found,
                    expected: "boxes that fit the sample",
                })?;
                joiner.push(start_ms, end_ms, cues);
            }
            // A cue may name a wrong place: only that text is lost.
            Form::Matroska(reader, cues) if start_ms < end_ms => {
                cues.extend(reader.cue(sample).map(|cue| Cue { start: start_ms, end: end_ms, ..cue }));
            }
            Form::Matroska(..) => {}
        }
        Ok(())
    }
}

impl Rewrite for Rewriter {
    fn len(&self) -> Option<u64> {
        None
    }

    fn covering(&self) -> Vec<ObjectRange> {
        reads::cover(self.reads())
    }

    fn next_read(&mut self) -> Option<ObjectRange> {
        if self.pending.is_none() {
            let rest = self.units.get(self.at..).unwrap_or_default().iter();
            self.pending = reads::merge(rest.map(|unit| ObjectRange { object: self.object, range: unit.range }));
        }
        self.pending.map(|(_, read)| read)
    }

    fn floor(&self, object: ObjectIndex) -> u64 {
        let here = object == self.object;
        self.floors.get(self.at).copied().filter(|_| here).unwrap_or(u64::MAX)
    }

    fn push(&mut self, sample: &[u8], _: &mut Vec<u8>) -> Result<(), PackageError> {
        let count = reads::claim(&mut self.pending, sample)?;
        let mut rest = sample;
        for _ in 0..count {
            let Some(&unit) = self.units.get(self.at) else { break };
            self.at += 1;
            let (bytes, later) = rest.split_at((unit.range.len() as usize).min(rest.len()));
            self.take(unit, bytes);
            rest = later;
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), PackageError> {
        reads::check_finished(self.units.len().saturating_sub(self.at))?;
        let cues = match &mut self.form {
            Form::Tx3g(cues) | Form::Matroska(_, cues) => std::mem::take(cues),
            Form::Wvtt(joiner) => std::mem::take(joiner).finish(),
        };
        let text = match &self.window {
            Window::Whole => webvtt::whole(&cues),
            Window::Period(window) => webvtt::period(&cues, window.clone()),
            Window::Segment(window, base) => webvtt::segment(&cues, window.clone(), *base),
        };
        out.extend_from_slice(text.as_bytes());
        Ok(())
    }

    fn damage(&self) -> Option<&Damage> {
        self.damage.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use millpond_media::Track;

    #[test]
    fn a_damaged_text_is_left_out_alone() {
        let sound = testing::audio(testing::table(&testing::frames(1), 0, 0), "eng", Vec::new());
        let movie = testing::movie(vec![Track { codec: Codec::Tx3g, ..sound }]);
        // The second sample states more bytes than it has.
        let samples: [&[u8]; 3] = [b"\0\x03one", b"\x40\x03two", b"\0\x05three"];
        let mut at = 100;
        let mut units = Vec::new();
        for (n, sample) in (0..).zip(samples) {
            let range = ByteRange::at(at, sample.len() as u64);
            units.push(TextUnit { range, start_ms: n * 1000, end_ms: n * 1000 + 500 });
            at = range.end;
        }
        let plan = segment(&movie, 0, ObjectIndex(2), units, Window::Whole).unwrap();
        let Plan::Rewrite(mut rewrite) = plan else { panic!("text is rewritten") };
        let mut out = Vec::new();
        while rewrite.next_read().is_some() {
            rewrite.push(&samples.concat(), &mut out).unwrap();
        }
        rewrite.finish(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("one") && text.contains("three") && !text.contains("two"), "{text}");
        let damage = rewrite.damage().unwrap();
        assert_eq!((damage.object, damage.samples), (ObjectIndex(2), 1));
        assert!(damage.first.to_string().contains("text length 16387"), "{}", damage.first);
    }
}
