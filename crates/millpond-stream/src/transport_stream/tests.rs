use super::*;
use bytes::Bytes;
use millpond_media::{
    Codec, Importance, PrivateForm, PrivateText, SampleTable,
    codec::make::Made,
    index_bytes,
    movie::{Track, TrackKind},
    teletext::TeletextPage,
    ts::{Demultiplexer, StreamCoding, TsEvent, TsLimits},
};

/// The tracks of the bundled sample: pictures and sound.
pub(crate) fn formats() -> Vec<Option<Format>> {
    let movie = index_bytes(include_bytes!("../../../../assets/sample/360p.mp4")).unwrap();
    let format = |track: &Track| {
        let is_video = matches!(track.kind, TrackKind::Video { .. });
        let kind = if is_video { MediaKind::Video } else { MediaKind::Audio };
        let timescale = Timescale::new(if is_video { 90_000 } else { 48_000 }).unwrap();
        let track = Track { edits: Vec::new(), samples: SampleTable::default(), timescale, ..track.clone() };
        let (name, language) = (format!("t{}", track.id), None);
        let (is_default, is_alternative, bandwidth, is_encrypted) = (true, false, 1000, false);
        Some(Format { name, kind, language, is_default, is_alternative, bandwidth, is_encrypted, track })
    };
    let mut formats: Vec<_> = movie.tracks.iter().map(format).collect();
    formats.sort_by_key(|format| format.as_ref().is_none_or(|format| !format.is_video()));
    formats.truncate(2);
    formats
}

fn stream(formats: &[Option<Format>]) -> TransportStream {
    let tracks = (0..).zip(formats).filter_map(|(track, format)| Some((track, format.as_ref()?)));
    TransportStream::new(tracks, 0).unwrap()
}

/// Picture `number`, each `step` ms, one NAL unit, with key frames each 50.
fn picture(number: u32, step: u64) -> Frame {
    let at = Duration::from_millis(step * u64::from(number));
    let mut data = 396_u32.to_be_bytes().to_vec();
    data.resize(400, 0x41);
    Frame {
        track: 0,
        number,
        due: at,
        pts: clock(at),
        epoch: 0,
        is_sync: number.is_multiple_of(50),
        importance: Importance::BASE,
        data: data.into(),
    }
}

fn sound(number: u32) -> Frame {
    let due = Duration::from_nanos(u64::from(number) * 1024 * 1_000_000_000 / 48_000);
    let (pts, data) = (i64::from(number) * 1024, Bytes::from(vec![7; 300]));
    Frame { track: 1, number, due, pts, epoch: 0, is_sync: true, importance: Importance::BASE, data }
}

/// Pictures and sound of some time, by their due times.
fn film(from: u64, millis: u64, step: u64) -> Vec<Frame> {
    let mut frames: Vec<_> =
        (from.div_ceil(step)..millis.div_ceil(step)).map(|number| picture(number as u32, step)).collect();
    frames.extend((from * 48 / 1024 + 1..millis * 48 / 1024).map(|number| sound(number as u32)));
    frames.sort_by_key(|frame| frame.due);
    frames
}

/// What a demultiplexer checks.
#[derive(Default)]
struct Demultiplexed {
    counters: [Option<u8>; 2],
    /// PCRs on the 90 kHz clock.
    clocks: Vec<i64>,
    breaks: usize,
    tables: usize,
    /// PES packets by stream.
    units: [usize; 2],
}

impl Demultiplexed {
    #[track_caller]
    fn of(stream: &[u8]) -> Self {
        let mut found = Self::default();
        assert!(stream.len().is_multiple_of(188));
        for packet in stream.chunks(188) {
            assert_eq!(packet[0], 0x47);
            found.take(packet);
        }
        found
    }

