//! Replay protection (RFC 3711 3.3.2).

use super::SrtpError;

/// Length of the replay window: number of indexes up to the highest.
const WINDOW: u64 = u64::BITS as u64;

/// The highest index, and a bit for each of the 64 indexes up to it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window {
    highest: Option<u64>,
    came: u64,
}

impl Window {
    pub(super) fn highest(&self) -> Option<u64> {
        self.highest
    }

    /// Checks that a packet is new, before its tag is checked.
    pub(super) fn check(&self, index: u64) -> Result<(), SrtpError> {
        let Some(behind) = self.highest.and_then(|highest| highest.checked_sub(index)) else { return Ok(()) };
        let is_new = behind < WINDOW && self.came >> behind & 1 == 0;
        if is_new { Ok(()) } else { Err(SrtpError::Replayed { index }) }
    }

    /// Marks the index of an authentic packet as received.
    pub(super) fn take(&mut self, index: u64) {
        let highest = self.highest.unwrap_or(index);
        if let Some(behind) = highest.checked_sub(index) {
            self.highest = Some(highest);
            if behind < WINDOW {
                self.came |= 1 << behind;
            }
        } else {
            let ahead = u32::try_from(index - highest).unwrap_or(u32::MAX);
            self.highest = Some(index);
            self.came = self.came.checked_shl(ahead).unwrap_or(0) | 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn nothing_is_new_twice_and_what_is_near_is_new_once(jumps in prop::collection::vec(-80_i64..80, 1..300)) {
            let (mut window, mut came, mut at) = (Window::default(), BTreeSet::new(), 1_000_000_i64);
            for jump in jumps {
                at += jump;
                let index = at as u64;
                let near = came.last().is_none_or(|highest| index + WINDOW > *highest);
                prop_assert_eq!(window.check(index).is_ok(), near && !came.contains(&index), "{}", index);
                if window.check(index).is_ok() {
                    window.take(index);
                    came.insert(index);
                }
            }
        }
    }

    #[test]
    fn far_jumps_forget_the_past() {
        let mut window = Window::default();
        window.take(0);
        window.take(1 << 47);
        assert_eq!(window.check(0), Err(SrtpError::Replayed { index: 0 }));
        assert_eq!(window.check((1 << 47) - 1), Ok(()));
        assert_eq!(window.highest(), Some(1 << 47));
    }
}
