//! The decision what is put on the air. It reads no clock.
#![cfg_attr(not(test), forbid(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

use std::time::Duration;

/// Time for which what is due may be late before the filler plays.
const LATE: Duration = Duration::from_millis(300);
/// The same at the start, when nothing plays yet.
const START: Duration = Duration::from_secs(3);

/// The source that the stream of a schedule plays, compared to the part of the timetable that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnAir {
    /// Nothing since the start.
    Nothing,
    /// Something that is over, broke off, or is not due.
    Other,
    /// The filler, in place of the part that is due.
    Filler,
    /// The part that is due.
    Due,
}

/// The source that the stream plays next: the part that is due, or the filler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Take {
    Due,
    Filler,
}

/// Whether the part that is due is late enough for the filler to play in its place. `late` is the time since the part was due, or since
/// its frames stopped.
pub(super) fn is_late(on_air: OnAir, late: Duration) -> bool {
    late >= if on_air == OnAir::Nothing { START } else { LATE }
}

/// Returns what is to be put on the air; `None` where all stays. `is_there` tells whether what is due can play.
pub(super) fn choose(on_air: OnAir, is_there: bool, late: Duration) -> Option<Take> {
    match on_air {
        OnAir::Due if is_there => None,
        OnAir::Nothing | OnAir::Other | OnAir::Filler if is_there => Some(Take::Due),
        OnAir::Filler => None,
        OnAir::Nothing | OnAir::Other | OnAir::Due => is_late(on_air, late).then_some(Take::Filler),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filler_plays_when_what_is_due_is_late() {
        let ms = Duration::from_millis;
        for (on_air, is_there, late, expected) in [
            (OnAir::Nothing, true, 0, Some(Take::Due)),
            (OnAir::Nothing, false, 2900, None),
            (OnAir::Nothing, false, 3000, Some(Take::Filler)),
            (OnAir::Other, true, 0, Some(Take::Due)),
            (OnAir::Other, false, 200, None),
            (OnAir::Other, false, 300, Some(Take::Filler)),
            (OnAir::Filler, false, 9000, None),
            (OnAir::Filler, true, 9000, Some(Take::Due)),
            // A stream that stops.
            (OnAir::Due, true, 0, None),
            (OnAir::Due, false, 300, Some(Take::Filler)),
        ] {
            assert_eq!(choose(on_air, is_there, ms(late)), expected, "{on_air:?} {is_there} {late}");
        }
    }
}
