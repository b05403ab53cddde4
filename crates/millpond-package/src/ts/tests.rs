//! Tests of whole segments, which a small demultiplexer reads back.

use super::*;
use crate::{ObjectRange, Rewrite};
use millpond_media::{
    AacConfig, AvcConfig, Codec, HevcConfig, MpegAudioConfig, Orientation, SampleTable, Timescale, Track, TrackKind,
};
use proptest::prelude::*;
use std::collections::BTreeMap;

mod read_back;

const SPS: [u8; 5] = [0x67, 1, 2, 3, 4];
const PPS: [u8; 2] = [0x68, 9];

fn avc(nal_length_size: u8) -> Codec {
    Codec::Avc(AvcConfig {
        fourcc: *b"avc1",
        profile: 100,
        compatibility: 0,
        level: 31,
        nal_length_size,
        sps: vec![SPS.to_vec()],
        pps: vec![PPS.to_vec()],
        color: None,
    })
}

fn hevc() -> Codec {
    Codec::Hevc(HevcConfig {
        dolby_vision: None,
        fourcc: *b"hvc1",
        profile_space: 0,
        profile: 1,
        high_tier: false,
        compatibility: 0,
        constraints: [0; 6],
        level: 93,
        nal_length_size: 4,
        vps: vec![vec![0x40, 1]],
        sps: vec![vec![0x42, 1]],
        pps: vec![vec![0x44, 1]],
        color: None,
    })
}

fn aac() -> Codec {
    Codec::Aac(AacConfig {
        object_type_indication: 0x40,
        object_type: 2,
        signalled_object_type: 2,
        sample_rate_index: 3,
        sample_rate: 48_000,
        channel_config: 2,
        channels: 2,
        extension_sample_rate: None,
        frame_length: 1024,
        audio_specific_config: vec![0x11, 0x90],
        average_bitrate: 0,
    })
}

fn mp3() -> Codec {
    Codec::MpegAudio(MpegAudioConfig { layer: 3, channels: 2, sample_rate: 44_100 })
}

fn movie(codecs: &[Codec]) -> Arc<Movie> {
    let track = |codec: &Codec| Track {
        id: 1,
        kind: TrackKind::Text,
        timescale: Timescale::MPEG,
        language: "ger".into(),
        name: None,
        enabled: true,
        alternate_group: 0,
        purposes: Default::default(),
        captions: None,
        codec: codec.clone(),
        sample_entry: Vec::new(),
        edits: Vec::new(),
        samples: SampleTable::default(),
        descriptions: None,
        protection: None,
    };
    Arc::new(Movie {
        timescale: Timescale::MPEG,
        duration: 0,
        fragmented: false,
        tracks: codecs.iter().map(track).collect(),
        clips: Vec::new(),
        chapters: Vec::new(),
        artwork: None,
        tags: millpond_media::Tags::default(),
        programmes: Vec::new(),
        skipped: Vec::new(),
        external_media: None,
        system_headers: Vec::new(),
        fragment_headers: Vec::new(),
        cut_short: false,
        outline: None,
        is_indivisible: false,
        stitched: None,
        extraction: None,
    })
}

/// A sample of NAL units with 4-byte lengths.
fn sample(units: &[&[u8]]) -> Vec<u8> {
    units.iter().flat_map(|u| (u.len() as u32).to_be_bytes().into_iter().chain(u.iter().copied())).collect()
}

/// One stream with its samples, which are consecutive in object `track`.
#[derive(Clone)]
struct Input {
    samples: Vec<Vec<u8>>,
    units: Vec<Unit>,
}

impl Input {
    fn new(samples: Vec<Vec<u8>>, first: i64, step: i64, sync_every: usize) -> Self {
        let mut at = 1000;
        let units = samples.iter().enumerate().map(|(n, sample)| {
            let range = ByteRange::at(at, sample.len() as u64);
            at = range.end;
            let dts = first + n as i64 * step;
            let sync = n.is_multiple_of(sync_every);
            Unit { range, dts, pts: dts, sync, sets: sync.then_some(0) }
        });
        Self { units: units.collect(), samples }
    }

