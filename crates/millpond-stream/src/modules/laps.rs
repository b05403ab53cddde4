//! A stored title that plays round and round.

use super::{Loader, loader};
use crate::{
    Frame, Run,
    graph::{Inputs, Module, ModuleError, Output},
    resources::Resources,
    stored::StoredMedia,
};
use futures_util::future::BoxFuture;
use millpond_package::{MediaKind, PresentedTrack};
use std::{sync::Arc, time::Duration};

/// Factor by which times before a lap's beginning move closer to it: at those nothing shows, and they must not go back behind
/// what was shown.
const SQUEEZE: i64 = 512;

/// Gives the frames of a stored title without an end. Times and numbers go on from lap to lap.
pub(crate) struct Laps {
    media: Arc<StoredMedia>,
    tracks: Arc<[u16]>,
    resources: Resources,
}

impl Laps {
    pub(crate) fn new(media: Arc<StoredMedia>, tracks: Arc<[u16]>, resources: &Resources) -> Self {
        Self { media, tracks, resources: resources.clone() }
    }

    fn loader(&self) -> Loader {
        let cursors = (self.tracks.clone(), vec![0; self.tracks.len()]);
        Loader::new(&self.resources, self.media.clone(), cursors, (Duration::ZERO, Duration::MAX), None)
    }
}

impl Module for Laps {
    fn kind(&self) -> &'static str {
        // It is a loader that begins again.
        loader::KIND.name
    }

    fn run(self: Box<Self>, _: Inputs, output: Output) -> BoxFuture<'static, Result<(), ModuleError>> {
        Box::pin(async move {
            for number in 0.. {
                let lap = Lap::new(&self.media, number);
                let given = self.loader().load(&output, &|run| lap.shift(run)).await?;
                if given.is_none_or(|given| given == 0) {
                    break;
                }
            }
            Ok(())
        })
    }
}

/// One time through: the differences of its frames to those of the title.
struct Lap {
    number: u32,
    begin: Duration,
    /// By track of the presentation.
    shifts: Vec<Shift>,
}

struct Shift {
    pts: i64,
    number: u32,
    kind: MediaKind,
}

impl Lap {
    fn new(media: &StoredMedia, number: u32) -> Self {
        let length = media.duration();
        let shift = |track: &PresentedTrack| {
            let timescale = track.source_track().map_or(1, |source| source.timescale.get());
            let pts = (length * f64::from(number) * f64::from(timescale)).round() as i64;
            Shift { pts, number: number.wrapping_mul(track.sample_count()), kind: track.kind() }
        };
        let shifts = media.presentation().tracks().iter().map(shift).collect();
        let begin = Duration::try_from_secs_f64(length * f64::from(number)).unwrap_or(Duration::MAX);
        Self { number, begin, shifts }
    }

    /// The frames of a block as they are in this lap.
    fn shift(&self, run: &Run) -> Run {
        if self.number == 0 {
            return run.clone();
        }
        let each = run.iter().filter_map(|frame| {
            let shift = self.shifts.get(usize::from(frame.track))?;
            // The decoder of sound was primed in the first lap.
            let primes = shift.kind == MediaKind::Audio && frame.pts < 0;
            (!primes).then(|| Frame {
                number: frame.number.wrapping_add(shift.number),
                due: self.begin + frame.due,
                pts: shift.pts + if frame.pts < 0 { frame.pts / SQUEEZE } else { frame.pts },
                ..frame.clone()
            })
        });
        each.collect()
    }
}
