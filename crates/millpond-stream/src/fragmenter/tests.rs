mod start;

use super::*;
use millpond_media::{
    Importance, SampleTable,
    codec::Codec,
    index_bytes,
    movie::{Movie, Track, TrackKind},
    units::Timescale,
};
use millpond_package::MediaKind;

const LIMITS: FragmentLimits =
    FragmentLimits { least: Duration::from_secs(1), most: Duration::from_secs(10), bytes: 1 << 20 };

/// The tracks of the bundled sample: pictures and sound.
fn formats() -> Vec<(u16, Format)> {
    let movie = index_bytes(include_bytes!("../../../../assets/sample/360p.mp4")).unwrap();
    let format = |(number, track): (usize, &Track)| {
        let kind = match track.kind {
            TrackKind::Video { .. } => MediaKind::Video,
            _ => MediaKind::Audio,
        };
        let track = Track { edits: Vec::new(), samples: SampleTable::default(), ..track.clone() };
        let (name, language) = (format!("t{number}"), None);
        let (is_default, is_alternative, bandwidth, is_encrypted) = (true, false, 1000, false);
        let format = Format { name, kind, language, is_default, is_alternative, bandwidth, is_encrypted, track };
        (number as u16, format)
    };
    movie.tracks.iter().enumerate().map(format).collect()
}

struct Feed {
    formats: Vec<(u16, Format)>,
    video: u16,
    audio: u16,
}

impl Feed {
    fn new() -> Self {
        let mut formats = formats();
        for (_, format) in &mut formats {
            format.track.timescale = Timescale::new(if format.is_video() { 12_800 } else { 48_000 }).unwrap();
        }
        let of = |kind| formats.iter().find(|(_, format)| format.kind == kind).unwrap().0;
        Self { video: of(MediaKind::Video), audio: of(MediaKind::Audio), formats }
    }

    fn fragmenter(&self) -> Fragmenter {
        let formats = self.formats.iter().map(|(track, format)| (*track, format));
        Fragmenter::new(formats, self.video, LIMITS).unwrap()
    }

    /// Picture `number` in decode order: 25 a second, key frames each 50, one B-frame between two others.
    fn picture(&self, number: u32) -> Frame {
        let shown = match number % 50 {
            0 | 49 => number,
            odd if odd % 2 == 1 => number + 1,
            _ => number - 1,
        };
        let (pts, due) = (i64::from(shown) * 512, Duration::from_millis(40) * number);
        let data = Bytes::from(vec![number as u8; 100]);
        let is_sync = number.is_multiple_of(50);
        Frame { track: self.video, number, due, pts, epoch: 0, is_sync, importance: Importance::BASE, data }
    }

    /// Frame of sound: 1024 samples.
    fn sound(&self, number: u32) -> Frame {
        let pts = i64::from(number) * 1024;
        let due = Duration::from_nanos(pts as u64 * 1_000_000_000 / 48_000);
        let data = Bytes::from(vec![0xaa; 10]);
        Frame { track: self.audio, number, due, pts, epoch: 0, is_sync: true, importance: Importance::BASE, data }
    }

    /// Pictures `pictures` and the sound of their time, by due times.
    fn frames(&self, pictures: std::ops::Range<u32>) -> Vec<Frame> {
        let sound = pictures.start * 1920 / 1024..pictures.end * 1920 / 1024;
        let mut all: Vec<Frame> = pictures.map(|number| self.picture(number)).collect();
        all.extend(sound.map(|number| self.sound(number)));
        all.sort_by_key(|frame| frame.due);
        all
    }
}

fn write(file: &mut Vec<u8>, fragment: &Fragment) {
    let parts = fragment.init.iter().chain([&fragment.head]).chain(&fragment.frames);
    parts.for_each(|part| file.extend_from_slice(part));
}

/// Samples read of a file: (pts, is_sync) of each sample of a track, less its edit list.
fn read(movie: &Movie, is_video: bool) -> Vec<(i64, bool)> {
    let is_wanted = |track: &&Track| matches!(track.kind, TrackKind::Video { .. }) == is_video;
    let track = movie.tracks.iter().find(is_wanted).unwrap();
    let early = track.edits.first().map_or(0, |edit| edit.media_time.unwrap());
    track.samples.iter().map(|sample| (sample.pts() - early, sample.sync)).collect()
}

