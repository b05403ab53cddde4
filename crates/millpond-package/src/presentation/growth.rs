//! Presentations of files that only grew: all outputs of the former file can be made from the longer file too.

use crate::presentation::{
    Presentation,
    track::{MediaTrack, PresentedTrack},
};
use millpond_media::movie::Track;

/// Least number of sample sizes by which media are recognised.
const TELLING: u32 = 32;

impl Presentation {
    /// Whether `longer` begins with all samples of this presentation, at the same places of the same objects. Only fragmented
    /// files grow so. Media whose samples have all one size are never recognised: another recording has the same table.
    #[must_use]
    pub fn is_continued_by(&self, longer: &Self) -> bool {
        let mut media = self.tracks.iter().map(PresentedTrack::media);
        let is_told = self.tracks.iter().filter_map(PresentedTrack::media).any(|media| is_telling(media.track()));
        let is_whole = |presentation: &Self| {
            presentation.tracks.iter().filter_map(PresentedTrack::media).all(|media| media.movie.outline.is_none())
        };
        let is_one = self.periods.is_empty() && longer.periods.is_empty() && is_whole(self) && is_whole(longer);
        is_one && is_told && media.all(|media| media.is_some_and(|media| longer.continues(media)))
    }

    fn continues(&self, former: &MediaTrack) -> bool {
        let all = self.tracks.iter().filter_map(PresentedTrack::media);
        let is_fragmented = former.movie.fragmented;
        is_fragmented && all.filter(|now| now.object == former.object).any(|now| begins(now.track(), former.track()))
    }

    /// Bytes of heap of the sample tables, which indexes share.
    #[must_use]
    pub fn table_bytes(&self) -> usize {
        let media = self.tracks.iter().filter_map(PresentedTrack::media);
        media.map(|media| media.track().samples.heap_bytes()).sum()
    }
}

/// Whether the sizes of the first samples tell a recording from another one.
fn is_telling(track: &Track) -> bool {
    let mut sizes = track.samples.range(0..TELLING).map(|sample| sample.range.len());
    let first = sizes.next();
    track.samples.len() >= TELLING && sizes.any(|size| Some(size) != first)
}

/// Whether `now` begins with all samples of `former`. The next sample may change the duration of the last one.
fn begins(now: &Track, former: &Track) -> bool {
    let is_same = now.id == former.id
        && now.kind == former.kind
        && now.timescale == former.timescale
        && now.codec == former.codec
        && now.sample_entry == former.sample_entry
        && now.edits == former.edits
        && now.descriptions == former.descriptions
        && now.protection.is_none()
        && former.protection.is_none();
    let key = |sample: millpond_media::Sample| (sample.range, sample.dts, sample.composition, sample.sync);
    is_same
        && now.samples.len() >= former.samples.len()
        && former.samples.iter().zip(&now.samples).all(|(former, now)| key(former) == key(now))
}

#[cfg(test)]
mod tests {
    use crate::testing::{self, Made, movie, presentation, table};

    fn made(count: usize, is_fragmented: bool, size: impl Fn(usize) -> u32) -> crate::presentation::Presentation {
        let made: Vec<_> = (0..count)
            .map(|i| Made { size: size(i), duration: 512, composition: 0, sync: i.is_multiple_of(25) })
            .collect();
        let mut film = movie(vec![testing::video(table(&made, 48, 0), 12_800, Vec::new())]);
        std::sync::Arc::make_mut(&mut film).fragmented = is_fragmented;
        presentation(vec![film])
    }

    fn of(count: usize, size: impl Fn(usize) -> u32) -> crate::presentation::Presentation {
        made(count, true, size)
    }

    #[test]
    fn a_file_that_grew_continues_the_former() {
        let size = |i: usize| 1000 + (i as u32 * 7919) % 313;
        let former = of(100, size);
        assert!(former.is_continued_by(&of(150, size)));
        assert!(former.is_continued_by(&former));
        assert!(!of(150, size).is_continued_by(&former), "it shrank");
        assert!(!former.is_continued_by(&of(150, |i| size(i) + u32::from(i == 60))), "another recording");
        assert!(!of(100, |_| 1000).is_continued_by(&of(150, |_| 1000)), "any recording has this table");
        assert!(!made(100, false, size).is_continued_by(&made(150, false, size)), "other files are written at once");
    }
}
