use crate::{
    FragmentLoader, Indexer, LoadStep, MediaError, Movie, Sample, Step, Work,
    fixture::{AAC, AVC, bx, fields, mvhd, trak, words},
    index_bytes,
};
use bytes::Bytes;
use proptest::prelude::*;
use std::sync::Arc;

/// Samples of a fragment: a second.
const SAMPLES: u32 = 25;
/// Ticks of a sample, of 1000 in a second.
const TICKS: u32 = 40;
const SYNC: u32 = 0x0200_0000;
const OTHER: u32 = 0x0101_0000;
/// Starts with a stream access point of type 1.
const ACCESS: u32 = 0x9000_0000;

/// Index of fragments of a file.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Named {
    Nowhere,
    /// A `sidx` for each track.
    Sidx,
    /// A `sidx` for the pictures only.
    OneSidx,
    /// A `sidx` that refers to others, each for two fragments.
    Levels,
    Mfra,
}

/// A fault of an index of fragments, or of its fragments.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// The third fragment is stated a byte too long, the fourth a byte too short.
    Size,
    /// The third fragment is stated 20 ms too long, the fourth too short.
    Time,
    /// All fragments are stated 3 ms too long.
    Drift,
    /// The fourth fragment begins with a picture that needs others, without its flag.
    NoEntry,
    /// As `NoEntry`, with the flag of a key frame.
    FalseFlag,
    /// The last fragment is missing.
    Truncated,
}

struct Film {
    count: u32,
    named: Named,
    fault: Fault,
    /// Whether the movie box has the samples of the first fragment.
    has_samples: bool,
    edit: Option<u32>,
}

impl Film {
    fn new(named: Named) -> Self {
        Self { count: 9, named, fault: Fault::None, has_samples: false, edit: None }
    }

    fn sizes(fragment: u32, track: u32) -> Vec<u32> {
        (0..SAMPLES).map(|i| 20 + (fragment * 31 + track * 17 + i * 7) % 50).collect()
    }

    /// Returns the samples of a fragment: NAL units of a key frame and of others.
    fn media(&self, fragment: u32, track: u32) -> Vec<u8> {
        let mut media = Vec::new();
        for (place, size) in Self::sizes(fragment, track).into_iter().enumerate() {
            let is_key = place == 0 && !(fragment == 3 && matches!(self.fault, Fault::NoEntry | Fault::FalseFlag));
            media.extend((size - 4).to_be_bytes());
            media.push(if is_key { 0x65 } else { 0x41 });
            media.resize(media.len() + size as usize - 5, fragment as u8);
        }
        media
    }

    fn fragment(&self, number: u32) -> Vec<u8> {
        let (video, audio) = (self.media(number, 1), self.media(number, 2));
        let moof = |offset: u32| {
            let traf = |track: u32, offset: u32| {
                let first = if track == 1 && number == 3 && self.fault == Fault::NoEntry { OTHER } else { SYNC };
                let mut run = words(&[0x205, SAMPLES, offset, first]);
                run.extend(words(&Self::sizes(number, track)));
                let tfhd = fields(b"tfhd", &[0x2_0000, track]);
                bx(b"traf", &[&tfhd, &fields(b"tfdt", &[0, number * SAMPLES * TICKS]), &bx(b"trun", &[&run])])
            };
            let trafs = [traf(1, offset), traf(2, offset + video.len() as u32)].concat();
            bx(b"moof", &[&fields(b"mfhd", &[0, number + 1]), &trafs])
        };
        let head = moof(0).len() as u32 + 8;
        [moof(head), bx(b"mdat", &[&video, &audio])].concat()
    }