#[test]
fn a_stream_that_is_joined_comes_back_with_its_times() {
    let feed = Feed::new();
    let mut fragmenter = feed.fragmenter();
    let (mut file, mut fragments) = (Vec::new(), 0);
    // It is joined at picture 120: the key frame is 150.
    for frame in feed.frames(120..400) {
        if let Some(fragment) = fragmenter.push(&frame) {
            assert!(fragment.is_independent && fragment.init.is_some() == (fragments == 0));
            write(&mut file, &fragment);
            fragments += 1;
        }
    }
    assert_eq!(fragments, 4, "one for each group of pictures that is over");
    write(&mut file, &fragmenter.finish().unwrap());
    assert!(fragmenter.finish().is_none());
    let movie = index_bytes(&file).unwrap();
    let expected: Vec<_> =
        (150..400).map(|number| feed.picture(number)).map(|frame| (frame.pts - 150 * 512, frame.is_sync)).collect();
    assert_eq!(read(&movie, true), expected);
    let first = i64::from((150 * 1920_u32).div_ceil(1024));
    let sound: Vec<_> = (first..750).map(|number| (number * 1024 - 150 * 1920, true)).collect();
    assert_eq!(read(&movie, false), sound);
    for track in &movie.tracks {
        let times: Vec<i64> = track.samples.iter().map(|sample| sample.dts).collect();
        assert!(times.windows(2).all(|two| two[0] < two[1]), "decode times rise");
        assert!(track.samples.iter().all(|sample| sample.composition >= 0));
    }
}

#[test]
fn an_output_that_is_turned_loses_no_frame() {
    let feed = Feed::new();
    let mut fragmenter = feed.fragmenter().with_clean_holes();
    let mut files = vec![Vec::new()];
    // Sound arrives half a second late, so that the frames of the border do.
    let mut frames = feed.frames(0..400);
    let late = |frame: &Frame| frame.due + Duration::from_millis(if frame.track == feed.audio { 500 } else { 0 });
    frames.sort_by_key(late);
    for frame in &frames {
        if frame.track == feed.video && matches!(frame.number, 150 | 300) {
            let fragment = fragmenter.turn(frame).unwrap();
            write(files.last_mut().unwrap(), &fragment);
            files.push(Vec::new());
        }
        fragmenter.push(frame).iter().for_each(|fragment| write(files.last_mut().unwrap(), fragment));
    }
    write(files.last_mut().unwrap(), &fragmenter.finish().unwrap());
    let movies: Vec<Movie> = files.iter().map(|file| index_bytes(file).unwrap()).collect();
    let counts = |is_video| movies.iter().map(|movie| read(movie, is_video).len()).collect::<Vec<_>>();
    assert_eq!(counts(true), [150, 150, 100]);
    // The first file loses nothing, since time 0 is that of both tracks.
    assert_eq!(counts(false).iter().sum::<usize>(), 750);
    for movie in &movies[1..] {
        let (pictures, sound) = (read(movie, true), read(movie, false));
        assert!(pictures[0].1, "it begins with a key frame");
        // The sound of the half second before comes first: both keep their distance.
        assert_eq!(sound[0].0, 0);
        assert!((23 * 256..=25 * 256).contains(&pictures[0].0), "{}", pictures[0].0);
        assert!(sound.windows(2).all(|two| two[1].0 - two[0].0 == 1024));
        let mut times: Vec<i64> = pictures.iter().map(|(pts, _)| *pts).collect();
        times.sort_unstable();
        assert!(times.windows(2).all(|two| two[1] - two[0] == 512));
    }
    // The last picture of a file lasts up to the first one of the next file.
    let first = movies[0].tracks.iter().find(|track| matches!(track.kind, TrackKind::Video { .. })).unwrap();
    let last = first.samples.iter().last().unwrap();
    assert_eq!(last.duration, 512);
}