    #[track_caller]
    fn take(&mut self, packet: &[u8]) {
        let pid = u16::from_be_bytes([packet[1], packet[2]]) & 0x1fff;
        self.tables += usize::from(pid == 0);
        let Some(place) = usize::from(pid).checked_sub(0x100).filter(|place| *place < 2) else { return };
        if packet[3] & 0x20 != 0 && packet[4] > 0 {
            self.breaks += usize::from(packet[5] & 0x80 != 0);
            if packet[5] & 0x10 != 0 {
                let base = u32::from_be_bytes(packet[6..10].try_into().unwrap());
                self.clocks.push(i64::from(base) << 1 | i64::from(packet[10] >> 7));
            }
        }
        if packet[3] & 0x10 != 0 {
            let counter = packet[3] & 0x0f;
            if let Some(before) = self.counters[place].replace(counter) {
                assert_eq!((before + 1) & 0x0f, counter, "stream {place}");
            }
            self.units[place] += usize::from(packet[1] & 0x40 != 0);
        }
    }

    #[track_caller]
    fn assert_clock(&self) {
        let worst = self.clocks.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
        let least = self.clocks.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap();
        assert!(worst <= 9000 && least > 0, "{least} to {worst}");
    }
}

fn packets(stream: &mut TransportStream, frames: &[Frame]) -> Vec<u8> {
    let mut out = Vec::new();
    frames.iter().for_each(|frame| stream.push(frame, &mut out));
    stream.finish(&mut out);
    out
}

#[test]
fn pictures_leave_at_once_and_the_clock_never_pauses() {
    for (step, pictures) in [(40, 250), (20, 500), (500, 20), (3000, 4)] {
        let formats = formats();
        let mut stream = stream(&formats);
        let mut out = Vec::new();
        for frame in film(0, 10_000, step) {
            let before = out.len();
            stream.push(&frame, &mut out);
            assert!(frame.track == 1 || out.len() > before, "{frame:?}");
        }
        stream.finish(&mut out);
        let found = Demultiplexed::of(&out);
        found.assert_clock();
        assert_eq!((found.units[0], found.breaks), (pictures, 0), "each {step} ms");
        // PAT and PMT at least each 200 ms: sound leaves at that rate without pictures.
        assert!(found.tables >= 50, "{}", found.tables);
        assert_eq!(found.clocks[0], 900_000 - 9_000);
    }
}

#[test]
fn sound_alone_has_a_clock() {
    let formats = [None, formats()[1].clone()];
    let tracks = [(1, formats[1].as_ref().unwrap())];
    let mut stream = TransportStream::new(tracks, 1).unwrap();
    let frames: Vec<_> = (0..470).map(sound).collect();
    let found = Demultiplexed::of(&packets(&mut stream, &frames));
    found.assert_clock();
    assert!(found.units[0] > 90, "{}", found.units[0]);
}

#[test]
fn it_begins_with_a_key_frame_and_goes_on_after_lost_pictures() {
    let formats = formats();
    let mut live = stream(&formats);
    let mut frames = film(1000, 6000, 40);
    let found = Demultiplexed::of(&packets(&mut live, &frames));
    assert_eq!((found.units[0], found.clocks[0]), (100, 900_000 + 180_000 - 9_000), "from 2 s on");
    // The fork leaves out only what nothing else needs.
    frames.retain(|frame| frame.track == 1 || frame.number != 60);
    let found = Demultiplexed::of(&packets(&mut stream(&formats), &frames));
    assert_eq!(found.units[0], 99);
    assert!(found.clocks.windows(2).all(|pair| pair[1] - pair[0] <= 9000));
}

