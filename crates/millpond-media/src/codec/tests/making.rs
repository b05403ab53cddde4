//! Entries made from configurations of real entries.

use super::*;
use crate::codec::make::{self, Made};

/// The statements of a stream with this sample entry give the same codec and kind.
fn remade(hex: &str, make: impl Fn(&Codec) -> Result<Made, MediaError>) -> Made {
    let original = read(&bytes(hex));
    let made = make(&original.codec).unwrap();
    assert_eq!(made.kind, original.kind, "{hex}");
    assert_eq!(made.codec.parameter(), original.codec.parameter());
    let back = read(&made.sample_entry);
    assert_eq!((&back.codec, back.kind), (&made.codec, made.kind), "the entry says what `Made` says");
    iso_agrees(&made.sample_entry, &made.codec, made.kind);
    made
}

/// Returns the box of type `kind` in both entries.
fn configurations<'a>(made: &'a Made, hex: &'a [u8], kind: &[u8; 4]) -> [&'a [u8]; 2] {
    [&made.sample_entry[..], hex].map(|entry| {
        let at = entry.windows(4).position(|window| window == kind).unwrap() - 4;
        let length = u32::from_be_bytes(*entry[at..].first_chunk().unwrap()) as usize;
        &entry[at..at + length]
    })
}

#[test]
fn avc_of_parameter_sets() {
    for hex in [e::AVC, e::AVC_HIGH_10, e::AVC_IN_BAND] {
        let made = remade(hex, |codec| match codec {
            Codec::Avc(config) if config.fourcc == *b"avc3" => make::avc_in_band(&config.sps, &config.pps),
            Codec::Avc(config) => make::avc(&config.sps, &config.pps),
            _ => unreachable!(),
        });
        let original = bytes(hex);
        let [found, expected] = configurations(&made, &original, b"avcC");
        assert_eq!(found, expected, "FFmpeg's own record");
        assert_eq!(made.codec, read(&original).codec);
    }
}

#[test]
fn aac_of_configurations() {
    for hex in [e::AAC, e::AAC_QUICKTIME, e::AAC_QUAD, e::AAC_7_1] {
        let made = remade(hex, |codec| match codec {
            Codec::Aac(config) => make::aac(&config.audio_specific_config),
            _ => unreachable!(),
        });
        let (Codec::Aac(found), Codec::Aac(expected)) = (made.codec, read(&bytes(hex)).codec) else { panic!() };
        assert_eq!(AacConfig { average_bitrate: 0, ..expected }, found);
    }
    // Explicit and backward compatible signalling of SBR.
    for (config, parameter) in [("2b920800", "mp4a.40.5"), ("139056e5a5", "mp4a.40.5"), ("1210", "mp4a.40.2")] {
        assert_eq!(make::aac(&bytes(config)).unwrap().codec.parameter(), parameter, "{config}");
    }
}

#[test]
fn hevc_of_parameter_sets() {
    for hex in [e::HEVC, e::HEVC_HDR] {
        let made = remade(hex, |codec| match codec {
            Codec::Hevc(config) if config.fourcc == *b"hev1" => {
                make::hevc_in_band(&config.vps, &config.sps, &config.pps)
            }
            Codec::Hevc(config) => make::hevc(&config.vps, &config.sps, &config.pps),
            _ => unreachable!(),
        });
        let original = bytes(hex);
        let [found, expected] = configurations(&made, &original, b"hvcC");
        assert_eq!(found, expected, "FFmpeg's own record");
        assert_eq!(made.codec, read(&original).codec);
    }
}

/// First bytes of frames of FFmpeg's encoders, and the configuration that FFmpeg writes for them. It leaves out colours of
/// VP9, and writes no VP8 and MP3 of this kind.
#[test]
fn configurations_of_frames() {
    type Make = fn(&[u8]) -> Result<Made, MediaError>;
    let (mono, stereo, six) = (audio(1, 48_000), audio(2, 48_000), audio(6, 48_000));
    let pictures = video(322, 182, (1, 1));
    let rows: [(Make, &str, &str, TrackKind); 12] = [
        (make::ac3, "0b77480d0c402f842bc1c77aaf5e1be7", "646163331008c0", mono),
        (make::ac3, "0b77fe95144043e106f46370c0c0c218", "64616333101140", stereo),
        (make::ac3, "0b77b50b1e40ebf8403eff99ff0841fc", "64616333103de0", six),
        (make::eac3, "0b7700bf3287c00021064060e3bd57af", "646563330300200200", mono),
        (make::eac3, "0b77017f3487c0002084210838008c06", "646563330600200400", stereo),
        (make::eac3, "0b77037f3f87c00020f8200002004000", "646563330e00200f00", six),
        (make::vp9, "824983420014100b560838241c184a0006", "7670634301000000000b820202020000", pictures),
        (make::vp9, "b124c1a11000a0805ab041c120e0c2c0004b", "7670634301000000030ba6010101", pictures),
        (make::av1, "12000a0b000000043d06d4fbf9004032d714", "6176314381000c000a0b000000043d06d4fbf90040", pictures),
        (
            make::av1,
            "12000a0e000000043d06d4daf95091009040329f0714",
            "6176314381004c000a0e000000043d06d4daf95091009040",
            pictures,
        ),
        (make::mpeg_audio, "fffb90c4", "65736473", audio(1, 44_100)),
        (make::vp8, "3059009d012a4201b600000708858588858488", "7670634301000000000b82020202", pictures),
    ];
    for (make, frame, configuration, kind) in rows {
        let made = make(&bytes(frame)).unwrap();
        assert_eq!(made.kind, kind, "{frame}");
        let configuration = bytes(configuration);
        let found = made.sample_entry.windows(configuration.len()).any(|window| window == configuration);
        assert!(found, "{frame}: {:02x?}", made.sample_entry);
        let back = read(&made.sample_entry);
        assert_eq!((&back.codec, back.kind), (&made.codec, made.kind), "{frame}");
        iso_agrees(&made.sample_entry, &made.codec, made.kind);
        // The bytes of no other frame, and no fewer bytes, panic.
        for len in 0..bytes(frame).len() {
            for (make, ..) in rows {
                let _ = make(&bytes(frame)[..len]);
            }
        }
    }
    let Codec::Av1(config) = make::av1(&bytes(rows[9].1)).unwrap().codec else { panic!() };
    let color = config.color.unwrap();
    assert_eq!((color.primaries, color.transfer, color.matrix, config.bit_depth), (9, 16, 9, 10));
}

