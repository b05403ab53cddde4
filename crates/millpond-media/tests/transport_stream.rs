//! Transport streams that ffmpeg makes give the frames of the MP4 files that they were made of.

#[path = "support/frames.rs"]
mod frames;
#[path = "support/samples.rs"]
mod samples;

use frames::{ticks, without_sets};
use millpond_media::{
    Codec, NalSyntax, Track,
    ts::{
        Demultiplexer, FrameFault, Framed, Framer, StreamCoding, TsConfiguration, TsEvent, TsFaultKind, TsFrame,
        TsLimits,
    },
};
use proptest::prelude::*;
use samples::{clip, copied};
use std::collections::{BTreeMap, BTreeSet};

/// Frames and all else of one stream.
#[derive(Debug, Default, PartialEq)]
struct Stream {
    coding: Option<StreamCoding>,
    language: Option<String>,
    configurations: Vec<TsConfiguration>,
    frames: Vec<TsFrame>,
    faults: Vec<FrameFault>,
}

/// Everything in a transport stream.
#[derive(Debug, Default, PartialEq)]
struct Found {
    streams: BTreeMap<u16, Stream>,
    faults: Vec<TsFaultKind>,
    clocks: Vec<(u64, bool)>,
}

fn events(bytes: &[u8], sizes: impl IntoIterator<Item = usize>) -> Vec<TsEvent> {
    let (mut demultiplexer, mut events) = (Demultiplexer::new(TsLimits::default()), Vec::new());
    let mut rest = bytes;
    for size in sizes {
        let (now, later) = rest.split_at(size.min(rest.len()));
        demultiplexer.push(now, &mut events);
        rest = later;
    }
    demultiplexer.push(rest, &mut events);
    demultiplexer.finish(&mut events);
    events
}

fn read(bytes: &[u8]) -> Found {
    let (mut found, mut framers) = (Found::default(), BTreeMap::new());
    let mut out = Vec::new();
    for event in events(bytes, []) {
        match event {
            TsEvent::Streams(map) => {
                for stream in map.streams {
                    if let Some(framer) = Framer::new(stream.coding) {
                        framers.entry(stream.pid).or_insert(framer);
                    }
                    let entry = found.streams.entry(stream.pid).or_default();
                    (entry.coding, entry.language) = (Some(stream.coding), stream.language);
                }
            }
            TsEvent::Unit(unit) => {
                framers.get_mut(&unit.pid).expect("a unit of a known stream").push(&unit, &mut out);
                found.streams.get_mut(&unit.pid).unwrap().take(&mut out);
            }
            TsEvent::Clock { pcr, is_discontinuous, .. } => found.clocks.push((pcr, is_discontinuous)),
            TsEvent::Fault(fault) => found.faults.push(fault.kind),
            TsEvent::Programmes(_) | TsEvent::Cue { .. } => {}
        }
    }
    for (pid, framer) in &mut framers {
        framer.finish(&mut out);
        found.streams.get_mut(pid).unwrap().take(&mut out);
    }
    found
}

impl Found {
    /// Removes the last picture: where the stream ends too early, it can't be told from a whole one.
    fn drop_last_picture(&mut self) {
        for stream in self.streams.values_mut().filter(|stream| stream.coding == Some(StreamCoding::Avc)) {
            stream.frames.pop();
        }
    }
}

impl Stream {
    fn take(&mut self, out: &mut Vec<Framed>) {
        for framed in out.drain(..) {
            match framed {
                Framed::Configuration(configuration) => self.configurations.push(configuration),
                Framed::Frame(frame) => self.frames.push(frame),
                Framed::Fault(fault) => self.faults.push(fault),
            }
        }
    }
}

