//! Segments that the demultiplexer for received streams reads back.

use super::*;
use millpond_media::ts::{Demultiplexer, Framed, Framer, TsConfiguration, TsEvent, TsFrame, TsLimits};

const PROFILED: [u8; 26] = [
    0x67, 0x64, 0x00, 0x0c, 0xac, 0xd9, 0x41, 0x41, 0x9f, 0x9f, 0x01, 0x10, 0x00, 0x00, 0x03, 0x00, 0x10, 0x00, 0x00,
    0x03, 0x03, 0x20, 0xf1, 0x42, 0x99, 0x60,
];
const PICTURE_SET: [u8; 2] = [0x68, 0xe8];

/// A slice that begins a picture.
fn slice(header: u8, len: usize) -> Vec<u8> {
    let mut slice = nal(header, len.max(3));
    slice[1] = 0x88;
    slice
}

/// Frames and configurations of each stream.
fn frames(bytes: &[u8]) -> BTreeMap<u16, (Vec<TsFrame>, Vec<TsConfiguration>)> {
    let (mut demultiplexer, mut events) = (Demultiplexer::new(TsLimits::default()), Vec::new());
    demultiplexer.push(bytes, &mut events);
    demultiplexer.finish(&mut events);
    let (mut found, mut framers) = (BTreeMap::new(), BTreeMap::new());
    let mut take = |pid: u16, out: Vec<Framed>| {
        let (frames, configurations): &mut (Vec<_>, Vec<_>) = found.entry(pid).or_default();
        for framed in out {
            match framed {
                Framed::Frame(frame) => frames.push(frame),
                Framed::Configuration(configuration) => configurations.push(configuration),
                Framed::Fault(fault) => panic!("{pid:#x}: {fault}"),
            }
        }
    };
    for event in events {
        match event {
            TsEvent::Streams(map) => {
                for stream in map.streams {
                    framers.insert(stream.pid, Framer::new(stream.coding).expect("frames"));
                }
            }
            TsEvent::Unit(unit) => {
                let mut out = Vec::new();
                framers.get_mut(&unit.pid).expect("a known stream").push(&unit, &mut out);
                take(unit.pid, out);
            }
            TsEvent::Fault(fault) => panic!("{fault}"),
            _ => {}
        }
    }
    for (pid, framer) in &mut framers {
        let mut out = Vec::new();
        framer.finish(&mut out);
        take(*pid, out);
    }
    found
}

#[test]
fn joined_segments_give_back_their_samples() {
    let Codec::Avc(config) = avc(4) else { unreachable!() };
    let config = AvcConfig { sps: vec![PROFILED.to_vec()], pps: vec![PICTURE_SET.to_vec()], ..config };
    let codecs = [Codec::Avc(config), aac()];
    let (mut bytes, mut all) = (Vec::new(), [Vec::new(), Vec::new()]);
    let mut next = [0, 0];
    for number in 0..4 {
        let start = 900_000 + number * 90_000;
        let pictures = (0..25).map(|n| sample(&[&slice(if n == 0 { 0x65 } else { 0x41 }, 100 + n * 77)]));
        let mut video = Input::new(pictures.collect(), start, 3600, 25);
        video.units.iter_mut().for_each(|unit| unit.pts += 7200);
        let audio = Input::new((0..46).map(|n| nal(1, 200 + n * 3)).collect(), start, 1920, 1);
        let inputs = [video, audio];
        bytes.extend(run(&codecs, &inputs, &next, number as u8).unwrap());
        for (track, input) in inputs.iter().enumerate() {
            next[track] = (u64::from(next[track]) + packets(&codecs[track], &input.units)) as u8;
            let units = input.units.iter().zip(&input.samples);
            all[track]
                .extend(units.map(|(unit, sample)| (unit.pts as u64, unit.dts as u64, unit.sync, sample.clone())));
        }
    }
    let found = frames(&bytes);
    let rows = |pid: u16| {
        let frames = &found[&pid].0;
        frames.iter().map(|frame| (frame.pts, frame.dts, frame.is_sync, frame.data.to_vec())).collect::<Vec<_>>()
    };
    assert!(rows(0x100) == all[0] && rows(0x101) == all[1]);
    let avc = TsConfiguration::Avc { sps: vec![PROFILED.to_vec()], pps: vec![PICTURE_SET.to_vec()] };
    assert_eq!(found[&0x100].1, [avc]);
    assert_eq!(found[&0x101].1, [TsConfiguration::Aac { audio_specific_config: vec![0x11, 0x90] }]);
}