    fn read(&self, range: ByteRange) -> Vec<u8> {
        self.samples.concat()[range.start as usize - 1000..range.end as usize - 1000].to_vec()
    }
}

fn plan(codecs: &[Codec], inputs: &[Input], counters: &[u8], table: u8) -> Result<Box<dyn Rewrite>, PackageError> {
    plan_movie(&movie(codecs), inputs, counters, table, None)
}

fn plan_movie(
    movie: &Arc<Movie>,
    inputs: &[Input],
    counters: &[u8],
    table: u8,
    until: Option<i64>,
) -> Result<Box<dyn Rewrite>, PackageError> {
    let stream = |(track, input): (usize, &Input)| ElementaryStream {
        movie: movie.clone(),
        track,
        object: ObjectIndex(track as u16),
        units: input.units.clone(),
        first_counter: counters[track],
        continuity: Continuity::Counted,
        until,
    };
    match segment(inputs.iter().enumerate().map(stream).collect(), TableNumbers { counter: table, version: 0 })? {
        Plan::Rewrite(rewrite) => Ok(rewrite),
        Plan::Items(_) => panic!("a transport stream is rewritten"),
    }
}

fn run(codecs: &[Codec], inputs: &[Input], counters: &[u8], table: u8) -> Result<Vec<u8>, PackageError> {
    run_movie(movie(codecs), inputs, counters, table, None)
}

fn run_movie(
    movie: Arc<Movie>,
    inputs: &[Input],
    counters: &[u8],
    table: u8,
    until: Option<i64>,
) -> Result<Vec<u8>, PackageError> {
    let mut rewrite = plan_movie(&movie, inputs, counters, table, until)?;
    let mut out = Vec::new();
    let mut floors = BTreeMap::new();
    while let Some(read) = rewrite.next_read() {
        let floor = rewrite.floor(read.object);
        assert!(read.range.is_empty() || floor <= read.range.start, "{read:?} begins before {floor}");
        let before = floors.insert(read.object, floor).unwrap_or(0);
        assert!(before <= floor, "the floor fell from {before} to {floor}");
        // Written output may be sent at once: nothing is changed later.
        let mut part = Vec::new();
        rewrite.push(&inputs[usize::from(read.object.0)].read(read.range), &mut part)?;
        out.extend(part);
    }
    rewrite.finish(&mut out)?;
    assert!(floors.keys().all(|object| rewrite.floor(*object) == u64::MAX), "nothing is read after the end");
    if let Some(len) = rewrite.len() {
        assert_eq!(out.len() as u64, len, "the length that was promised");
    }
    Ok(out)
}

/// Number of packets with payload, for a stream that doesn't carry the clock or whose units are close together.
fn packets(codec: &Codec, units: &[Unit]) -> u64 {
    stream_packets(&movie(std::slice::from_ref(codec)).tracks[0], units, false, None).payload
}

#[derive(Debug, Default)]
struct Found {
    /// PES packets, each with the number of the transport packet in which it begins.
    pes: Vec<(usize, Vec<u8>)>,
    clocks: Vec<u64>,
    packets: u64,
    discontinuities: usize,
}

