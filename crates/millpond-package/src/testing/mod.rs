//! Synthetic movies for tests.

pub(crate) mod encrypted;

use crate::{
    plan::{Plan, PlanItem},
    presentation::{Presentation, PresentationOptions, SourceObject},
};
use millpond_media::{
    Codec, Description, Descriptions, Orientation, SampleTable, Tags, Timescale, Work,
    codec::{AacConfig, AvcConfig},
    movie::{Edit, Movie, Track, TrackKind},
};
use std::sync::Arc;

/// One sample of a synthetic track.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Made {
    pub(crate) size: u32,
    pub(crate) duration: u32,
    pub(crate) composition: i32,
    pub(crate) sync: bool,
}

pub(crate) fn table(samples: &[Made], mut offset: u64, gap: u64) -> SampleTable {
    let mut builder = SampleTable::builder();
    for s in samples {
        builder.push(offset, s.size, s.duration, s.composition, s.sync);
        offset += u64::from(s.size) + gap;
    }
    builder.finish()
}

fn boxed(kind: &[u8; 4], content: &[u8]) -> Vec<u8> {
    let mut b = (content.len() as u32 + 8).to_be_bytes().to_vec();
    b.extend_from_slice(kind);
    b.extend_from_slice(content);
    b
}

/// An `avc1` sample entry of 640x360 pixels.
pub(crate) fn avc_entry() -> Vec<u8> {
    let mut c = vec![0; 6];
    c.extend([0, 3]);
    c.extend([0; 16]);
    c.extend([2, 128, 1, 104, 0, 72, 0, 0, 0, 72, 0, 0, 0, 0, 0, 0, 0, 1]);
    c.extend([0; 32]);
    c.extend([0, 24, 255, 255]);
    let avcc = [1, 0x64, 0, 0x1f, 0xff, 0xe1, 0, 4, 0x67, 0x64, 0, 0x1f, 1, 0, 2, 0x68, 0xee];
    c.extend(boxed(b"avcC", &avcc));
    boxed(b"avc1", &c)
}

/// An `mp4a` sample entry of AAC-LC, 48 kHz, stereo.
fn aac_entry() -> Vec<u8> {
    let mut c = vec![0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 16, 0, 0, 0, 0, 0xbb, 0x80, 0, 0];
    let descriptor = [
        0, 0, 0, 0, 3, 25, 0, 1, 0, 4, 17, 0x40, 0x15, 0, 0, 0, 0, 1, 0xf4, 0, 0, 1, 0xf4, 0, 5, 2, 0x11, 0x90, 6, 1, 2,
    ];
    c.extend(boxed(b"esds", &descriptor));
    boxed(b"mp4a", &c)
}

pub(crate) fn video(samples: SampleTable, timescale: u32, edits: Vec<Edit>) -> Track {
    Track {
        id: 1,
        kind: TrackKind::Video { width: 640, height: 360, orientation: Orientation::UPRIGHT, pixel_aspect: (1, 1) },
        timescale: Timescale::new(timescale).unwrap(),
        language: "und".into(),
        name: None,
        enabled: true,
        alternate_group: 0,
        purposes: Default::default(),
        captions: None,
        codec: Codec::Avc(AvcConfig {
            fourcc: *b"avc1",
            profile: 0x64,
            compatibility: 0,
            level: 0x1f,
            nal_length_size: 4,
            sps: vec![vec![0x67, 0x64, 0, 0x1f]],
            pps: vec![vec![0x68, 0xee]],
            color: None,
        }),
        sample_entry: avc_entry(),
        edits,
        samples,
        descriptions: None,
        protection: None,
    }
}

/// Returns a video track of two clips with sample entries of their own, which change at sample `at` and later at `back`.
pub(crate) fn joined(track: Track, at: u32, back: u32) -> Track {
    let Codec::Avc(first) = &track.codec else { panic!("{:?}", track.codec) };
    let second = AvcConfig { pps: vec![vec![0x68, 0xef, 1, 2, 3, 4, 5, 6, 7]], ..first.clone() };
    let entries = [first.clone(), second].map(|config| Description::new(Codec::Avc(config), avc_entry()).unwrap());
    let stretches = vec![(0, 0), (at, 1), (back, 0)];
    Track { descriptions: Some(Box::new(Descriptions::new(entries.into(), stretches))), ..track }
}