    fn moov(&self, media: u32) -> Vec<u8> {
        let tables = |track: u32| {
            let sizes = Self::sizes(0, track);
            let before: u32 = if track == 2 { Self::sizes(0, 1).iter().sum() } else { 0 };
            let stsz: Vec<u32> = [0, 0, SAMPLES].into_iter().chain(sizes).collect();
            vec![
                fields(b"stts", &[0, 1, SAMPLES, TICKS]),
                fields(b"stsz", &stsz),
                fields(b"stsc", &[0, 1, 1, SAMPLES, 1]),
                fields(b"stco", &[0, 1, media + before]),
                fields(b"stss", &[0, 1, 1]),
            ]
        };
        let none = || {
            vec![
                fields(b"stts", &[0, 0]),
                fields(b"stsz", &[0, 0, 0]),
                fields(b"stsc", &[0, 0]),
                fields(b"stco", &[0, 0]),
            ]
        };
        let of = |track: u32| if self.has_samples { tables(track) } else { none() };
        let mut video = trak(1, b"vide", AVC, &of(1));
        if let Some(time) = self.edit {
            let edts = bx(b"edts", &[&fields(b"elst", &[0, 1, 0, time, 0x1_0000])]);
            video = bx(b"trak", &[&video[8..], &edts]);
        }
        let trex = |track| fields(b"trex", &[0, track, 1, TICKS, 0, if track == 1 { OTHER } else { SYNC }]);
        let mvex = bx(b"mvex", &[&trex(1), &trex(2)]);
        bx(b"moov", &[&mvhd(), &video, &trak(2, b"soun", AAC, &of(2)), &mvex])
    }

    fn entry(&self, number: u32, len: usize) -> [u32; 3] {
        let (size, time) = match (self.fault, number) {
            (Fault::Size, 2) => (1, 0),
            (Fault::Size, 3) => (-1, 0),
            (Fault::Time, 2) => (0, 30),
            (Fault::Time, 3) => (0, -30),
            (Fault::Drift, _) => (0, 3),
            _ => (0, 0),
        };
        [(len as u32).wrapping_add_signed(size), (SAMPLES * TICKS).wrapping_add_signed(time), ACCESS]
    }

    fn bytes(&self) -> Vec<u8> {
        let fragments: Vec<Vec<u8>> = (0..self.count).map(|number| self.fragment(number)).collect();
        let ftyp = bx(b"ftyp", &[b"isom\0\0\0\0"]);
        let mut film = [ftyp.clone(), self.moov(0)].concat();
        if self.has_samples {
            let at = film.len() as u32 + 8;
            film = [ftyp, self.moov(at), bx(b"mdat", &[&self.media(0, 1), &self.media(0, 2)])].concat();
        }
        let entries = |range: std::ops::Range<usize>| -> Vec<u32> {
            range.flat_map(|place| self.entry(place as u32, fragments[place].len())).collect()
        };
        let sidx = |track: u32, first: u32, time: u32, entries: &[u32]| {
            let head = [0, track, 1000, time, first, entries.len() as u32 / 3];
            fields(b"sidx", &[&head, entries].concat())
        };
        let all = entries(0..fragments.len());
        let mut body: Vec<Vec<u8>> = fragments.clone();
        match self.named {
            Named::Sidx => {
                let second = sidx(2, 0, 0, &all);
                film.extend(sidx(1, second.len() as u32, 0, &all));
                film.extend(second);
            }
            Named::OneSidx => film.extend(sidx(1, 0, 0, &all)),
            Named::Levels => {
                let mut top = Vec::new();
                for (place, pair) in (0..fragments.len()).step_by(2).zip(body.chunks_mut(2)) {
                    let ticks = SAMPLES * TICKS;
                    let below = sidx(1, 0, place as u32 * ticks, &entries(place..place + pair.len()));
                    let len = below.len() + pair.iter().map(Vec::len).sum::<usize>();
                    top.extend([len as u32 | 1 << 31, ticks * pair.len() as u32, ACCESS]);
                    pair[0] = [below, pair[0].clone()].concat();
                }
                film.extend(sidx(1, 0, 0, &top));
            }
            Named::Nowhere | Named::Mfra => {}
        }
        let mut places = Vec::new();
        let skipped = usize::from(self.has_samples);
        for (number, fragment) in (0_u32..).zip(&body).skip(skipped) {
            places.push((number * SAMPLES * TICKS, film.len() as u32));
            film.extend(fragment);
        }
        if self.named == Named::Mfra {
            let tfra = |track: u32| {
                let mut entries = words(&[0, track, 0, places.len() as u32]);
                for (time, place) in &places {
                    entries.extend(words(&[*time, *place]));
                    entries.extend([track as u8, 1, 1]);
                }
                bx(b"tfra", &[&entries])
            };
            let tables = [tfra(1), tfra(2)].concat();
            film.extend(bx(b"mfra", &[&tables, &fields(b"mfro", &[0, tables.len() as u32 + 24])]));
        }
        if self.fault == Fault::Truncated {
            film.truncate(places.last().unwrap().1 as usize + 100);
        }
        film
    }
}