/// Demultiplexes a segment, and checks continuity from the given counters on, which are updated.
fn demultiplex(bytes: &[u8], counters: &mut BTreeMap<u16, u8>) -> BTreeMap<u16, Found> {
    let (packets, rest) = bytes.as_chunks::<188>();
    assert!(rest.is_empty());
    let mut found: BTreeMap<u16, Found> = BTreeMap::new();
    for (n, p) in packets.iter().enumerate() {
        assert_eq!(p[0], 0x47);
        let pid = u16::from_be_bytes([p[1] & 0x1f, p[2]]);
        let stream = found.entry(pid).or_default();
        stream.packets += 1;
        let has_payload = p[3] & 0x10 != 0;
        let counter = counters.entry(pid).or_insert(p[3] & 0x0f);
        let mut body = 4;
        if p[3] & 0x20 != 0 {
            body += 1 + usize::from(p[4]);
            if p[4] > 0 && p[5] & 0x80 != 0 {
                stream.discontinuities += 1;
                *counter = p[3] & 0x0f;
            }
            if p[4] > 0 && p[5] & 0x10 != 0 {
                let clock = p[6..11].iter().fold(0, |sum: u64, byte| sum << 8 | u64::from(*byte));
                stream.clocks.push(clock >> 7);
            }
        }
        if !has_payload {
            assert_eq!(p[3] & 0x0f, counter.wrapping_sub(1) & 0x0f, "the counter stays at packet {n}");
            assert_eq!((p[1] & 0x40, p[4], p[5]), (0, 183, 0x10), "what has no payload has the clock");
            continue;
        }
        assert_eq!(p[3] & 0x0f, *counter, "continuity of PID {pid:#x} at packet {n}");
        *counter = (*counter + 1) & 0x0f;
        if p[1] & 0x40 != 0 {
            stream.pes.push((n, Vec::new()));
        }
        stream.pes.last_mut().unwrap().1.extend_from_slice(&p[body..]);
    }
    found
}

/// Returns presentation time, decoding time and payload of a PES packet.
fn open(pes: &[u8]) -> (u64, u64, &[u8]) {
    let time = |b: &[u8]| {
        (u64::from(b[0]) >> 1 & 7) << 30
            | u64::from(b[1]) << 22
            | u64::from(b[2] >> 1) << 15
            | u64::from(b[3]) << 7
            | u64::from(b[4] >> 1)
    };
    assert_eq!(pes[..3], [0, 0, 1]);
    let stated = usize::from(u16::from_be_bytes([pes[4], pes[5]]));
    assert!(stated == 0 || stated + 6 == pes.len(), "{stated} in {}", pes.len());
    let pts = time(&pes[9..]);
    let dts = if pes[7] & 0x40 != 0 { time(&pes[14..]) } else { pts };
    (pts, dts, &pes[9 + usize::from(pes[8])..])
}

fn nal(header: u8, len: usize) -> Vec<u8> {
    (0..len).map(|i| if i == 0 { header } else { (i % 250) as u8 + 1 }).collect()
}

#[test]
fn segments_of_two_streams_join_without_a_gap() {
    let codecs = [avc(4), aac()];
    let mut counters = BTreeMap::from([(0, 15), (0x1000, 15), (0x100, 7), (0x101, 9)]);
    let mut next = [7, 9];
    for number in 0..5 {
        let start = 900_000 + number * 90_000;
        let mut video = Input::new((0..25).map(|n| sample(&[&nal(0x65, 100 + n * 77)])).collect(), start, 3600, 25);
        video.units.iter_mut().for_each(|u| u.pts += 7200);
        let audio = Input::new((0..46).map(|n| nal(1, 200 + n * 3)).collect(), start, 1920, 1);
        let inputs = [video, audio];
        let before = next;
        for (next, (codec, input)) in next.iter_mut().zip(codecs.iter().zip(&inputs)) {
            *next = (u64::from(*next) + packets(codec, &input.units)) as u8;
        }
        let out = run(&codecs, &inputs, &before, (15 + number) as u8).unwrap();
        let found = demultiplex(&out, &mut counters);
        assert_eq!(found[&0].packets + found[&0x1000].packets, 2);
        let expected: u64 = inputs.iter().zip(&codecs).map(|(i, c)| packets(c, &i.units)).sum();
        assert_eq!(out.len() as u64, (expected + 2) * 188);

        let pictures = &found[&0x100].pes;
        assert_eq!(pictures.len(), 25);
        for (n, (_, pes)) in pictures.iter().enumerate() {
            let (pts, dts, payload) = open(pes);
            assert_eq!((pts as i64, dts as i64), (inputs[0].units[n].pts, inputs[0].units[n].dts));
            let mut wanted = vec![0, 0, 0, 1, 9, 0xf0];
            if n == 0 {
                wanted.extend([&[0, 0, 0, 1][..], &SPS, &[0, 0, 0, 1], &PPS].concat());
            }
            wanted.extend([&[0, 0, 0, 1], &inputs[0].samples[n][4..]].concat());
            assert_eq!(payload, wanted, "picture {n}");
            assert_eq!(found[&0x100].clocks[n], dts - 9000);
        }
        assert_eq!(found[&0x101].clocks, [0; 0]);

        let mut frames = Vec::new();
        for (at, pes) in &found[&0x101].pes {
            let (pts, _, payload) = open(pes);
            frames.extend_from_slice(payload);
            let late = pictures.iter().find(|(place, pes)| place < at && open(pes).1 >= pts);
            assert!(late.is_none(), "audio at {pts} is behind its picture");
        }
        let header = |frame: &Vec<u8>| match &codecs[1] {
            Codec::Aac(config) => config.adts_header(frame.len()).unwrap(),
            _ => unreachable!(),
        };
        let wanted: Vec<u8> = inputs[1].samples.iter().flat_map(|f| header(f).into_iter().chain(f.clone())).collect();
        assert_eq!(frames, wanted);
    }
}