/// Compares the frames of a stream with the samples of a track, from the first sample on.
fn assert_equal(track: &Track, file: &[u8], stream: &Stream) {
    let name = track.codec.name();
    assert_eq!(stream.faults, [], "{name}");
    let (mut last, mut offset) = (None, None);
    for (sample, frame) in track.samples.iter().zip(&stream.frames) {
        let bytes = &file[sample.range.start as usize..sample.range.end as usize];
        let expected = NalSyntax::of(&track.codec).map_or(bytes.to_vec(), |(syntax, _)| without_sets(syntax, bytes));
        assert!(frame.data == expected, "{name}: sample {} has other bytes", sample.index);
        assert!(!frame.is_estimated);
        assert_eq!(frame.is_sync, sample.sync, "{name}: sample {}", sample.index);
        let (pts, dts) = (ticks(sample.pts(), track.timescale), ticks(sample.dts, track.timescale));
        let first = *offset.get_or_insert(frame.pts as i64 - pts);
        let (late, decoded) = (frame.pts as i64 - pts - first, frame.dts as i64 - dts - first);
        assert!(late.abs() <= 1 && decoded.abs() <= 1, "{name}: sample {} is {late} late", sample.index);
        assert!(last.is_none_or(|last| last < frame.dts), "{name}: decoding times rise");
        last = Some(frame.dts);
    }
    assert_eq!(stream.frames.len(), track.samples.len() as usize, "{name}");
}

fn assert_configured(codec: &Codec, configurations: &[TsConfiguration]) {
    match (codec, configurations) {
        (Codec::Avc(config), [TsConfiguration::Avc { sps, pps }]) => {
            assert_eq!((&config.sps, &config.pps), (sps, pps));
        }
        (Codec::Hevc(config), [TsConfiguration::Hevc { vps, sps, pps }]) => {
            assert_eq!((&config.vps, &config.sps, &config.pps), (vps, sps, pps));
        }
        (Codec::Aac(config), [TsConfiguration::Aac { audio_specific_config }]) => {
            assert!(config.audio_specific_config.starts_with(audio_specific_config));
        }
        (Codec::Ac3(config), [TsConfiguration::Ac3 { channels, sample_rate, .. }]) => {
            assert_eq!((config.channels, config.sample_rate), (*channels, *sample_rate));
        }
        (Codec::Eac3(config), [TsConfiguration::Eac3 { channels, sample_rate, .. }]) => {
            assert_eq!((config.channels, config.sample_rate), (*channels, *sample_rate));
        }
        (Codec::MpegAudio(config), [TsConfiguration::MpegAudio { channels, sample_rate, .. }]) => {
            assert_eq!((config.channels, config.sample_rate), (*channels, *sample_rate));
        }
        (Codec::Opus(_), [TsConfiguration::Opus { channels: 2, mapping_family: 0 }]) => {}
        (codec, found) => panic!("{}: {found:?}", codec.name()),
    }
}

#[test]
fn streams_give_the_frames_of_their_files() {
    let clips = [
        ("h264_aac.mp4", "V S -c:v libx264 -g 25 -bf 3 -c:a aac -ac 2", ""),
        (
            "hevc_ac3.mp4",
            "V S -c:v libx265 -x265-params log-level=error:info=0:keyint=25:bframes=3 -tag:v hvc1 -c:a ac3",
            "",
        ),
        ("h264_slices_mp3.mp4", "V S -c:v libx264 -g 25 -slices 4 -bf 2 -c:a libmp3lame -ac 2", ""),
        ("mp2.mp4", "S -c:a mp2 -ac 2", ""),
        ("eac3.mp4", "S -c:a eac3 -ac 6", ""),
        ("opus.mp4", "S -c:a libopus -ac 2", ""),
        ("aac_44100.mp4", "S -c:a aac -ar 44100", ""),
        ("latm.mp4", "S -c:a aac -ac 2", "-mpegts_flags latm"),
        ("pes_per_frame.mp4", "V S -c:v libx264 -bf 1 -c:a aac", "-pes_payload_size 0"),
    ];
    for (name, make, mux) in clips {
        let (file, path) = clip(name, make);
        let movie = millpond_media::index_bytes(&file).unwrap();
        let found = read(&copied(&path, "mpegts", mux));
        assert_eq!(found.faults, [], "{name}");
        assert_eq!(found.streams.len(), movie.tracks.len(), "{name}");
        assert!(found.clocks.len() > 2 && found.clocks.iter().all(|(_, jump)| !jump), "{name}");
        for (track, stream) in movie.tracks.iter().zip(found.streams.values()) {
            assert_equal(track, &file, stream);
            assert_configured(&track.codec, &stream.configurations);
        }
    }
}