/// Returns the index in outline, and the number of batches that it took.
fn outlined(object: &[u8]) -> (Result<Movie, MediaError>, usize) {
    let mut indexer = Indexer::new(object.len() as u64).outlining();
    let mut batches = 0;
    loop {
        match indexer.poll() {
            Err(error) => return (Err(error), batches),
            Ok(Step::Done(movie)) => return (Ok(movie), batches),
            Ok(Step::Need(ranges)) => {
                batches += 1;
                assert!(batches < 1000 && !ranges.is_empty(), "it gets on");
                for range in ranges {
                    let bytes = object.get(range.start as usize..range.end as usize).expect("a range of the object");
                    assert!(!bytes.is_empty());
                    indexer.supply(range, Bytes::copy_from_slice(bytes));
                }
            }
        }
    }
}

fn loaded(object: &[u8], movie: &Arc<Movie>, fragments: std::ops::Range<u32>) -> Result<Movie, MediaError> {
    let within = movie.outline.as_ref().unwrap().range(&fragments).unwrap();
    let mut loader = FragmentLoader::new(movie.clone(), fragments, Work::unlimited()).unwrap();
    for _ in 0..1000 {
        match loader.poll()? {
            LoadStep::Done(movie) => return Ok(*movie),
            LoadStep::Need(range) => {
                assert!(range.start >= within.start && range.end <= within.end && !range.is_empty(), "{range}");
                let bytes = &object[range.start as usize..range.end as usize];
                loader.supply(Bytes::copy_from_slice(bytes));
            }
        }
    }
    panic!("it gets on");
}

/// A sample without its number.
fn key(sample: &Sample) -> (crate::ByteRange, i64, i32, u32, bool) {
    (sample.range, sample.dts, sample.composition, sample.duration, sample.sync)
}

/// Compares all samples of an outlined file with those of the index of all samples.
fn assert_same(object: &[u8], step: u32) {
    let whole = index_bytes(object).unwrap();
    let movie = Arc::new(outlined(object).0.unwrap());
    let outline = movie.outline.as_ref().expect("an outline");
    let mut samples: Vec<Vec<_>> = vec![Vec::new(); movie.tracks.len()];
    let mut from = 0;
    while from < outline.len() {
        let to = (from + step).min(outline.len());
        let part = loaded(object, &movie, from..to).unwrap();
        for (place, track) in part.tracks.iter().enumerate() {
            let starts = outline.times(place).unwrap().times();
            let least = track.samples.iter().map(|sample| sample.pts()).min().unwrap();
            assert_eq!(starts[from as usize], least);
            samples[place].extend(track.samples.iter().map(|sample| key(&sample)));
        }
        from = to;
    }
    for (track, found) in whole.tracks.iter().zip(samples) {
        assert_eq!(track.samples.iter().map(|sample| key(&sample)).collect::<Vec<_>>(), found);
        let end = movie.times_of(track).unwrap().last().copied();
        assert_eq!(end, Some(track.samples.end_dts()));
    }
}