#[test]
fn a_delimiter_in_the_sample_is_not_doubled() {
    for (codec, delimiter, picture) in [(avc(4), vec![0x09, 0x10], 0x65), (hevc(), vec![0x46, 0x01, 0x10], 0x26)] {
        let samples = (0..400).map(|n| sample(&[&delimiter, &nal(picture, n + 1)])).collect();
        let input = Input::new(samples, 900_000, 3600, 2);
        let expected = packets(&codec, &input.units);
        let out = run(&[codec], std::slice::from_ref(&input), &[0], 0).unwrap();
        let found = demultiplex(&out, &mut BTreeMap::new());
        assert_eq!(found[&0x100].packets, expected);
        for (n, (_, pes)) in found[&0x100].pes.iter().enumerate() {
            let (_, _, payload) = open(pes);
            let front = [&[0, 0, 0, 1], &delimiter[..]].concat();
            assert!(payload.starts_with(&front), "picture {n}");
            let back = [&[0, 0, 0, 1], &input.samples[n][delimiter.len() + 8..]].concat();
            assert!(payload.ends_with(&back), "picture {n}");
            let sets = if n % 2 == 1 { 0 } else { payload.len() - front.len() - back.len() };
            assert_eq!(payload.len(), front.len() + sets + back.len());
        }
    }
}

#[test]
fn short_lengths_leave_the_size_open() {
    let samples = (0..9).map(|n| [&[0, 200][..], &nal(0x65, 200), &[0, n], &nal(0x06, n.into())].concat()).collect();
    let input = Input::new(samples, 900_000, 3600, 9);
    let rewrite = plan(&[avc(2)], std::slice::from_ref(&input), &[3], 0).unwrap();
    assert_eq!(rewrite.len(), None);
    let out = run(&[avc(2)], &[input], &[3], 0).unwrap();
    let found = demultiplex(&out, &mut BTreeMap::from([(0x100, 0)]));
    assert_eq!((found[&0x100].pes.len(), found[&0x100].discontinuities), (9, 1));
}