#[test]
fn languages_are_read() {
    let (_, path) = clip("aac_deu.mp4", "S -c:a aac -metadata:s:a:0 language=deu");
    let found = read(&copied(&path, "mpegts", ""));
    assert_eq!(found.streams.values().next().unwrap().language.as_deref(), Some("deu"));
}

/// A short stream of pictures with B-frames and of sound.
fn short() -> Vec<u8> {
    let (_, path) = clip("short.mp4", "V S -t 1 -c:v libx264 -g 10 -bf 2 -b:v 200k -c:a aac -ac 1 -b:a 32k");
    copied(&path, "mpegts", "")
}

/// Asserts that each frame is one of the whole stream; returns the number of missing pictures and sounds.
fn missing(whole: &Found, found: &Found, what: &str) -> [usize; 2] {
    let mut missing = [0; 2];
    for (at, (pid, stream)) in whole.streams.iter().enumerate() {
        let all: BTreeSet<_> = stream.frames.iter().map(|frame| (frame.dts, frame.pts, &frame.data)).collect();
        let Some(part) = found.streams.get(pid) else {
            missing[at] = all.len();
            continue;
        };
        for frame in &part.frames {
            assert!(
                all.contains(&(frame.dts, frame.pts, &frame.data)),
                "{what}: a frame at {} is not whole",
                frame.dts
            );
        }
        missing[at] = all.len() - part.frames.len();
    }
    missing
}

#[test]
fn a_lost_packet_costs_the_frames_around_it() {
    let bytes = short();
    let whole = read(&bytes);
    let packets = bytes.len() / 188;
    let (mut pictures, mut sounds) = (0, 0);
    // The first packets are tables, which come again only later.
    for lost in 3..packets {
        let mut cut = bytes.clone();
        cut.drain(lost * 188..(lost + 1) * 188);
        let mut found = read(&cut);
        found.drop_last_picture();
        let [video, audio] = missing(&whole, &found, &format!("packet {lost}"));
        // An unbounded packet whose successor's beginning is missing may be cut too; and the last picture.
        assert!(video <= 3, "{video} pictures without packet {lost}");
        // A PES packet of quiet sound holds 20 frames or more.
        assert!(audio <= 60, "{audio} sounds without packet {lost}");
        pictures += video;
        sounds += audio;
    }
    assert!(pictures > 0 && sounds > 0);
}

#[test]
fn a_stream_that_is_cut_anywhere_gives_whole_frames() {
    let bytes = short();
    let whole = read(&bytes);
    for cut in (0..3 * 188).chain((3 * 188..bytes.len()).step_by(991)) {
        missing(&whole, &read(&bytes[cut..]), &format!("from byte {cut}"));
    }
    for cut in (bytes.len() - 3 * 188..bytes.len()).chain((0..bytes.len()).step_by(991)) {
        let mut found = read(&bytes[..cut]);
        found.drop_last_picture();
        missing(&whole, &found, &format!("to byte {cut}"));
    }
}

#[test]
fn bytes_between_packets_are_skipped() {
    let bytes = short();
    let whole = read(&bytes);
    let mut dirty = Vec::new();
    for (number, packet) in bytes.chunks(188).enumerate() {
        dirty.extend_from_slice(packet);
        if number % 10 == 9 {
            dirty.extend(std::iter::repeat_n(0x55, number));
        }
    }
    let found = read(&dirty);
    assert_eq!(found.streams, whole.streams);
    assert!(found.faults.len() >= bytes.len() / 188 / 10 - 1);
    assert!(found.faults.iter().all(|fault| *fault == TsFaultKind::SyncLost));
}

#[test]
fn repeated_packets_change_nothing() {
    let bytes = short();
    let twice: Vec<u8> = bytes.chunks(188).flat_map(|packet| [packet, packet].concat()).collect();
    let found = read(&twice);
    assert_eq!((found.streams, found.faults), (read(&bytes).streams, vec![]));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn pieces_of_any_size_give_the_same_events(
        sizes in prop::collection::vec(1_usize..2000, 0..200),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..60),
    ) {
        let mut bytes = short();
        for (place, value) in damage {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        prop_assert_eq!(events(&bytes, sizes), events(&bytes, []));
        read(&bytes);
    }
}
