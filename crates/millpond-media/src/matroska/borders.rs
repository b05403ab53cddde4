//! The assignment of sound to fragments.
//!
//! Fragments end where the file has a key frame. Sound of the same time lies near this place. But pictures may pause: a muxer that
//! orders frames by their decoding times then writes the next key frame before the sound of the pause. So sound is divided at the
//! place of the key frame, if sound there begins within the tolerance of the stated time. Otherwise the time of each block decides.
//! The fragments on both sides of a border decide alike, each by the blocks that it reads.

/// The borders of the sound of consecutive fragments, and times of the blocks found. Times are in ticks of the track.
#[derive(Debug)]
pub(super) struct Borders {
    /// Stated beginning; `None` at the beginning of the file.
    start: Option<i64>,
    /// Stated end; `None` at the end of the file.
    end: Option<i64>,
    tolerance: i64,
    /// Times of the first and the latest block within the fragments.
    own: Option<(i64, i64)>,
    /// Times of the first and the latest block of the earlier fragment that is being read.
    earlier: Option<(i64, i64)>,
    /// Whether an earlier fragment has sound that is presented in these fragments.
    is_ahead: bool,
    /// Whether the first sound of these fragments was found.
    has_beginning: bool,
    /// Whether a later fragment was read.
    is_behind: bool,
    /// Whether the last sound of these fragments was found.
    has_end: bool,
}

/// The fragments to which a block belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    These,
    /// The next fragments, unless [`Borders::keeps_late`].
    Late,
    Others,
}

impl Borders {
    pub(super) fn new(start: Option<i64>, end: Option<i64>, tolerance: i64) -> Self {
        let (own, earlier) = (None, None);
        let (is_ahead, has_beginning, is_behind, has_end) = (false, false, false, false);
        Self { start, end, tolerance, own, earlier, is_ahead, has_beginning, is_behind, has_end }
    }

    /// Notes a block within the fragments.
    pub(super) fn own(&mut self, time: i64) -> Side {
        let (first, latest) = extended(self.own, time);
        self.own = Some((first, latest));
        let is_early = |start: i64| first < start.saturating_sub(self.tolerance) && time < start;
        match self.end {
            _ if self.start.is_some_and(is_early) => Side::Others,
            Some(end) if time >= end && latest > end.saturating_add(self.tolerance) => Side::Others,
            Some(end) if time >= end => Side::Late,
            _ => Side::These,
        }
    }

    /// Whether late blocks belong to these fragments, once all blocks of the fragments were noted.
    pub(super) fn keeps_late(&self) -> bool {
        self.end.zip(self.own).is_none_or(|(end, (_, latest))| latest <= end.saturating_add(self.tolerance))
    }

    /// Whether the first blocks may lie in earlier fragments.
    pub(super) fn lacks_beginning(&self) -> bool {
        let is_late = |start: i64| self.own.is_none_or(|(first, _)| first > start.saturating_add(self.tolerance));
        !self.has_beginning && self.start.is_some_and(is_late)
    }

    /// Notes a block of an earlier fragment. Returns whether the block belongs to these fragments, provided that
    /// [`end_earlier`](Self::end_earlier) returns true.
    pub(super) fn earlier(&mut self, time: i64) -> bool {
        self.earlier = Some(extended(self.earlier, time));
        self.start.is_some_and(|start| time >= start) && self.end.is_none_or(|end| time < end)
    }

    /// Ends an earlier fragment. Returns whether some of its blocks belong to these fragments.
    pub(super) fn end_earlier(&mut self) -> bool {
        let (Some((first, latest)), Some(start)) = (self.earlier.take(), self.start) else { return false };
        self.is_ahead |= latest > start.saturating_add(self.tolerance);
        self.has_beginning = !self.is_ahead || first < start;
        self.is_ahead
    }

    /// Whether the last blocks may lie in later fragments.
    pub(super) fn lacks_end(&self) -> bool {
        let is_short = |end: i64| self.own.is_none_or(|(_, latest)| latest < end.saturating_sub(self.tolerance));
        !self.has_end && self.end.is_some_and(is_short)
    }