#[test]
fn frames_share_a_packet_until_a_gap_or_a_limit() {
    let pictures = Input::new(Vec::new(), 0, 1, 1);
    let beside = |input: &Input| {
        let out = run(&[avc(4), mp3()], &[pictures.clone(), input.clone()], &[0, 0], 0).unwrap();
        demultiplex(&out, &mut BTreeMap::new()).remove(&0x101).unwrap()
    };
    let times = |found: &Found| -> Vec<(i64, usize)> {
        found.pes.iter().map(|(_, pes)| (open(pes).0 as i64, open(pes).2.len() / 400)).collect()
    };
    let mut input = Input::new(vec![vec![1; 400]; 60], 900_000, 2351, 1);
    input.units[20..].iter_mut().for_each(|u| (u.dts, u.pts) = (u.dts + 5000, u.pts + 5000));
    let found = beside(&input);
    let expected = [(0, 12), (12, 8), (20, 12), (32, 12), (44, 12), (56, 4)];
    assert_eq!(times(&found), expected.map(|(n, frames)| (input.units[n].pts, frames)));
    assert_eq!(found.clocks.len(), 0);

    // Audio that carries the clock has a PES packet at least every 100 ms, and between 18 and 20 a PCR of its own.
    let alone = demultiplex(&run(&[mp3()], &[input.clone()], &[0], 0).unwrap(), &mut BTreeMap::new());
    let starts = (0..18).step_by(3).chain([18]).chain((20..60).step_by(3));
    let frames = |n: usize| match n {
        18 => 2,
        59 => 1,
        _ => 3,
    };
    let expected: Vec<_> = starts.map(|n| (input.units[n].pts, frames(n))).collect();
    assert_eq!(times(&alone[&0x100]), expected);
    assert_eq!(alone[&0x100].clocks.len(), expected.len() + 1);

    let found = beside(&Input::new(vec![vec![1; 3000]; 10], 900_000, 2351, 1));
    assert_eq!(found.pes.iter().map(|(_, pes)| open(pes).2.len()).collect::<Vec<_>>(), [9000, 9000, 9000, 3000]);
}

#[test]
fn neighbours_are_read_at_once() {
    let mut input = Input::new(vec![vec![1; 400]; 30], 900_000, 2351, 1);
    let mut rewrite = plan(&[mp3()], std::slice::from_ref(&input), &[0], 0).unwrap();
    let whole = ObjectRange { object: ObjectIndex(0), range: ByteRange::at(1000, 30 * 400) };
    assert_eq!((rewrite.next_read(), rewrite.next_read()), (Some(whole), Some(whole)));
    assert_eq!(rewrite.covering(), [whole]);
    input.units[10..].iter_mut().for_each(|u| u.range = ByteRange::at(u.range.start + 1, 400));
    let mut rewrite = plan(&[mp3()], &[input], &[0], 0).unwrap();
    assert_eq!(rewrite.next_read().map(|r| r.range), Some(ByteRange::at(1000, 4000)));
}

#[test]
fn a_segment_without_media_has_its_tables() {
    let out = run(&[avc(4)], &[Input::new(vec![], 0, 1, 1)], &[0], 5).unwrap();
    assert_eq!(out.len(), 2 * 188);
    assert_eq!(run(&[], &[], &[], 5).unwrap().len(), 2 * 188);
}

/// Writes a segment of pictures. Returns the segment and its damage.
fn written(codec: Codec, input: &Input) -> (Vec<u8>, Option<crate::plan::Damage>) {
    let mut rewrite = plan(&[codec], std::slice::from_ref(input), &[0], 0).unwrap();
    let mut out = Vec::new();
    while let Some(read) = rewrite.next_read() {
        rewrite.push(&input.read(read.range), &mut out).unwrap();
    }
    rewrite.finish(&mut out).unwrap();
    assert!(rewrite.len().is_none_or(|len| len == out.len() as u64), "the length that was promised");
    (out, rewrite.damage().cloned())
}

