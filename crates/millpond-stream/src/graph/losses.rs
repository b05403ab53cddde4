//! Lost frames of each track of a branch, and the frames that need them.

use crate::Frame;

/// No layer: all of them can be decoded.
const NONE: u8 = u8::MAX;

/// Tracks of a branch that lost frames, until they can be decoded again.
#[derive(Debug, Default)]
pub(super) struct Losses(Vec<Loss>);

#[derive(Clone, Copy, Debug)]
struct Loss {
    track: u16,
    /// Lowest temporal layer that can't be decoded.
    layer: u8,
    /// Presentation time of the key frame after a loss: pictures behind it that are shown before it refer to what was lost.
    leading: Option<i64>,
}

impl Losses {
    /// Whether everything can be decoded.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes note of the next frame of its track. Returns whether it can be decoded.
    pub(super) fn admits(&mut self, frame: &Frame) -> bool {
        let Some(at) = self.0.iter().position(|loss| loss.track == frame.track) else { return true };
        let loss = &mut self.0[at];
        let admits = loss.admits(frame);
        if loss.layer == NONE && loss.leading.is_none() {
            self.0.swap_remove(at);
        }
        admits
    }

    /// Takes note of a frame that is dropped after all before it.
    pub(super) fn lose(&mut self, frame: &Frame) {
        let importance = frame.importance;
        if importance.is_picture && importance.needed_by != NONE {
            let loss = self.of(frame.track);
            loss.layer = loss.layer.min(importance.needed_by);
        }
    }

    /// Takes note of a frame of the group before the key frame that is shown at `key`: pictures that follow the key frame, but
    /// are shown before it, may refer to it.
    pub(super) fn lose_before(&mut self, frame: &Frame, key: i64) {
        if frame.importance.needed_by == 0 {
            self.of(frame.track).leading = Some(key);
        }
    }

    fn of(&mut self, track: u16) -> &mut Loss {
        let at = self.0.iter().position(|loss| loss.track == track).unwrap_or_else(|| {
            self.0.push(Loss { track, layer: NONE, leading: None });
            self.0.len() - 1
        });
        &mut self.0[at]
    }
}

impl Loss {
    fn admits(&mut self, frame: &Frame) -> bool {
        let importance = frame.importance;
        if !importance.is_picture {
            return true;
        }
        if frame.is_sync {
            if self.layer == 0 {
                self.leading = Some(frame.pts);
            }
            self.layer = NONE;
            return true;
        }
        if self.leading.is_some_and(|key| frame.pts < key) {
            return false;
        }
        // Leading pictures come first (H.265 8.3.1; encoders of H.264 do the same).
        self.leading = None;
        if importance.resumes <= self.layer {
            self.layer = NONE;
        }
        importance.layer < self.layer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use millpond_media::Importance;
    use std::time::Duration;

    fn frame(pts: i64, importance: Importance) -> Frame {
        let (due, data) = (Duration::ZERO, Bytes::new());
        Frame { track: 0, number: 0, due, pts, epoch: 0, is_sync: false, importance, data }
    }

    fn key(pts: i64) -> Frame {
        Frame { is_sync: true, ..frame(pts, Importance::BASE) }
    }

    #[test]
    fn a_group_without_a_picture_of_the_base_layer_is_lost_up_to_its_end() {
        let mut losses = Losses::default();
        losses.lose(&frame(1, Importance::DISPOSABLE));
        assert!(losses.is_empty());
        losses.lose(&frame(2, Importance::BASE));
        assert!(!losses.admits(&frame(3, Importance::BASE)) && !losses.admits(&frame(3, Importance::DISPOSABLE)));
        assert!(losses.admits(&frame(3, Importance::SOUND)));
        assert!(losses.admits(&Frame { track: 1, ..frame(3, Importance::BASE) }), "another track");
        assert!(losses.admits(&key(9)));
        assert!(!losses.admits(&frame(8, Importance::DISPOSABLE)), "it leads, and refers to the lost group");
        assert!(losses.admits(&frame(12, Importance::BASE)) && losses.is_empty());
        assert!(losses.admits(&frame(11, Importance::BASE)));
    }

    #[test]
    fn layers_are_lost_up_to_a_picture_that_refers_to_none_of_them() {
        let mut losses = Losses::default();
        losses.lose(&frame(1, Importance::of_layer(2)));
        let admits = [0, 1, 2, 3].map(|layer| losses.admits(&frame(2, Importance::of_layer(layer))));
        assert_eq!(admits, [true, true, false, false]);
        losses.lose(&frame(1, Importance::of_layer(1)));
        let switch = |layer| frame(2, Importance { resumes: layer, ..Importance::of_layer(layer) });
        assert!(!losses.admits(&switch(2)), "layer 1 is missing");
        assert!(losses.admits(&switch(1)) && losses.is_empty());
        losses.lose(&frame(1, Importance::of_layer(1)));
        assert!(losses.admits(&key(4)) && losses.is_empty(), "the base layer was whole: nothing leads");
    }

    #[test]
    fn pictures_that_lead_a_key_frame_need_the_group_before_it() {
        let mut losses = Losses::default();
        losses.lose_before(&frame(1, Importance::DISPOSABLE), 9);
        assert!(losses.is_empty());
        losses.lose_before(&frame(1, Importance::BASE), 9);
        assert!(!losses.admits(&frame(8, Importance::DISPOSABLE)));
        assert!(losses.admits(&frame(10, Importance::BASE)) && losses.is_empty());
    }
}