#[test]
fn dependent_substreams_are_located() {
    // An independent frame of 32 bytes with 5.1 channels, and a dependent one with rear surround channels, which are bit 6
    // of `chanmap`.
    let mut unit = bytes("0b77000f3f87c00020f8200002004000");
    unit.resize(32, 0);
    unit.extend(bytes("0b77400f3487d02000"));
    unit.resize(64, 0);
    let made = make::eac3(&unit).unwrap();
    assert_eq!(made.kind, audio(8, 48_000), "{:02x?}", made.sample_entry);
}

#[test]
fn frames_of_mpeg_audio_state_the_layer() {
    for (frame, layer, name) in [("fffda4c4", 2, "MPEG audio layer II"), ("ffffc404", 1, "MPEG audio layer I")] {
        let made = make::mpeg_audio(&bytes(frame)).unwrap();
        let Codec::MpegAudio(config) = &made.codec else { panic!("{made:?}") };
        assert_eq!((config.layer, config.sample_rate, made.codec.name()), (layer, 48_000, name));
        assert!(made.codec.fits_ts() && made.codec.fits_fmp4() && !made.codec.fits_beside_video());
    }
}

#[test]
fn opus_and_pcm_of_descriptions() {
    for channels in [1, 2] {
        let made = make::opus(channels).unwrap();
        assert_eq!(made.kind, audio(u16::from(channels), 48_000));
        iso_agrees(&made.sample_entry, &made.codec, made.kind);
    }
    assert!(make::opus(0).is_err() && make::opus(6).is_err());
    let rate = |rate| Timescale::new(rate).unwrap();
    for (coding, channels, sample_rate, parameter) in [
        (PcmCoding::Signed16(ByteOrder::Big), 2, 48_000, "ipcm"),
        (PcmCoding::Signed24(ByteOrder::Big), 6, 96_000, "ipcm"),
        (PcmCoding::Unsigned8, 1, 22_050, "raw"),
        (PcmCoding::Signed8, 1, 22_050, "twos"),
        (PcmCoding::MuLaw, 1, 8000, "ulaw"),
        (PcmCoding::ALaw, 2, 16_000, "alaw"),
    ] {
        let made = make::pcm(coding, channels, rate(sample_rate)).unwrap();
        let Codec::Pcm(config) = &made.codec else { panic!("{made:?}") };
        assert_eq!((config.coding, config.channels, config.sample_rate), (coding, channels, sample_rate));
        assert_eq!((made.kind, &*made.codec.parameter()), (audio(channels, sample_rate), parameter));
    }
    assert!(make::pcm(PcmCoding::MuLaw, 0, rate(8000)).is_err());
    assert!(make::pcm(PcmCoding::Signed24(ByteOrder::Big), 500, rate(8000)).is_err());
}

#[test]
fn aac_without_a_configuration_is_lc() {
    let Codec::Aac(config) = make::aac_lc(2, 44_100).unwrap().codec else { panic!() };
    assert_eq!(config.audio_specific_config, [0x12, 0x10]);
    assert!(make::aac_lc(9, 44_100).is_err() && make::aac_lc(1, 44_101).is_err() && make::aac_lc(0, 8000).is_err());
}

#[test]
fn what_cannot_be_made_says_why() {
    let set = bytes("6764000cacd941419f9f011000000300100000030320f14299");
    let none: [&[u8]; 0] = [];
    let error = |sps: &[&[u8]], pps: &[&[u8]]| make::avc(sps, pps).unwrap_err().to_string();
    assert!(error(&none, &[&[0x68]]).ends_with("found 0 sequence parameter sets, expected 1 to 31"));
    assert!(error(&[&set], &none).ends_with("found 0 picture parameter sets, expected 1 to 255"));
    assert!(error(&[&set], &[&[]]).ends_with("found a parameter set of 0 bytes, expected 1 to 65535"));
    assert!(error(&[&set[..6]], &[&[0x68]]).contains("sequence parameter set"));
    assert!(error(&[&set[..]; 32], &[&[0x68]]).contains("32 sequence parameter sets"));
    assert!(error(&[&set], &[&[0; 60_000][..]; 2]).contains("bytes of configuration"));
    assert!(make::aac(&[]).is_err() && make::aac(&[0x12]).is_err());
    assert!(make::aac(&[0xff; 2000]).unwrap_err().to_string().contains("2000 bytes, expected at most 1024"));
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(first in prop::collection::vec(any::<u8>(), 0..200), second in prop::collection::vec(any::<u8>(), 0..80)) {
        let _ = (make::avc(&[&first], &[&second]), make::hevc(&[&second], &[&first], &[&second]), make::aac(&first));
        let _ = (make::ac3(&first), make::eac3(&first), make::mpeg_audio(&first), make::av1(&first));
        let _ = (make::vp8(&first), make::vp9(&first));
    }
}