#[test]
fn zeros_replace_the_damaged_end_of_a_picture_which_is_named() {
    let whole = sample(&[&[0x41, 1], &nal(0x41, 4000)]);
    let damaged = |at: usize| {
        let mut sample = whole.clone();
        sample[at] = 9;
        sample
    };
    // The length of the second unit is damaged, then the length of the first unit.
    let input = Input::new(vec![whole.clone(), damaged(6), damaged(0), whole.clone()], 900_000, 3600, 100);
    let (out, damage) = written(avc(4), &input);
    let found = demultiplex(&out, &mut BTreeMap::new());
    assert_eq!(found[&0x100].packets, packets(&avc(4), &input.units));
    let pictures: Vec<_> = found[&0x100].pes.iter().map(|(_, pes)| open(pes).2).collect();
    let delimiter: [u8; 6] = [0, 0, 0, 1, 9, 0xf0];
    assert_eq!(pictures[1], [&delimiter[..], &[0, 0, 0, 1, 0x41, 1], &[0; 4004]].concat());
    assert_eq!(pictures[2], [&delimiter[..], &[0; 4010]].concat());
    assert_eq!(pictures[3], [&delimiter[..], &[0, 0, 0, 1, 0x41, 1, 0, 0, 0, 1], &nal(0x41, 4000)].concat());
    let damage = damage.unwrap();
    assert_eq!((damage.object, damage.samples), (ObjectIndex(0), 2));
    assert_eq!(
        damage.first.to_string(),
        "object 0, sample at bytes 5010..9020: found NAL unit length 150998944 with 4000 bytes left at byte 6 of the \
         sample, expected NAL units whose length fields fill the sample exactly"
    );
    let (_, damage) = written(avc(4), &Input::new(vec![whole], 900_000, 3600, 1));
    assert_eq!(damage, None);
}

#[test]
fn a_damaged_picture_with_short_lengths_ends_where_it_is_damaged() {
    let samples = vec![[&[0, 200][..], &nal(0x65, 200), &[9, 0, 1, 2]].concat(); 3];
    let (out, damage) = written(avc(2), &Input::new(samples, 900_000, 3600, 9));
    let found = demultiplex(&out, &mut BTreeMap::from([(0x100, 0)]));
    assert!(found[&0x100].pes.iter().all(|(_, pes)| open(pes).2.ends_with(&nal(0x65, 200))));
    assert_eq!(damage.map(|damage| damage.samples), Some(3));
}

#[test]
fn what_does_not_fit_is_refused() {
    let refused = |codec: Codec, len| {
        let input = Input::new(vec![vec![0; len]], 900_000, 1, 1);
        plan(&[codec], &[input], &[0], 0).err().map(|e| e.to_string()).unwrap_or_default()
    };
    assert_eq!(refused(aac(), 8184), "");
    assert!(refused(aac(), 8185).contains("8185 bytes"));
    assert_eq!(refused(mp3(), 65_527), "");
    assert!(refused(mp3(), 65_528).contains("65528 bytes"));
    assert!(refused(Codec::Tx3g, 1).contains("MPEG-2 TS"));
    let streams = |n: usize| plan(&vec![mp3(); n], &vec![Input::new(vec![], 0, 1, 1); n], &vec![0; n], 0);
    assert!(streams(15).is_ok());
    for n in [30, 100] {
        assert!(matches!(streams(n).err(), Some(PackageError::TooMany { .. })), "{n}");
    }
    let missing = ElementaryStream {
        movie: movie(&[]),
        track: 3,
        object: ObjectIndex(2),
        units: Vec::new(),
        first_counter: 0,
        continuity: Continuity::Counted,
        until: None,
    };
    assert_eq!(
        segment(vec![missing], TableNumbers::default()).err(),
        Some(PackageError::Track { object: ObjectIndex(2), track: 3, found: 0 })
    );
}

#[test]
fn calls_out_of_order_are_errors() {
    let input = Input::new(vec![vec![1; 400]; 2], 900_000, 2351, 1);
    let mut out = Vec::new();
    let mut rewrite = plan(&[mp3()], &[input], &[0], 0).unwrap();
    assert!(matches!(rewrite.push(&[1; 400], &mut out), Err(PackageError::Call { .. })));
    assert!(matches!(rewrite.finish(&mut out), Err(PackageError::Call { .. })));
    assert!(rewrite.next_read().is_some());
    assert!(matches!(rewrite.push(&[1; 400], &mut out), Err(PackageError::Call { .. })));
    assert_eq!(out, [0; 0]);
}