/// Teletext of a source, and its first frame.
pub(crate) fn teletext() -> (Option<Format>, Frame) {
    let (name, language) = ("t1".to_owned(), Some("fr".to_owned()));
    let (is_default, is_alternative, bandwidth, is_encrypted) = (false, false, 1000, false);
    let descriptors = [&[0x52, 1, 9, 0x56, 5][..], b"fra\x10\x88"].concat();
    let pages = TeletextPage::announced(b"fra\x10\x88");
    let codec = Codec::PrivateText(PrivateText { form: PrivateForm::Teletext, descriptors, pages });
    let made = Made { codec, kind: TrackKind::Text, sample_entry: Vec::new() };
    let (kind, track) = (MediaKind::Text, Track::live(3, made, Timescale::MPEG, "fra"));
    // A header of page 888, its row 22 with "Hi" in a box, and the header of the next page. The rest of each are spaces.
    let units: [&[u8]; 3] = [
        b"\x03\x2c\xe7\xe4\xa8\xa8\x0b\x0b\xa8\x0b\xa8\x0b\xa8\xa8",
        b"\x03\x2c\xe7\xe4\xa8\xd9\xd0\xd0\x13\x97\x51\x51",
        b"\x03\x2c\xe7\xe4\xa8\xa8\x57\x57\xa8\xa8\xa8\xa8\xa8\xa8",
    ];
    let mut data = vec![0x10];
    for (number, unit) in (1..).zip(units) {
        data.extend_from_slice(unit);
        data.resize(1 + 46 * number, 0x04);
    }
    let frame = Frame { track: 2, due: Duration::from_secs(3), pts: 280_000, data: data.into(), ..sound(0) };
    (Some(Format { name, kind, language, is_default, is_alternative, bandwidth, is_encrypted, track }), frame)
}

#[test]
fn subtitles_are_passed_on_as_they_are() {
    let (format, text) = teletext();
    let formats = formats();
    let mut live = stream(&[&formats[..], &[format]].concat());
    let mut frames = film(0, 6000, 40);
    let place = frames.iter().position(|frame| frame.due > text.due).unwrap();
    frames.insert(place, text.clone());
    let mut out = packets(&mut live, &frames);
    // An epoch may lack them.
    assert!(live.enter(&formats));
    out.extend(packets(&mut live, &film(60_000, 62_000, 40)));
    let (mut demultiplexer, mut events) = (Demultiplexer::new(TsLimits { unit: 1 << 20, units: 1 << 22 }), Vec::new());
    demultiplexer.push(&out, &mut events);
    demultiplexer.finish(&mut events);
    let listed = events.iter().find_map(|event| match event {
        TsEvent::Streams(map) => map.streams.iter().find(|stream| stream.coding == StreamCoding::Teletext),
        _ => None,
    });
    let listed = listed.unwrap();
    assert_eq!(listed.descriptors, [&[0x52, 1, 9, 0x56, 5][..], b"fra\x10\x88"].concat());
    let units: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            TsEvent::Unit(unit) if unit.pid == listed.pid => Some((unit.pts.unwrap(), unit.data.clone())),
            _ => None,
        })
        .collect();
    assert_eq!(units, [(900_000 + 280_000, text.data)]);
    let alone = [None, None, teletext().0];
    let tracks = (0..).zip(&alone).filter_map(|(track, format)| Some((track, format.as_ref()?)));
    assert!(TransportStream::new(tracks, 2).is_none(), "subtitles without pictures or sound");
}

#[test]
fn an_epoch_is_a_discontinuity_and_another_codec_ends_the_stream() {
    let formats = formats();
    let mut live = stream(&formats);
    assert!(live.enter(&formats));
    let mut out = packets(&mut live, &film(0, 2000, 40));
    assert!(live.enter(&formats));
    out.extend(packets(&mut live, &film(60_000, 62_000, 40)));
    let found = Demultiplexed::of(&out);
    assert_eq!((found.breaks, found.units[0]), (2, 100));
    assert!(!live.enter(&formats[..1]), "the sound is missing");
    assert!(!live.enter(&[formats[1].clone(), formats[1].clone()]), "other codecs");
}

#[test]
fn a_picture_of_bad_bytes_is_left_out() {
    let formats = formats();
    let mut live = stream(&formats);
    let mut frames = film(0, 4000, 40);
    frames.iter_mut().filter(|frame| frame.track == 0 && frame.number == 30).for_each(|frame| {
        frame.data = Bytes::from_static(&[0, 0, 1, 0, 7]);
    });
    frames.push(Frame { data: Bytes::new(), ..picture(100, 40) });
    let found = Demultiplexed::of(&packets(&mut live, &frames));
    assert_eq!(found.units[0], 99);
    found.assert_clock();
}