    /// Notes a block of a later fragment. Returns whether the block belongs to these fragments.
    pub(super) fn later(&mut self, time: i64) -> bool {
        let Some(end) = self.end else { return false };
        let is_within = time < if self.is_behind { end } else { end.saturating_sub(self.tolerance) };
        self.is_behind = true;
        self.has_end |= !is_within;
        !self.has_end && self.start.is_none_or(|start| time >= start)
    }
}

/// Returns the times of the first and the latest block, with a further block at `time`.
fn extended(times: Option<(i64, i64)>, time: i64) -> (i64, i64) {
    times.map_or((time, time), |(first, latest)| (first, latest.max(time)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOLERANCE: i64 = 500;

    /// Assigns the times of blocks to fragments. Each fragment decides alone. Stated times are in `borders`.
    fn divided(fragments: &[&[i64]], borders: &[i64]) -> Vec<Vec<i64>> {
        let of = |place: usize| {
            let start = place.checked_sub(1).map(|before| borders[before]);
            let mut found = Borders::new(start, borders.get(place).copied(), TOLERANCE);
            let (mut taken, mut late) = (Vec::new(), Vec::new());
            for time in fragments[place] {
                match found.own(*time) {
                    Side::These => taken.push(*time),
                    Side::Late => late.push(*time),
                    Side::Others => {}
                }
            }
            if found.keeps_late() {
                taken.append(&mut late);
            }
            for before in fragments[..place].iter().rev() {
                if !found.lacks_beginning() {
                    break;
                }
                let ahead: Vec<i64> = before.iter().copied().filter(|time| found.earlier(*time)).collect();
                if found.end_earlier() {
                    taken.splice(..0, ahead);
                }
            }
            for time in fragments[place + 1..].concat() {
                if found.lacks_end() && found.later(time) {
                    taken.push(time);
                }
            }
            taken
        };
        (0..fragments.len()).map(of).collect()
    }

    #[test]
    fn borders_stay_where_the_file_has_them() {
        let fragments: [&[i64]; 3] = [&[0, 400, 900], &[1300, 1900], &[2000, 2600]];
        assert_eq!(divided(&fragments, &[1000, 2000]), fragments);
        assert_eq!(divided(&fragments, &[1100, 2300]), fragments, "within the tolerance");
        assert_eq!(divided(&fragments, &[850, 1850]), fragments, "within the tolerance");
    }

    #[test]
    fn sound_behind_a_key_frame_is_presented_before_it() {
        let fragments: [&[i64]; 3] = [&[0, 900], &[1800, 2700, 3600, 4500], &[5400, 6300]];
        assert_eq!(divided(&fragments, &[4000, 5400]), [&[0, 900, 1800, 2700, 3600][..], &[4500], &[5400, 6300]]);
        let none: [&[i64]; 3] = [&[0, 900], &[], &[1800, 2700, 3600, 4500, 5400, 6300]];
        assert_eq!(divided(&none, &[4000, 5400]), [&[0, 900, 1800, 2700, 3600][..], &[4500], &[5400, 6300]]);
    }

    #[test]
    fn sound_before_a_key_frame_is_presented_behind_it() {
        let fragments: [&[i64]; 3] = [&[0, 900, 1800, 2700], &[3600, 4500], &[5400]];
        assert_eq!(divided(&fragments, &[1000, 5000]), [&[0, 900][..], &[1800, 2700, 3600, 4500], &[5400]]);
    }

    #[test]
    fn sound_may_pause_at_a_border() {
        let fragments: [&[i64]; 4] = [&[0, 900], &[], &[], &[9000, 9900]];
        assert_eq!(divided(&fragments, &[2000, 4000, 6000]), fragments);
        let begins_late: [&[i64]; 2] = [&[0, 900], &[3900, 4800]];
        assert_eq!(divided(&begins_late, &[1000]), begins_late);
        let ends_early: [&[i64]; 2] = [&[0, 900], &[2000, 2900]];
        assert_eq!(divided(&ends_early, &[2000]), ends_early);
    }
}
