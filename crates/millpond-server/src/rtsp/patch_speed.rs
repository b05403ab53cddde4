//! The speed of a patch: the part of a title that a viewer is sent before it has joined a phase.

/// Speed at which a viewer by TCP catches up with a phase. TCP slows the sender down where the viewer takes less.
const PATCH_SPEED: f64 = 2.0;

/// Returns the speed at which a viewer catches up with a phase: the speed that was asked for. Viewers by UDP can't slow the sender
/// down, so they get a higher one only if they ask.
pub(super) fn patch_speed(asked: f64, is_interleaved: bool) -> f64 {
    if is_interleaved && asked == 1.0 { PATCH_SPEED } else { asked }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn viewers_by_udp_get_a_higher_speed_only_if_they_ask() {
        assert_eq!([patch_speed(1.0, true), patch_speed(4.0, true)], [PATCH_SPEED, 4.0]);
        assert_eq!([patch_speed(1.0, false), patch_speed(1.5, false)], [1.0, 1.5]);
    }
}