/// Returns a movie of pictures of 10 s, and of sound whose second half needs another decoder.
pub(crate) fn clips() -> Arc<Movie> {
    let pictures = video(table(&reordered(250, 25, 900), 48, 0), 12_800, Vec::new());
    let sound = audio(table(&frames(234), 1 << 24, 0), "eng", Vec::new());
    let mut rest = SampleTable::builder();
    rest.set_start_dts(sound.samples.end_dts());
    for (number, made) in (0_u64..).zip(frames(234)) {
        rest.push((1 << 25) + number * 400, made.size, made.duration, 0, true);
    }
    let Codec::Aac(config) = &sound.codec else { panic!("{:?}", sound.codec) };
    let other = Codec::Aac(AacConfig { sample_rate: 44_100, ..config.clone() });
    let kind = TrackKind::Audio { channels: 2, sample_rate: 44_100 };
    let second = Track { codec: other, kind, samples: rest.finish(), ..sound.clone() };
    let mut made = movie(vec![pictures, sound.clone()]);
    Arc::make_mut(&mut made).clips = vec![sound, second];
    made
}

pub(crate) fn audio(samples: SampleTable, language: &str, edits: Vec<Edit>) -> Track {
    Track {
        id: 2,
        kind: TrackKind::Audio { channels: 2, sample_rate: 48_000 },
        timescale: Timescale::new(48_000).unwrap(),
        language: language.into(),
        name: None,
        enabled: true,
        alternate_group: 0,
        purposes: Default::default(),
        captions: None,
        codec: Codec::Aac(AacConfig {
            object_type_indication: 0x40,
            object_type: 2,
            signalled_object_type: 2,
            sample_rate_index: 3,
            sample_rate: 48_000,
            channel_config: 2,
            channels: 2,
            frame_length: 1024,
            extension_sample_rate: None,
            audio_specific_config: vec![0x11, 0x90],
            average_bitrate: 128_000,
        }),
        sample_entry: aac_entry(),
        edits,
        samples,
        descriptions: None,
        protection: None,
    }
}

pub(crate) fn movie(tracks: Vec<Track>) -> Arc<Movie> {
    let timescale = Timescale::new(1000).unwrap();
    Arc::new(Movie {
        timescale,
        duration: 0,
        fragmented: false,
        tracks,
        clips: Vec::new(),
        chapters: Vec::new(),
        artwork: None,
        tags: Tags::default(),
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

pub(crate) fn presentation(movies: Vec<Arc<Movie>>) -> Presentation {
    let sources = movies.into_iter().map(|m| SourceObject::new(m, "film.mp4".into())).collect();
    Presentation::build(sources, Vec::new(), &PresentationOptions::default(), &Work::unlimited()).unwrap()
}

/// A video of 25 frames per second at 12,800 ticks, with a key frame every `gop` frames and two reordered frames after
/// it.
pub(crate) fn reordered(frames: u32, gop: u32, size: u32) -> Vec<Made> {
    let mut shown = Vec::new();
    while (shown.len() as u32) < frames {
        let base = shown.len() as u32;
        shown.push(base);
        let mut at = base;
        while at + 3 < base + gop {
            shown.extend([at + 3, at + 1, at + 2]);
            at += 3;
        }
        shown.extend(at + 1..base + gop);
    }
    (0..frames)
        .zip(shown)
        .map(|(decoded, shown)| Made {
            size: size + decoded % gop,
            duration: 512,
            composition: (shown as i32 - decoded as i32 + 1) * 512,
            sync: decoded % gop == 0,
        })
        .collect()
}

/// Frames of AAC at 48 kHz.
pub(crate) fn frames(count: u32) -> Vec<Made> {
    (0..count).map(|i| Made { size: 300 + i % 7, duration: 1024, composition: 0, sync: true }).collect()
}

/// Returns the bytes of a plan, with every object byte 0.
pub(crate) fn bytes(plan: Plan) -> Vec<u8> {
    let Plan::Items(parts) = plan else { panic!("not a plan of parts") };
    let mut out = Vec::new();
    for part in parts {
        match part {
            PlanItem::Bytes(b) => out.extend_from_slice(&b),
            PlanItem::Object(r) => out.resize(out.len() + r.range.len() as usize, 0),
        }
    }
    out
}
