//! Decode times from presentation times.

/// Frames after which a depth that none of them needed is given up.
const BLOCK: u32 = 4096;

/// Greatest reorder depth of H.264 and HEVC: the size of the decoded picture buffer (H.264 A.3.1, H.265 A.4.2).
const MOST: usize = 16;

/// Gives the frames of one track decode times that rise, without delay.
///
/// With reorder depth N, the decode time of a frame is the N-th presentation time below the greatest one so far. This is the time
/// at which the picture leaves a buffer of N pictures. The parameter sets state the depth. It grows when frames prove it too
/// small. Decode times after such a proof rise by single ticks, and some lie above the presentation time (`trun` version 1 has
/// negative offsets, ISO/IEC 14496-12 8.8.8).
#[derive(Clone, Debug)]
pub struct DecodeTimes {
    stated: usize,
    proved: Proved,
    /// Assumed distance between frames in ticks, before frames tell.
    interval: i64,
    /// The greatest presentation times, rising; at most one more than the greatest depth.
    greatest: Vec<i64>,
    last: Option<i64>,
}

impl DecodeTimes {
    /// Creates the decode times of a track. `depth` is the stated reorder depth; it is 0 for sound, and when it is unknown.
    /// `interval` is the usual distance between frames, in ticks of the track. Only the first `depth` frames need it.
    #[must_use]
    pub fn new(depth: u8, interval: i64) -> Self {
        Self {
            stated: usize::from(depth).min(MOST),
            proved: Proved::default(),
            interval: interval.max(1),
            greatest: Vec::with_capacity(MOST + 2),
            last: None,
        }
    }

    /// Returns the decode time of the next frame in decode order, in ticks of the track. `pts` is its presentation time.
    pub fn push(&mut self, pts: i64) -> i64 {
        let place = self.greatest.partition_point(|other| *other <= pts);
        self.proved.take(self.greatest.len() - place);
        self.greatest.insert(place, pts);
        if self.greatest.len() > MOST + 1 {
            self.greatest.remove(0);
        }
        let first = self.greatest.len().checked_sub(self.present() + 1);
        let dts = match first {
            Some(first) => self.greatest[first],
            None => self.before_first(),
        };
        let dts = self.last.map_or(dts, |last| dts.max(last.saturating_add(1)));
        self.last = Some(dts);
        dts
    }

    /// Continues with frames of another sequence, such as after a jump of presentation times. Decode times go on rising.
    pub fn restart(&mut self) {
        self.greatest.clear();
    }

    /// The reorder depth, stated or proved.
    #[must_use]
    pub fn depth(&self) -> u8 {
        self.present() as u8
    }

    fn present(&self) -> usize {
        self.proved.depth().max(self.stated)
    }

    /// Decode time of one of the first frames, for which no presentation time is far enough below the greatest.
    fn before_first(&self) -> i64 {
        let missing = (self.present() + 1 - self.greatest.len()) as i64;
        self.greatest[0].saturating_sub(self.interval.saturating_mul(missing))
    }
}

/// The depth that frames of late have proved, at most [`MOST`].
#[derive(Clone, Debug, Default)]
struct Proved {
    depth: usize,
    before: usize,
    frames: u32,
}

impl Proved {
    /// Takes a frame that is presented before `depth` earlier ones.
    fn take(&mut self, depth: usize) {
        self.depth = self.depth.max(depth.min(MOST));
        self.frames += 1;
        if self.frames == BLOCK {
            self.before = std::mem::take(&mut self.depth);
            self.frames = 0;
        }
    }

    fn depth(&self) -> usize {
        self.depth.max(self.before)
    }
}

#[cfg(test)]
mod tests;