#[test]
fn a_lost_frame_ends_a_fragment_and_the_next_key_frame_begins_one() {
    let feed = Feed::new();
    let mut fragmenter = feed.fragmenter();
    let mut file = Vec::new();
    for frame in feed.frames(0..200).iter().filter(|frame| frame.track != feed.video || frame.number != 60) {
        fragmenter.push(frame).iter().for_each(|fragment| write(&mut file, fragment));
    }
    fragmenter.finish().iter().for_each(|fragment| write(&mut file, fragment));
    let expected: Vec<_> = (0..60).chain(100..200).map(|number| feed.picture(number)).collect();
    let expected: Vec<_> = expected.iter().map(|frame| (frame.pts, frame.is_sync)).collect();
    assert_eq!(read(&index_bytes(&file).unwrap(), true), expected);
    assert!(fragmenter.skipped() >= 38, "{}", fragmenter.skipped());
}

#[test]
fn frames_behind_a_clean_hole_are_taken() {
    let feed = Feed::new();
    let mut fragmenter = feed.fragmenter().with_clean_holes();
    let mut file = Vec::new();
    // Single frames, and the end of a group of pictures.
    let is_lost = |number: u32| matches!(number, 62 | 64 | 110..150);
    for frame in feed.frames(0..200).iter().filter(|frame| frame.track != feed.video || !is_lost(frame.number)) {
        fragmenter.push(frame).iter().for_each(|fragment| write(&mut file, fragment));
    }
    fragmenter.finish().iter().for_each(|fragment| write(&mut file, fragment));
    let expected: Vec<_> = (0..200).filter(|number| !is_lost(*number)).map(|number| feed.picture(number)).collect();
    let expected: Vec<_> = expected.iter().map(|frame| (frame.pts, frame.is_sync)).collect();
    let movie = index_bytes(&file).unwrap();
    assert_eq!(read(&movie, true), expected);
    assert_eq!((read(&movie, false).len(), fragmenter.skipped()), (375, 0), "all of the sound");
}

#[test]
fn a_fragment_without_a_key_frame_ends_by_time_and_by_bytes() {
    let feed = Feed::new();
    let mut fragmenter = feed.fragmenter();
    let key_only_first = |number: u32| Frame { is_sync: number == 0, ..feed.picture(number) };
    let ends: Vec<u32> = (0..600).filter(|number| fragmenter.push(&key_only_first(*number)).is_some()).collect();
    assert_eq!(ends, [250, 500], "each 10 seconds");
    let mut fragmenter = feed.fragmenter();
    let large = |number: u32| Frame { data: vec![0; 100 << 10].into(), ..key_only_first(number) };
    let fragments: Vec<Fragment> = (0..30).filter_map(|number| fragmenter.push(&large(number))).collect();
    assert!(fragments.len() == 2 && fragments[0].is_independent && !fragments[1].is_independent);
}

#[test]
fn priming_and_equal_due_times_keep_their_presentation() {
    let feed = Feed::new();
    let formats = feed.formats.iter().map(|(track, format)| (*track, format));
    let mut fragmenter = Fragmenter::new(formats, feed.audio, LIMITS).unwrap();
    let mut file = Vec::new();
    for number in 0..200 {
        let frame = feed.sound(number);
        let frame = Frame { pts: frame.pts - 2048, due: frame.due.saturating_sub(feed.sound(2).due), ..frame };
        fragmenter.push(&frame).iter().for_each(|fragment| write(&mut file, fragment));
    }
    fragmenter.finish().iter().for_each(|fragment| write(&mut file, fragment));
    let movie = index_bytes(&file).unwrap();
    let expected: Vec<_> = (0..200).map(|number| (number * 1024, true)).collect();
    assert_eq!(read(&movie, false), expected);
}

#[test]
fn tracks_that_do_not_fit_are_left_out() {
    let feed = Feed::new();
    let mut formats = feed.formats.clone();
    formats.iter_mut().for_each(|(track, format)| format.is_encrypted = *track == feed.video);
    let of = |lead| Fragmenter::new(formats.iter().map(|(track, format)| (*track, format)), lead, LIMITS);
    assert!(of(feed.video).is_none());
    assert_eq!(of(feed.audio).unwrap().lanes.len(), feed.formats.len() - 1);
    assert!(matches!(feed.formats[0].1.track.codec, Codec::Avc(_) | Codec::Aac(_)));
}