/// Program clock reference bases of a segment in order, with the decoding time of the unit after each.
fn clocks_of(found: &BTreeMap<u16, Found>) -> Vec<u64> {
    found.get(&0x100).map_or_else(Vec::new, |stream| stream.clocks.clone())
}

#[test]
fn the_clock_is_said_every_100_ms() {
    let mut counters = BTreeMap::new();
    let (mut clocks, mut next) = (Vec::new(), 0);
    // Audio of 21 ms per frame with a hole; audio of 128 ms per frame; five pictures per second; one in two seconds.
    for (codec, step, count) in [(aac(), 1920, 40), (aac(), 11_520, 9), (avc(4), 18_000, 5), (avc(4), 180_000, 2)] {
        let is_video = matches!(codec, Codec::Avc(_));
        let start = clocks.last().map_or(900_000, |clock| *clock as i64 + 9_000 + 4_000);
        let samples = (0..count).map(|n| if is_video { sample(&[&nal(0x65, 100 + n)]) } else { nal(1, 200 + n) });
        let mut input = Input::new(samples.collect(), start, step, 4);
        if count == 40 {
            input.units[20..].iter_mut().for_each(|u| (u.dts, u.pts) = (u.dts + 50_000, u.pts + 50_000));
        }
        let until = input.units[input.units.len() - 1].dts + step;
        let out = run_movie(movie(std::slice::from_ref(&codec)), &[input.clone()], &[next], 0, Some(until)).unwrap();
        let packets = stream_packets(&movie(&[codec]).tracks[0], &input.units, true, Some(until));
        assert_eq!(out.len() as u64, 188 * (2 + packets.payload + packets.clocks));
        counters.retain(|pid, _| *pid == 0x100);
        let found = demultiplex(&out, &mut counters);
        next = (u64::from(next) + packets.payload) as u8;
        let own = clocks_of(&found);
        assert_eq!(own[0] as i64, start - 9000);
        assert!(own.windows(2).all(|pair| pair[0] < pair[1] && pair[1] - pair[0] <= 9000), "{own:?}");
        assert!(until - 9000 - *own.last().unwrap() as i64 <= 9000, "{own:?} until {until}");
        clocks = own;
    }
}

#[test]
fn clocks_of_a_long_hole_are_bounded() {
    let input = Input::new(vec![nal(1, 200); 3], 900_000, 1 << 40, 1);
    let packets = stream_packets(&movie(&[aac()]).tracks[0], &input.units, true, None);
    assert_eq!((packets.payload, packets.clocks), (6, 6000));
    let out = run(&[aac()], &[input], &[0], 0).unwrap();
    assert_eq!(out.len(), 188 * 6008);
}

#[test]
fn rotated_pictures_say_so_before_their_first_slice() {
    for (codec, message, delimiter, sei, slice) in [
        (avc(4), &[6, 47, 3, 0x18, 0, 9, 0x80][..], &[9, 0xf0][..], vec![6, 5, 1, 7, 0x80], 0x65),
        (hevc(), &[0x4e, 1, 47, 3, 0x18, 0, 0x18, 0x80][..], &[0x46, 1, 0x50][..], vec![0x4e, 1, 5, 1, 7, 0x80], 0x26),
    ] {
        let samples = (0..60).map(|n| sample(&[&sei, &nal(slice, 40 + n)])).collect();
        let input = Input::new(samples, 900_000, 3600, 20);
        let mut movie = Arc::unwrap_or_clone(movie(std::slice::from_ref(&codec)));
        movie.tracks[0].kind =
            TrackKind::Video { width: 640, height: 360, orientation: Orientation::rotated(90), pixel_aspect: (1, 1) };
        let out = run_movie(Arc::new(movie), std::slice::from_ref(&input), &[0], 0, None).unwrap();
        let found = demultiplex(&out, &mut BTreeMap::new());
        for (n, (_, pes)) in found[&0x100].pes.iter().enumerate() {
            let (_, _, payload) = open(pes);
            let slice = nal(slice, 40 + n);
            let end = match n % 20 {
                0 => [&[0, 0, 0, 1][..], &sei, &[0, 0, 0, 1], message, &[0, 0, 0, 1], &slice].concat(),
                _ => [&[0, 0, 0, 1][..], delimiter, &[0, 0, 0, 1], &sei, &[0, 0, 0, 1], &slice].concat(),
            };
            assert!(payload.ends_with(&end), "picture {n}: {payload:x?}");
        }
    }
}

