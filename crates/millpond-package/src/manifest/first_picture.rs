//! Where players start an asset whose first picture needs pictures before it.
//!
//! Preroll is presented within the first instant ([`crate::timeline`]). A player that starts at time 0 shows the first of
//! it until playback runs. One that starts while the first picture of the edit is shown decodes the preroll unseen.

use crate::{
    presentation::{Presentation, track::PresentedTrack},
    writing::digits,
};

/// Returns the last moment at which the first picture is shown, in millionths of a second. Players estimate how long
/// preroll is shown, at most for the duration of a picture. `None` where no picture of time 0 needs others.
pub(crate) fn micros(presentation: &Presentation) -> Option<u64> {
    presentation.tracks.iter().filter(|track| !track.is_alternative()).filter_map(of_track).max()
}

fn of_track(track: &PresentedTrack) -> Option<u64> {
    let media = track.media()?;
    let squeezed = media.timeline.squeezed().next().filter(|squeezed| squeezed.window.0 == 0)?;
    let second = digits::micros(squeezed.second, media.track().timescale.get());
    second.checked_sub(EARLIER).filter(|micros| *micros > 0)
}

/// Millionths of a second before the second picture: players round times to a thousandth. With two thousandths Chromium
/// shows the last hidden picture.
const EARLIER: u64 = 1_000;