#[test]
fn samples_of_all_fragments_are_those_of_the_whole_index() {
    for named in [Named::Sidx, Named::OneSidx, Named::Levels, Named::Mfra] {
        for step in [1, 2, 4, 100] {
            assert_same(&Film::new(named).bytes(), step);
        }
    }
}

#[test]
fn the_movie_box_may_have_the_first_fragment() {
    for edit in [None, Some(80)] {
        let film = Film { has_samples: true, edit, ..Film::new(Named::Mfra) };
        assert_same(&film.bytes(), 1);
        assert_same(&film.bytes(), 3);
    }
}

#[test]
fn few_batches_find_the_table() {
    for (named, most) in [(Named::Sidx, 3), (Named::Levels, 5), (Named::Mfra, 4)] {
        let film = Film { count: 400, ..Film::new(named) };
        let (movie, batches) = outlined(&film.bytes());
        assert_eq!(movie.unwrap().outline.unwrap().len(), 400);
        assert!(batches <= most, "{named:?}: {batches}");
    }
}

#[test]
fn files_without_a_table_are_indivisible() {
    let object = Film::new(Named::Nowhere).bytes();
    let movie = outlined(&object).0.unwrap();
    assert_eq!(movie, Movie { is_indivisible: true, ..index_bytes(&object).unwrap() });
}

#[test]
fn a_table_that_does_not_fit_the_last_fragment_is_refused() {
    for fault in [Fault::Drift, Fault::Truncated] {
        let object = Film { fault, ..Film::new(Named::Sidx) }.bytes();
        let movie = outlined(&object).0.unwrap();
        assert_eq!(movie, Movie { is_indivisible: true, ..index_bytes(&object).unwrap() }, "{fault:?}");
    }
}

#[test]
fn an_edit_behind_the_first_fragment_is_refused() {
    let outlined = |edit| outlined(&Film { edit, ..Film::new(Named::Sidx) }.bytes()).0.unwrap().outline.is_some();
    assert!(outlined(Some(80)));
    assert!(!outlined(Some(1200)));
}

#[test]
fn wrong_fragments_are_recognised_when_they_are_loaded() {
    for (fault, wrong) in [(Fault::Size, 2..4), (Fault::NoEntry, 0..0), (Fault::FalseFlag, 3..4)] {
        let object = Film { fault, ..Film::new(Named::Sidx) }.bytes();
        let movie = Arc::new(outlined(&object).0.unwrap());
        assert!(movie.outline.is_some());
        for fragment in 0..9 {
            let found = loaded(&object, &movie, fragment..fragment + 1);
            assert_eq!(found.is_err(), wrong.contains(&fragment), "{fault:?}, {fragment}: {found:?}");
        }
    }
}

#[test]
fn wrong_times_show_in_the_samples() {
    let object = Film { fault: Fault::Time, ..Film::new(Named::Sidx) }.bytes();
    let movie = Arc::new(outlined(&object).0.unwrap());
    let part = loaded(&object, &movie, 3..4).unwrap();
    let times = movie.outline.as_ref().unwrap().times(0).unwrap();
    let found = part.tracks[0].samples.get(0).unwrap().pts();
    assert!(found.abs_diff(times.times()[3]) > times.tolerance().unsigned_abs(), "{times:?}");
}

proptest! {
    #[test]
    fn damaged_files_never_panic(at in 0_usize..6000, byte in any::<u8>(), named in prop::sample::select(vec![Named::Sidx, Named::Levels, Named::Mfra])) {
        let mut object = Film::new(named).bytes();
        let end = object.len();
        // The headers at both ends are the most telling.
        let at = if at < 3000 { at } else { end.saturating_sub(at - 2999) };
        object[at.min(end - 1)] = byte;
        if let Ok(movie) = outlined(&object).0 {
            let movie = Arc::new(movie);
            let count = movie.outline.as_ref().map_or(0, |outline| outline.len());
            for fragment in 0..count.min(12) {
                let _ = loaded(&object, &movie, fragment..fragment + 1);
            }
        }
    }
}