#[test]
fn a_segment_begins_with_parameter_sets_whatever_its_flags_say() {
    let mut input = Input::new((0..3).map(|n| sample(&[&nal(0x41, 50 + n)])).collect(), 900_000, 3600, 100);
    (input.units[0].sync, input.units[0].sets) = (false, Some(0));
    let out = run(&[avc(4)], &[input], &[0], 0).unwrap();
    let found = demultiplex(&out, &mut BTreeMap::new());
    let has_sets = |n: usize| open(&found[&0x100].pes[n].1).2.windows(SPS.len()).any(|bytes| bytes == SPS);
    assert_eq!([has_sets(0), has_sets(1), has_sets(2)], [true, false, false]);
}

proptest! {
    #[test]
    fn any_sizes_come_back(
        pictures in prop::collection::vec((any::<bool>(), prop::collection::vec(0_usize..700, 1..4)), 1..20),
        frames in prop::collection::vec(0_usize..3000, 0..40),
        counters in any::<[u8; 2]>(),
    ) {
        let picture = |(delimiter, sizes): &(bool, Vec<usize>)| {
            let mut units: Vec<_> = sizes.iter().map(|&len| nal(0x41, len)).collect();
            if *delimiter {
                units.insert(0, vec![9, 0xf0]);
            }
            sample(&units.iter().map(Vec::as_slice).collect::<Vec<_>>())
        };
        let video = Input::new(pictures.iter().map(picture).collect(), 900_000, 3600, 7);
        let audio = Input::new(frames.iter().map(|&len| nal(1, len)).collect(), 895_000, 1920, 1);
        let codecs = [avc(4), aac()];
        let out = run(&codecs, &[video.clone(), audio.clone()], &counters, 0).unwrap();
        let starts = BTreeMap::from([(0x100, counters[0] & 15), (0x101, counters[1] & 15)]);
        let found = demultiplex(&out, &mut starts.clone());
        prop_assert_eq!(found[&0x100].packets, packets(&codecs[0], &video.units));
        for ((_, pes), (delimiter, sizes)) in found[&0x100].pes.iter().zip(&pictures) {
            let (_, _, payload) = open(pes);
            let units: usize = sizes.iter().map(|len| len + 4).sum();
            let sets = if payload.len() > units + 6 { SPS.len() + PPS.len() + 8 } else { 0 };
            prop_assert_eq!(payload.len(), units + 6 + sets, "delimiter {}", delimiter);
        }
        let audio_bytes: usize = found.get(&0x101).map_or(0, |f| f.pes.iter().map(|(_, pes)| open(pes).2.len()).sum());
        prop_assert_eq!(audio_bytes, frames.iter().map(|len| len + 7).sum::<usize>());
    }

    #[test]
    fn no_bytes_make_it_panic(
        samples in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..6),
        times in any::<(i64, i64)>(),
        length_size in 0_u8..6,
    ) {
        let mut input = Input::new(samples, 0, 1, 2);
        for unit in &mut input.units {
            (unit.dts, unit.pts) = times;
        }
        for codec in [avc(length_size), hevc(), aac(), mp3()] {
            prop_assert!(run(&[codec], std::slice::from_ref(&input), &[0], 0).is_ok());
        }
    }
}
