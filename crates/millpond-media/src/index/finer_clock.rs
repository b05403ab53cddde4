//! A finer clock for tracks whose own has too few ticks for the pictures that an edit hides.
//!
//! Hidden pictures are presented below the second picture shown, each at a time of its own. A clock of 600 Hz has ten
//! ticks for them at 30 pictures a second, and a group often has more pictures.

use crate::{
    codec::TrackKind,
    error::MediaError,
    movie::{
        Movie, Track,
        edits::{Hidden, spans},
        sample_table::SampleTable,
    },
    units::Timescale,
    work::Work,
};

/// Most ticks a second of a finer clock.
const FINEST: u32 = 1_000_000_000;

/// Gives such tracks of `movie` a multiple of their clock: at least 90 kHz, which all outputs can express. Tracks whose
/// times would not fit in 32 bits keep theirs.
pub(crate) fn refine(movie: &mut Movie, work: &Work) -> Result<(), MediaError> {
    for track in movie.tracks.iter_mut().chain(&mut movie.clips) {
        if track.edits.is_empty() || !matches!(track.kind, TrackKind::Video { .. }) {
            continue;
        }
        let steps = u64::from(track.samples.len()).saturating_add(64 * track.edits.len() as u64);
        work.spend(steps.saturating_mul(2)).map_err(|error| MediaError::work("trak/edts/elst", 0, error))?;
        let Some(needed) = needed(track, movie.timescale) else { continue };
        work.spend(steps.saturating_mul(2)).map_err(|error| MediaError::work("trak/edts/elst", 0, error))?;
        let usual = i64::from(Timescale::MPEG.get().div_ceil(track.timescale.get()));
        let most = most(track);
        if needed <= most {
            multiply(track, needed.max(usual).min(most));
        }
    }
    Ok(())
}

/// Returns the least factor with which the hidden pictures of all edits fit. `None` if they fit already, or edits hide more
/// pictures than the track has.
fn needed(track: &Track, movie: Timescale) -> Option<i64> {
    let mut needed = None;
    let mut left = i64::from(track.samples.len());
    for span in spans(track, movie) {
        let hidden = Hidden::of(&track.samples, &span);
        if !hidden.fits() {
            needed = needed.max(hidden.factor());
        }
        left = left.checked_sub(hidden.count).filter(|left| *left >= 0)?;
    }
    needed
}

/// Returns the largest factor that the fields of durations and offsets allow.
fn most(track: &Track) -> i64 {
    let table = &track.samples;
    let (least, greatest) = table.composition_bounds();
    let offset = i64::from(least).abs().max(i64::from(greatest).abs());
    let nexts = table.iter().skip(1).map(|sample| sample.dts).chain([table.end_dts()]);
    let longest = table.iter().zip(nexts).map(|(sample, next)| next.saturating_sub(sample.dts)).max().unwrap_or(0);
    let by_fields = i64::from(i32::MAX) / longest.max(offset).max(1);
    by_fields.min(i64::from(FINEST / track.timescale.get()))
}

/// Multiplies the clock of a track by `factor`, which fits.
fn multiply(track: &mut Track, factor: i64) {
    let ticks = i64::from(track.timescale.get()).saturating_mul(factor);
    let Some(timescale) = u32::try_from(ticks).ok().and_then(Timescale::new) else { return };
    track.timescale = timescale;
    for edit in &mut track.edits {
        edit.media_time = edit.media_time.map(|time| time.saturating_mul(factor));
    }
    track.samples = multiplied(&track.samples, factor);
}

fn multiplied(table: &SampleTable, factor: i64) -> SampleTable {
    let mut builder = SampleTable::builder();
    builder.set_start_dts(table.start_dts().saturating_mul(factor));
    for sample in table {
        let size = u32::try_from(sample.range.len()).unwrap_or(u32::MAX);
        let duration = i64::from(sample.duration).saturating_mul(factor);
        let composition = i64::from(sample.composition).saturating_mul(factor);
        builder.push(
            sample.range.start,
            size,
            u32::try_from(duration).unwrap_or(u32::MAX),
            i32::try_from(composition).unwrap_or(0),
            sample.sync,
        );
    }
    builder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        fixture::{AAC, AVC, movie, track},
        movie::Edit,
    };

    /// Groups of 30 pictures I P B of 20 ticks at 600 a second.
    fn film(edits: &[(u64, i64)]) -> Movie {
        let mut table = SampleTable::builder();
        table.set_start_dts(40);
        for i in 0..300_u32 {
            let composition = [20, 40, 0][i as usize % 3];
            table.push(100 + u64::from(i) * 10, 10, 20, composition, i.is_multiple_of(30));
        }
        let edits =
            edits.iter().map(|(duration, time)| Edit { duration: *duration, media_time: Some(*time) }).collect();
        let mut film = movie(vec![track(1, AVC, edits, table.finish())]);
        film.tracks[0].timescale = Timescale::new(600).unwrap();
        film
    }

    fn refined(mut film: Movie) -> Track {
        refine(&mut film, &Work::unlimited()).unwrap();
        film.tracks.remove(0)
    }

    #[test]
    fn a_coarse_clock_becomes_finer_where_an_edit_hides_many_pictures() {
        for edits in [&[(0, 60 + 20 * 25)][..], &[(2000, 60), (0, 60 + 20 * 55)]] {
            let film = film(edits);
            let old = film.tracks[0].clone();
            let new = refined(film);
            assert_eq!(new.timescale, Timescale::MPEG);
            assert_eq!(new.samples.len(), old.samples.len());
            for (a, b) in old.samples.iter().zip(&new.samples) {
                assert_eq!((a.range, a.sync, a.dts * 150, a.pts() * 150), (b.range, b.sync, b.dts, b.pts()));
                assert_eq!(a.duration * 150, b.duration);
            }
            assert_eq!(old.samples.end_dts() * 150, new.samples.end_dts());
            let times = |track: &Track| track.edits.iter().map(|e| e.media_time.unwrap()).collect::<Vec<_>>();
            assert_eq!(times(&old).iter().map(|time| time * 150).collect::<Vec<_>>(), times(&new));
            let spans = spans(&new, Timescale::MILLIS);
            assert!(spans.iter().all(|span| Hidden::of(&new.samples, span).fits()));
        }
    }

    #[test]
    fn other_tracks_keep_their_clock() {
        for edits in [&[][..], &[(0, 60)], &[(0, 60 + 20 * 5)]] {
            let film = film(edits);
            let old = film.tracks[0].clone();
            assert_eq!(refined(film), old);
        }
        let mut sound = film(&[(0, 60 + 20 * 25)]);
        let table = sound.tracks[0].samples.clone();
        let edits = sound.tracks[0].edits.clone();
        sound.tracks[0] = track(2, AAC, edits, table);
        let old = sound.tracks[0].clone();
        assert_eq!(refined(sound), old);
    }

    #[test]
    fn times_that_would_not_fit_keep_the_clock() {
        let mut table = SampleTable::builder();
        for i in 0..40_u64 {
            table.push(i * 10, 10, if i == 39 { u32::MAX } else { 20 }, 0, i == 0);
        }
        let mut film = film(&[(0, 20 * 25)]);
        film.tracks[0].samples = table.finish();
        let old = film.tracks[0].clone();
        assert_eq!(refined(film), old);
    }
}
