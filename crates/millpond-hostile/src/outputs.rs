//! A movie through the indexer, a presentation, and every output of it.

use crate::movie::SparseObject;
use millpond_media::{Indexer, MediaError, Movie, Step, Work};
use millpond_package::{
    PackageError, Plan, PlanItem, Presentation, PresentationOptions, PresentedTrack, SourceObject, dash, delivery,
    fmp4, hls, transport,
};
use std::sync::Arc;

/// Tracks of which outputs are made: the first, the last, and some between.
const TRACKS: usize = 8;
/// Reads of a rewritten segment that are answered.
const READS: usize = 64;
/// Longest read that is answered.
const READ: u64 = 64 << 10;

/// Why a movie has no output.
#[derive(Clone, Debug, PartialEq)]
pub enum OutputError {
    /// The indexer refused it.
    Media(MediaError),
    /// The packager refused it.
    Package(PackageError),
}

/// Steps that a movie with `metadata` bytes of boxes may take: its tables are read and walked over a few times,
/// as are the samples that it need not justify. A run that takes more is a fault.
#[must_use]
pub const fn justified_steps(metadata: u64) -> u64 {
    (1 << 25) + 128 * metadata
}

/// Indexes an object.
///
/// # Errors
/// As [`Indexer::poll`].
pub fn index(object: &SparseObject, work: &Work) -> Result<Movie, MediaError> {
    let mut indexer = Indexer::new(object.len).with_work(work.clone());
    loop {
        match indexer.poll()? {
            Step::Done(movie) => return Ok(movie),
            Step::Need(ranges) => ranges.into_iter().for_each(|range| indexer.supply(range, object.read(range))),
        }
    }
}

/// Makes every output of an object and gives the bytes of them all, media not counted. Calls `done` with the name of
/// each output, and of the index and the presentation, when it is made.
///
/// # Errors
/// The object is refused: it, or its presentation. Outputs that refuse are passed over.
pub fn run(object: &SparseObject, work: &Work, done: &mut dyn FnMut(&'static str)) -> Result<u64, OutputError> {
    let movie = index(object, work);
    done("index");
    let source = SourceObject::new(Arc::new(movie.map_err(OutputError::Media)?), "hostile.mp4".to_owned());
    let presentation = Presentation::build(vec![source], Vec::new(), &PresentationOptions::default(), work);
    done("presentation");
    Ok(render(&presentation.map_err(OutputError::Package)?, done))
}

fn render(p: &Presentation, done: &mut dyn FnMut(&'static str)) -> u64 {
    let text = |text: Option<String>| text.map_or(0, |text| text.len() as u64);
    let mut bytes = 0;
    let mut made = |name, len: u64| {
        bytes += len;
        done(name);
    };
    made("MPD", text(dash::mpd(p).ok()));
    for container in [hls::Container::Fmp4, hls::Container::Ts] {
        made("multivariant playlist", text(hls::multivariant(p, container).ok()));
    }
    let tracks = p.tracks();
    for track in tracks.iter().step_by(tracks.len().div_ceil(TRACKS).max(1)).chain(tracks.last()) {
        for container in [hls::Container::Fmp4, hls::Container::Ts] {
            made("media playlist", text(hls::media(p, track, container)));
            made("I-frame playlist", text(hls::iframes(p, track, container)));
        }
        if track.source_track().is_some() {
            made("init segment", fmp4::init(p, track).len() as u64);
        }
        made("whole text", plan(delivery::whole(p, track).ok().flatten()));
        let count = track.segment_count();
        for number in [0, 1, 2, count / 2, count, count.saturating_add(1)] {
            segments(p, track, number, &mut made);
        }
    }
    bytes
}

fn segments(p: &Presentation, track: &PresentedTrack, number: u32, made: &mut dyn FnMut(&'static str, u64)) {
    made("fMP4 segment", plan(fmp4::segment(p, track, number)));
    made("I-frame", plan(fmp4::iframe(p, track, number)));
    made("TS segment", plan(transport::segment(p, track, number).ok().flatten()));
    for container in [hls::Container::Fmp4, hls::Container::Ts] {
        made("delivered segment", plan(delivery::segment(p, track, number, container).ok().flatten()));
    }
    let stretch = track.stretch(number).or_else(|| track.muxed_stretch(p, number));
    made("stretch", stretch.map_or(0, |_| 1));
}

/// Bytes that a plan makes, of media that is all zeros.
fn plan(plan: Option<Plan>) -> u64 {
    let mut rewrite = match plan {
        None => return 0,
        Some(Plan::Items(parts)) => {
            let generated = |part: &PlanItem| if let PlanItem::Bytes(bytes) = part { bytes.len() as u64 } else { 0 };
            return parts.iter().map(generated).sum();
        }
        Some(Plan::Rewrite(rewrite)) => rewrite,
    };
    let mut out = Vec::new();
    let _ = (rewrite.len(), rewrite.covering());
    for _ in 0..READS {
        let Some(read) = rewrite.next_read().filter(|read| read.range.len() <= READ) else { break };
        if rewrite.push(&vec![0; read.range.len() as usize], &mut out).is_err() {
            break;
        }
    }
    let _ = rewrite.finish(&mut out);
    out.len() as u64
}
