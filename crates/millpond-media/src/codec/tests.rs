mod entries;
mod making;
mod pcm;

use super::*;
use crate::{codec::orientation::Orientation, units::Timescale};
use entries as e;
use proptest::prelude::*;

const PATH: &str = "moov/trak[1]/mdia/minf/stbl/stsd/entry";

fn bytes(hex: &str) -> Vec<u8> {
    hex.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn boxed(kind: &[u8; 4], parts: &[&[u8]]) -> Vec<u8> {
    let body = parts.concat();
    [&(body.len() as u32 + 8).to_be_bytes(), &kind[..], &body].concat()
}

fn handler_of(kind: [u8; 4]) -> FourCc {
    match &kind {
        b"avc1" | b"avc3" | b"hvc1" | b"hev1" | b"av01" | b"vp09" | b"vp08" | b"encv" => *b"vide",
        b"dva1" | b"dvav" | b"dvh1" | b"dvhe" | b"dav1" => *b"vide",
        b"tx3g" | b"text" => *b"sbtl",
        b"wvtt" => *b"text",
        b"stpp" => *b"subt",
        _ => *b"soun",
    }
}

fn parse(entry: &[u8]) -> Result<SampleEntry, MediaError> {
    let kind = entry.get(4..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default();
    parse_sample_entry(entry, handler_of(kind), PATH, 1000)
}

fn read(entry: &[u8]) -> SampleEntry {
    parse(entry).unwrap()
}

fn refused(entry: &[u8]) -> String {
    parse(entry).unwrap_err().to_string()
}

const fn video(width: u16, height: u16, pixel_aspect: (u32, u32)) -> TrackKind {
    TrackKind::Video { width, height, orientation: Orientation::UPRIGHT, pixel_aspect }
}

const fn audio(channels: u16, sample_rate: u32) -> TrackKind {
    TrackKind::Audio { channels, sample_rate }
}

const SMALL: TrackKind = video(320, 180, (1, 1));

/// An `mp4a` sample entry (mono, 24 kHz in its own fields) with this object type and AudioSpecificConfig.
fn mp4a(object_type: u8, config: &[u8]) -> Vec<u8> {
    let mut decoder = vec![4, 15 + config.len() as u8, object_type, 0x15, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xfa, 0];
    decoder.extend([5, config.len() as u8]);
    decoder.extend(config);
    let mut es = vec![0, 0, 0, 0, 3, decoder.len() as u8 + 6, 0, 1, 0];
    es.extend(decoder);
    es.extend([6, 1, 2]);
    sound(b"mp4a", &boxed(b"esds", &[&es]))
}

fn sound(kind: &[u8; 4], boxes: &[u8]) -> Vec<u8> {
    let mut fields = [0_u8; 28];
    fields[7] = 1;
    fields[17] = 1;
    fields[19] = 16;
    fields[24..26].copy_from_slice(&24_000_u16.to_be_bytes());
    boxed(kind, &[&fields, boxes])
}

fn visual(kind: &[u8; 4], boxes: &[u8]) -> Vec<u8> {
    let mut fields = [0_u8; 78];
    fields[7] = 1;
    fields[24..28].copy_from_slice(&[0x07, 0x80, 0x04, 0x38]);
    boxed(kind, &[&fields, boxes])
}

fn aac(entry: &[u8]) -> (AacConfig, TrackKind) {
    match read(entry) {
        SampleEntry { codec: Codec::Aac(config), kind } => (config, kind),
        other => panic!("{other:?}"),
    }
}

/// Every playable entry: entry, `Codec::name`, `Codec::parameter`, kind, samples per frame, whether TS can carry it.
type Row = (&'static str, &'static str, &'static str, TrackKind, Option<u32>, bool);

const ROWS: [Row; 29] = [
    (e::AVC, "H.264", "avc1.64000c", SMALL, None, true),
    (e::AVC_IN_BAND, "H.264", "avc3.42c00c", video(320, 180, (4, 3)), None, true),
    (e::AVC_HIGH_10, "H.264", "avc1.6e000c", SMALL, None, true),
    (e::HEVC, "HEVC", "hvc1.1.6.L60.90", SMALL, None, true),
    (e::HEVC_HDR, "HEVC", "hev1.2.4.H123.90", SMALL, None, true),
    (e::AV1, "AV1", "av01.0.00M.08", SMALL, None, false),
    (e::AV1_HDR, "AV1", "av01.0.00M.10.0.110.09.16.09.0", SMALL, None, false),
    (e::VP9, "VP9", "vp09.00.11.08", SMALL, None, false),
    (e::VP9_HDR, "VP9", "vp09.03.11.10.02.09.16.09.00", SMALL, None, false),
    (e::AAC, "AAC", "mp4a.40.2", audio(2, 48_000), Some(1024), true),
    (e::AAC_QUICKTIME, "AAC", "mp4a.40.2", audio(6, 48_000), Some(1024), true),
    (e::AAC_QUAD, "AAC", "mp4a.40.2", audio(4, 44_100), Some(1024), false),
    (e::AAC_7_1, "AAC", "mp4a.40.2", audio(8, 48_000), Some(1024), true),
    (e::MP3, "MP3", "mp4a.6B", audio(2, 48_000), Some(1152), true),
    (e::MP3_LOW, "MP3", "mp4a.69", audio(2, 22_050), Some(576), true),
    (e::MP3_QUICKTIME, "MP3", "mp4a.6B", audio(1, 48_000), Some(1152), true),
    (e::AC3, "AC-3", "ac-3", audio(6, 48_000), Some(1536), true),
    (e::EAC3, "E-AC-3", "ec-3", audio(6, 48_000), Some(1536), true),
    (e::OPUS, "Opus", "opus", audio(2, 48_000), None, false),
    (e::OPUS_5_1, "Opus", "opus", audio(6, 48_000), None, false),
    (e::FLAC, "FLAC", "fLaC", audio(1, 48_000), Some(4608), false),
    (e::ALAC, "Apple Lossless", "alac", audio(1, 48_000), Some(4096), false),
    (e::ALAC_QUICKTIME, "Apple Lossless", "alac", audio(2, 48_000), Some(4096), false),
    (e::PCM_QUICKTIME, "PCM", "ipcm", audio(1, 48_000), None, false),
    (e::PCM_IN24, "PCM", "ipcm", audio(2, 48_000), None, false),
    (e::PCM_LPCM, "PCM", "ipcm", audio(6, 96_000), None, false),
    (e::PCM_FLOAT, "PCM", "fpcm", audio(2, 48_000), None, false),
    (e::PCM_ULAW, "G.711 μ-law", "ulaw", audio(2, 48_000), None, false),
    (e::TX3G, "3GPP timed text", "tx3g", TrackKind::Text, None, false),
];

#[test]
fn real_sample_entries_are_read() {
    for (hex, name, parameter, kind, samples, ts) in ROWS {
        let entry = read(&bytes(hex));
        let codec = &entry.codec;
        let found = (codec.name(), &*codec.parameter(), entry.kind, codec.samples_per_frame(), codec.fits_ts());
        assert_eq!(found, (name, parameter, kind, samples, ts));
    }
}

/// Converts the entry to its ISO form, which must consist of whole boxes, have the same codec, and convert to itself.
fn iso_agrees(entry: &[u8], codec: &Codec, kind: TrackKind) -> Vec<u8> {
    let written = from_quicktime::sample_entry(&Node::new(entry, 0, PATH).unwrap(), codec, kind);
    let mut back = parse(&written).unwrap();
    let again = from_quicktime::sample_entry(&Node::new(&written, 0, PATH).unwrap(), &back.codec, back.kind);
    let same_codec = match (&mut back.codec, codec) {
        (Codec::Pcm(found), Codec::Pcm(config)) => {
            found.fourcc = config.fourcc;
            // A rate that exceeds the field is taken from the clock.
            found.sample_rate = config.sample_rate;
            found == config
        }
        // Every rate of MP3 fits into the field.
        (Codec::MpegAudio(_), Codec::MpegAudio(config)) if config.sample_rate > u32::from(u16::MAX) => true,
        (found, codec) => found == codec,
    };
    assert!(same_codec, "{:?} and {codec:?}", back.codec);
    assert_eq!(again, written);
    written
}

/// Returns the boxes of an entry after its fields, which must fill it.
fn boxes_of(entry: &[u8], fields: usize) -> Vec<(FourCc, Vec<u8>)> {
    let node = Node::new(entry, 0, PATH).unwrap();
    assert_eq!(node.whole.len(), entry.len());
    let boxes: Vec<_> = node.children_after(fields).map(|child| (child.kind, child.body.to_vec())).collect();
    assert_eq!(8 + fields + boxes.iter().map(|(_, body)| body.len() + 8).sum::<usize>(), entry.len());
    boxes
}

#[test]
fn entries_of_iso_stay_and_those_of_quicktime_become_them() {
    let written = |hex: &str| {
        let entry = bytes(hex);
        let SampleEntry { codec, kind } = read(&entry);
        iso_agrees(&entry, &codec, kind)
    };
    for same in
        [e::AVC, e::AVC_IN_BAND, e::AAC, e::AAC_QUAD, e::AAC_7_1, e::AC3, e::OPUS_5_1, e::FLAC, e::ALAC, e::TX3G]
    {
        assert_eq!(written(same), bytes(same));
    }
    assert_eq!(written(e::PCM_ULAW), bytes(e::PCM_ULAW), "ISO has no such entry");
    for hex in [e::HEVC, e::AV1, e::VP9_HDR] {
        let kinds: Vec<FourCc> = boxes_of(&written(hex), 78).into_iter().map(|(kind, _)| kind).collect();
        assert!(!kinds.contains(b"fiel") && kinds.contains(b"pasp"));
    }
}

#[test]
fn quicktime_pictures_lose_what_is_reserved_and_keep_their_colors() {
    let entry = bytes(e::AVC_QUICKTIME);
    let SampleEntry { codec, kind } = read(&entry);
    let written = iso_agrees(&entry, &codec, kind);
    assert_eq!(written[16..32], [0; 16], "no vendor, no quality");
    let boxes = boxes_of(&written, 78);
    let kinds: Vec<String> = boxes.iter().map(|(kind, _)| show(*kind)).collect();
    assert_eq!(kinds, ["avcC", "colr", "pasp"]);
    assert_eq!(boxes[1].1, *b"nclx\0\x01\0\x01\0\x01\0");
    assert_eq!(read(&written).kind, video(320, 180, (4, 3)));
}

#[test]
fn quicktime_sounds_become_version_0_with_their_configuration() {
    for (hex, kind, fields, kinds) in [
        (e::AAC_QUICKTIME, "mp4a", (6, 16, 48_000), vec!["esds"]),
        (e::ALAC_QUICKTIME, "alac", (2, 16, 48_000), vec!["alac"]),
        (e::MP3_QUICKTIME, "mp4a", (1, 16, 48_000), vec!["esds"]),
        (e::PCM_QUICKTIME, "ipcm", (1, 16, 48_000), vec!["pcmC", "chnl"]),
        (e::PCM_IN24, "ipcm", (2, 24, 48_000), vec!["pcmC", "chnl"]),
        (e::PCM_LPCM, "ipcm", (6, 24, 0), vec!["pcmC", "chnl"]),
        (e::PCM_FLOAT, "fpcm", (2, 32, 48_000), vec!["pcmC", "chnl"]),
    ] {
        let entry = bytes(hex);
        let SampleEntry { codec, kind: track } = read(&entry);
        let written = iso_agrees(&entry, &codec, track);
        let field = |at: usize| u16::from_be_bytes([written[at], written[at + 1]]);
        assert_eq!(String::from_utf8_lossy(&written[4..8]), kind);
        assert_eq!(written[16..24], [0; 8], "version 0");
        assert_eq!((field(24), field(26), field(32)), fields, "{kind}");
        let found: Vec<String> = boxes_of(&written, 28).iter().map(|(kind, _)| show(*kind)).collect();
        assert_eq!(found, kinds);
    }
    let of = |hex| {
        let entry = bytes(hex);
        let SampleEntry { codec, kind } = read(&entry);
        boxes_of(&iso_agrees(&entry, &codec, kind), 28).remove(0).1
    };
    assert_eq!(of(e::PCM_QUICKTIME), [0, 0, 0, 0, 1, 16], "least significant byte first");
    assert_eq!(of(e::PCM_FLOAT), [0, 0, 0, 0, 1, 32]);
    let entry = bytes(e::AAC_QUICKTIME);
    let node = Node::new(&entry, 0, PATH).unwrap();
    let wave = node.children_after(44).find(|child| &child.kind == b"wave").unwrap();
    assert_eq!(of(e::AAC_QUICKTIME), wave.child(b"esds").unwrap().body);
}

#[test]
fn encrypted_entries_are_read_as_the_format_before_encryption() {
    let (avc, aac) = (read(&bytes(e::AVC_ENCRYPTED)), parse_sample_entry(&bytes(e::AAC_ENCRYPTED), *b"soun", PATH, 0));
    assert_eq!((&*avc.codec.parameter(), avc.kind), ("avc1.64000c", SMALL));
    assert_eq!(aac.unwrap().codec.parameter(), "mp4a.40.2");
}

#[test]
fn what_is_not_played_is_named() {
    let cases = [(e::TEXT_QUICKTIME, "'text' (QuickTime text; supported are tx3g, wvtt and stpp) is not supported")];
    for (hex, reason) in cases {
        assert_eq!(refused(&bytes(hex)), format!("{PATH} at byte 1000: {reason}"));
    }
    assert!(refused(&boxed(b"x\0yz", &[])).contains("sample entry 'x\\x00yz' (handler 'soun') is not supported"));
    assert!(refused(&boxed(b"drms", &[])).contains("'drms' encrypted: FairPlay"));
    assert!(
        refused(&visual(b"encv", &[]))
            .contains("'encv' encrypted by an unknown scheme (supported are cenc, cens, cbc1 and cbcs)")
    );
    assert!(refused(&mp4a(0xdd, &[1, 2])).contains("object type 0xdd (Vorbis) is not supported"));
    assert!(refused(&mp4a(0x40, &[0xf8, 0x98, 0x40])).contains("MPEG-4 audio object type 36 is not supported"));
    assert!(refused(&mp4a(0x40, &[])).contains("found no AudioSpecificConfig, expected one"));
    let codec = |entry: &[u8], handler| {
        let error = parse_sample_entry(entry, handler, PATH, 0).unwrap_err();
        error.unread_codec().map(|codec| (codec.medium, codec.name.clone()))
    };
    for (entry, handler, expected) in [
        (boxed(b"dtsc", &[]), *b"soun", Some((Medium::Audio, "DTS"))),
        (boxed(b"x\0yz", &[]), *b"soun", Some((Medium::Audio, "x\\x00yz"))),
        (boxed(b"apch", &[]), *b"vide", Some((Medium::Video, "ProRes"))),
        (bytes(e::TEXT_QUICKTIME), *b"text", Some((Medium::Text, "QuickTime text"))),
        (mp4a(0xdd, &[1, 2]), *b"soun", Some((Medium::Audio, "Vorbis"))),
        (mp4a(0x40, &[0xf8, 0x98, 0x40]), *b"soun", Some((Medium::Audio, "MPEG-4 audio object type 36"))),
        (boxed(b"tmcd", &[]), *b"tmcd", None),
        (boxed(b"drms", &[]), *b"soun", None),
    ] {
        let expected = expected.map(|(medium, name)| (medium, name.to_owned()));
        assert_eq!(codec(&entry, handler), expected, "{:?}", entry.escape_ascii().to_string());
    }
}

/// A sample entry of type `name` with a Dolby Vision record: profile, level, whether it has a base and an enhancement layer, and
/// compatibility.
fn vision(entry: &str, name: &[u8; 4], record: (u8, u8, bool, bool, u8)) -> Vec<u8> {
    let (profile, level, base, enhancement, compatibility) = record;
    let flags = level << 3 | 1 << 2 | u8::from(enhancement) << 1 | u8::from(base);
    let record = [&[1, 0, profile << 1 | level >> 5, flags, compatibility << 4][..], &[0; 19]].concat();
    let kind = if profile > 7 { b"dvvC" } else { b"dvcC" };
    let mut entry = [bytes(entry), boxed(kind, &[&record])].concat();
    let size = entry.len() as u32;
    entry[..4].copy_from_slice(&size.to_be_bytes());
    entry[4..8].copy_from_slice(name);
    entry
}

#[test]
fn dolby_vision_has_the_name_that_players_know() {
    let transfer = |codec: &Codec| codec.color().map(|color| color.transfer);
    for (entry, name, record, parameter, supplemental, kind, range) in [
        (e::HEVC_HDR, b"hev1", (8, 7, true, false, 1), "hev1.2.4.H123.90", Some("dvh1.08.07/db1p"), b"hev1", Some(16)),
        (e::HEVC, b"dvh1", (8, 5, true, false, 4), "hvc1.1.6.L60.90", Some("dvh1.08.05/db4h"), b"hvc1", None),
        (e::HEVC, b"dvhe", (8, 5, true, false, 2), "hev1.1.6.L60.90", Some("dvh1.08.05/db2g"), b"hev1", None),
        (e::HEVC, b"hvc1", (5, 6, true, false, 0), "dvh1.05.06", None, b"dvh1", Some(16)),
        (e::HEVC, b"dvhe", (5, 33, true, false, 0), "dvhe.05.33", None, b"dvhe", Some(16)),
        (e::HEVC, b"hvc1", (7, 6, true, true, 6), "hvc1.1.6.L60.90", None, b"hvc1", None),
        (
            e::AV1_HDR,
            b"dav1",
            (10, 6, true, false, 1),
            "av01.0.00M.10.0.110.09.16.09.0",
            Some("dav1.10.06/db1p"),
            b"av01",
            Some(16),
        ),
        (e::AV1, b"av01", (10, 6, true, false, 0), "dav1.10.06", None, b"dav1", Some(16)),
        (e::AVC, b"dva1", (9, 5, true, false, 2), "avc1.64000c", None, b"avc1", None),
    ] {
        let codec = read(&vision(entry, name, record)).codec;
        assert_eq!(codec.parameter(), parameter, "{record:?}");
        let supplement = codec.supplement().map(|(codec, brand)| format!("{codec}/{brand}"));
        assert_eq!(supplement.as_deref(), supplemental, "{record:?}");
        assert_eq!((codec.entry_type(), transfer(&codec)), (Some(*kind), range), "{record:?}");
    }
}

#[test]
fn an_enhancement_layer_is_left_out_by_name() {
    for name in [b"hvc1", b"dvh1", b"dvhe"] {
        let text = refused(&vision(e::HEVC, name, (7, 6, false, true, 0)));
        assert!(text.contains("(the enhancement layer of Dolby Vision profile 7) is not supported"), "{text}");
    }
    let ac4 = refused(&[&34_u32.to_be_bytes()[..], b"ac-4", &[0; 26]].concat());
    assert!(ac4.contains("'ac-4' (AC-4)"), "{ac4}");
}

#[test]
fn a_picture_track_that_is_not_for_show_is_not_played() {
    let error = parse_sample_entry(&bytes(e::HEVC), *b"auxv", PATH, 0).unwrap_err();
    assert!(error.to_string().contains("'hvc1' in a track with handler 'auxv' is not supported"));
}

#[test]
fn parameter_sets_come_in_decoding_order() {
    let Codec::Avc(avc) = read(&bytes(e::AVC)).codec else { panic!() };
    let kinds: Vec<u8> = avc.parameter_sets().map(|unit| unit[0] & 0x1f).collect();
    assert_eq!((kinds, avc.nal_length_size), (vec![7, 8], 4));
    assert_eq!((avc.sps[0].len(), avc.pps[0].len()), (26, 6));
    let Codec::Hevc(hevc) = read(&bytes(e::HEVC)).codec else { panic!() };
    let kinds: Vec<u8> = hevc.parameter_sets().map(|unit| unit[0] >> 1).collect();
    assert_eq!((kinds, hevc.nal_length_size), (vec![32, 33, 34], 4));
    assert_eq!(hevc.vps[0].len() + hevc.sps[0].len() + hevc.pps[0].len(), 24 + 43 + 7);
}

#[test]
fn colours_of_the_sequence_header_of_av1_reach_the_sample_entry() {
    let stated = bytes(e::AV1_HDR);
    let mut entry = stated.clone();
    let colr = entry.windows(4).position(|four| four == b"colr").unwrap();
    entry[colr..colr + 4].copy_from_slice(b"free");
    let SampleEntry { mut codec, mut kind } = read(&entry);
    assert_eq!((codec.color(), codec.parameter()), (read(&stated).codec.color(), read(&stated).codec.parameter()));
    video::sps::fill_usability(&mut kind, &mut codec, &mut entry);
    let written = &stated[colr - 4..colr + 15];
    assert!(entry.ends_with(written), "{entry:?}");
    assert_eq!(entry[..4], (entry.len() as u32).to_be_bytes());
    let usual = bytes(e::AV1);
    let (SampleEntry { mut codec, mut kind }, mut entry) = (read(&usual), usual.clone());
    video::sps::fill_usability(&mut kind, &mut codec, &mut entry);
    assert_eq!((codec.color(), entry), (None, usual), "usual colours are left out");
}

#[test]
fn colors_are_those_stated() {
    let hdr = Some(Color { primaries: 9, transfer: 16, matrix: 9, full_range: false });
    let cases =
        [(e::HEVC_HDR, hdr), (e::AV1_HDR, hdr), (e::VP9_HDR, hdr), (e::VP9, None), (e::HEVC, None), (e::AAC, None)];
    for (hex, color) in cases {
        assert_eq!(read(&bytes(hex)).codec.color(), color);
    }
}

#[test]
fn configuration_errors_lead_to_the_byte() {
    let mut entry = bytes(e::AVC);
    let avcc = entry.windows(4).position(|w| w == b"avcC").unwrap();
    entry[avcc + 4] = 2;
    let expected = format!("{PATH}/avcC at byte {}: found configurationVersion 2, expected 1", 1000 + avcc + 4);
    assert_eq!(refused(&entry), expected);
    entry[avcc..avcc + 4].copy_from_slice(b"free");
    assert_eq!(refused(&entry), format!("{PATH} at byte 1000: found no avcC box, expected one"));
    let cut = refused(&bytes(e::AVC)[..avcc + 20]);
    assert!(cut.ends_with("found 8 bytes, expected 26: the file is cut short"), "{cut}");
}

#[test]
fn sbr_and_ps_are_found_however_they_are_signalled() {
    // (configuration, parameter, name, core rate, output rate, channels, samples a frame)
    let cases: [(&[u8], _, _, _, _, _, _); 5] = [
        (&[0x13, 0x88], "mp4a.40.2", "AAC", 22_050, 22_050, 1, 1024),
        (&[0x2b, 0x8a, 0x08, 0x00], "mp4a.40.5", "HE-AAC", 22_050, 44_100, 1, 2048),
        (&[0xeb, 0x8a, 0x08, 0x00], "mp4a.40.29", "HE-AAC v2", 22_050, 44_100, 2, 2048),
        (&[0x13, 0x88, 0x56, 0xe5, 0xa0], "mp4a.40.5", "HE-AAC", 22_050, 44_100, 1, 2048),
        (&[0x13, 0x88, 0x56, 0xe5, 0xa5, 0x48, 0x80], "mp4a.40.29", "HE-AAC v2", 22_050, 44_100, 2, 2048),
    ];
    for (config, parameter, name, rate, output, channels, samples) in cases {
        let (aac, kind) = aac(&mp4a(0x40, config));
        let codec = Codec::Aac(aac.clone());
        assert_eq!((&*codec.parameter(), codec.name()), (parameter, name));
        assert_eq!((aac.object_type, aac.sample_rate, aac.sample_rate_index), (2, rate, 7));
        assert_eq!((kind, codec.samples_per_frame()), (audio(channels, output), Some(samples)));
        assert_eq!((aac.audio_specific_config.as_slice(), aac.average_bitrate), (config, 64_000));
        assert!(codec.fits_ts());
    }
}

#[test]
fn unusual_aac_is_read() {
    // AAC LC at an explicit 50,000 Hz, stereo, 960 samples a frame.
    let (config, kind) = aac(&mp4a(0x40, &[0x17, 0x80, 0x61, 0xa8, 0x14]));
    assert_eq!((kind, config.sample_rate_index, config.samples_per_frame()), (audio(2, 50_000), 15, Some(960)));
    assert!(!config.fits_adts());
    // An explicit rate that the table has too.
    let (config, _) = aac(&mp4a(0x40, &[0x17, 0x80, 0x56, 0x22, 0x10]));
    assert_eq!((config.sample_rate, config.sample_rate_index), (44_100, 4));
    // xHE-AAC: object type 42 by escape, 48 kHz, stereo, frames of 1024.
    let (config, kind) = aac(&mp4a(0x40, &[0xf9, 0x46, 0x43, 0x22, 0x00]));
    assert_eq!((kind, config.samples_per_frame()), (audio(2, 48_000), Some(1024)));
    let codec = Codec::Aac(config);
    assert_eq!((&*codec.parameter(), codec.name(), codec.fits_ts()), ("mp4a.40.42", "xHE-AAC", false));
    // MPEG-2 AAC LC, with a configuration and without.
    let (config, kind) = aac(&mp4a(0x67, &[0x13, 0x10]));
    assert_eq!((kind, &*Codec::Aac(config).parameter()), (audio(2, 24_000), "mp4a.67"));
    let (config, kind) = aac(&mp4a(0x67, &[]));
    assert_eq!((kind, config.object_type, config.channel_config), (audio(1, 24_000), 2, 1));
    assert_eq!(config.adts_header(0).map(|header| header[1]), Some(0xf9));
    // Layer III inside MPEG-4 audio.
    assert_eq!(read(&mp4a(0x40, &[0xf8, 0x43, 0x20])).codec.name(), "MP3");
}

#[test]
fn adts_headers_say_what_the_configuration_does() {
    let (config, _) = aac(&bytes(e::AAC_QUICKTIME));
    // 48 kHz LC 5.1, a frame of 1000 bytes.
    assert_eq!(config.adts_header(1000), Some([0xff, 0xf1, 0x4d, 0x80, 0x7d, 0xff, 0xfc]));
    assert!(config.adts_header(8184).is_some());
    assert_eq!(config.adts_header(8185), None);
    assert_eq!(config.adts_header(usize::MAX), None);
    assert_eq!(aac(&bytes(e::AAC_QUAD)).0.adts_header(100), None, "a program config element has no place there");
}

#[test]
fn vpx_configurations_of_all_kinds() {
    let vp = |kind: &[u8; 4], config: &[u8]| read(&visual(kind, &boxed(b"vpcC", &[config]))).codec.parameter();
    assert_eq!(vp(b"vp09", &[1, 0, 0, 0, 2, 31, 0xa2, 9, 18, 9, 0, 0]), "vp09.02.31.10.01.09.18.09.00");
    assert_eq!(vp(b"vp09", &[1, 0, 0, 0, 0, 41, 0x83, 1, 1, 1, 0, 0]), "vp09.00.41.08.01.01.01.01.01");
    // A level of 0 is unknown: that of 1920x1080 instead.
    assert_eq!(vp(b"vp09", &[1, 0, 0, 0, 0, 0, 0x82, 2, 2, 2, 0, 0]), "vp09.00.40.08");
    assert_eq!(vp(b"vp08", &[1, 0, 0, 0, 0, 10, 0x82, 2, 2, 2, 0, 0]), "vp08.00.10.08");
    // Version 0: bit depth, colour space, subsampling, transfer function, range.
    assert_eq!(vp(b"vp09", &[0, 0, 0, 0, 1, 20, 0x82, 0x30, 0, 0]), "vp09.01.20.08.03.02.02.02.00");
}

#[test]
fn av1_strings_say_what_is_not_default() {
    let av1 = |config: &[u8], colr: &[u8]| {
        let boxes = [boxed(b"av1C", &[config]), boxed(b"colr", &[colr])].concat();
        read(&visual(b"av01", &boxes)).codec.parameter()
    };
    assert_eq!(av1(&[0x81, 0x09, 0x0d, 0], b"prof"), "av01.0.09M.08");
    // Professional profile, high tier, 12 bits, 4:2:2.
    assert_eq!(av1(&[0x81, 0x4d, 0xe8, 0], b"prof"), "av01.2.13H.12.0.100.01.01.01.0");
    assert_eq!(av1(&[0x81, 0x09, 0x1c, 0], b"prof"), "av01.0.09M.08.1.110.01.01.01.0");
    let hlg = b"nclx\0\x09\0\x12\0\x09\x80";
    assert_eq!(av1(&[0x81, 0x09, 0x4e, 0], hlg), "av01.0.09M.10.0.112.09.18.09.1");
}

#[test]
fn hevc_strings_have_spaces_and_leave_zeros_out() {
    let hevc = |profile: u8, constraints: [u8; 6]| {
        let head = [1, profile, 0x40, 0, 0, 0];
        let rest = [93, 0xf0, 0, 0xfc, 0xfd, 0xf8, 0xf8, 0, 0, 0x0f, 0];
        read(&visual(b"hvc1", &boxed(b"hvcC", &[&head, &constraints, &rest]))).codec.parameter()
    };
    assert_eq!(hevc(0x01, [0xb0, 0, 0, 0, 0, 0]), "hvc1.1.2.L93.B0");
    assert_eq!(hevc(0x01, [0; 6]), "hvc1.1.2.L93");
    assert_eq!(hevc(0x64, [0x90, 0, 0x08, 0, 0, 0]), "hvc1.A4.2.H93.90.0.8");
}

#[test]
fn dolby_substreams_and_objects_are_counted() {
    let ec3 = |config: &[u8]| read(&sound(b"ec-3", &boxed(b"dec3", &[config])));
    // 5.1 in the independent substream, Lrs/Rrs in a dependent one.
    let entry = ec3(&[0x0c, 0x00, 0x20, 0x0f, 0x02, 0x02]);
    assert_eq!(entry.kind, audio(8, 48_000));
    // 5.1 at 768 kbit/s with object audio of complexity 16.
    let entry = ec3(&[0x18, 0x00, 0x20, 0x0f, 0x00, 0x01, 0x10]);
    let Codec::Eac3(config) = entry.codec else { panic!() };
    assert_eq!((config.data_rate, config.joc_complexity, config.channels), (768, Some(16), 6));
    // Two programs: the second one's channels are not the first one's.
    assert_eq!(ec3(&[0x18, 0x01, 0x20, 0x04, 0x00, 0x60, 0x0f, 0x00]).kind, audio(2, 48_000));
    // A reduced sampling rate is only in the sample entry.
    assert_eq!(ec3(&[0x18, 0x00, 0xe0, 0x02, 0x00]).kind, audio(1, 24_000));
}

#[test]
fn webvtt_has_its_header() {
    let entry = boxed(
        b"wvtt",
        &[
            &[0, 0, 0, 0, 0, 0, 0, 1],
            &boxed(b"vttC", &[b"WEBVTT\nSTYLE\n::cue { color: red }"]),
            &boxed(b"vlab", &[b"http://example.com/a"]),
        ],
    );
    let Codec::Wvtt(config) = read(&entry).codec else { panic!() };
    assert_eq!(config.header, "WEBVTT\nSTYLE\n::cue { color: red }");
    assert_eq!(config.source_label.as_deref(), Some("http://example.com/a"));
    assert!(refused(&boxed(b"wvtt", &[&[0; 8]])).contains("found no vttC box"));
}

#[test]
fn ttml_profiles_are_found_where_they_are_told() {
    let stpp = |strings: &[u8], boxes: &[u8]| read(&boxed(b"stpp", &[&[0, 0, 0, 0, 0, 0, 0, 1], strings, boxes])).codec;
    let mime = |value: &[u8]| boxed(b"mime", &[&[0; 4], value, &[0]]);
    let ttml = b"http://www.w3.org/ns/ttml\0\0\0";
    let cases: [(&[u8], Vec<u8>, &str); 8] = [
        (ttml, Vec::new(), "stpp"),
        (ttml, mime(b"application/ttml+xml;codecs=im1t"), "stpp.ttml.im1t"),
        (ttml, mime(b"application/ttml+xml; charset=utf-8; codecs=\"im2t|etd1\""), "stpp.ttml.im2t"),
        (ttml, mime(b"application/ttml+xml;codecs=\"im1t\\\",BANDWIDTH=1\""), "stpp"),
        (b"http://www.w3.org/ns/ttml http://www.w3.org/ns/ttml/profile/imsc1/text\0\0\0", Vec::new(), "stpp.ttml.im1t"),
        (b"http://www.w3.org/ns/ttml\0http://www.w3.org/ns/ttml/profile/imsc1/image\0\0", Vec::new(), "stpp.ttml.im1i"),
        // Without the two optional strings.
        (b"http://www.w3.org/ns/ttml\0", Vec::new(), "stpp"),
        (b"http://www.w3.org/ns/ttml\0", mime(b"application/ttml+xml;codecs=im1t"), "stpp.ttml.im1t"),
    ];
    for (strings, boxes, parameter) in cases {
        assert_eq!(stpp(strings, &boxes).parameter(), parameter);
    }
    assert!(refused(&boxed(b"stpp", &[&[0; 8], b"http"])).contains("a string without its end"));
}

#[test]
fn heap_is_counted() {
    assert!(read(&bytes(e::HEVC)).codec.heap_bytes() >= 24 + 43 + 7);
    assert_eq!(read(&bytes(e::EAC3)).codec.heap_bytes(), 0);
}

fn every_entry() -> Vec<Vec<u8>> {
    let mut all: Vec<_> = ROWS.iter().map(|row| bytes(row.0)).collect();
    all.extend([e::AVC_ENCRYPTED, e::AAC_ENCRYPTED, e::TEXT_QUICKTIME, e::AVC_QUICKTIME].map(bytes));
    all.push(mp4a(0x40, &[0xeb, 0x8a, 0x08, 0x00]));
    all.push(mp4a(0x40, &[0xf9, 0x46, 0x43, 0x22, 0x00]));
    all.push(sound(b"ec-3", &boxed(b"dec3", &[&[0x0c, 0x01, 0x20, 0x0f, 0x02, 0x02, 0x20, 0x0f, 0, 1, 16]])));
    all.push(sound(b"ipcm", &boxed(b"pcmC", &[&[0, 0, 0, 0, 1, 24]])));
    all.push(boxed(b"wvtt", &[&[0; 8], &boxed(b"vttC", &[b"WEBVTT"]), &boxed(b"vlab", &[b"a"])]));
    all.push(boxed(
        b"stpp",
        &[&[0; 8], b"http://www.w3.org/ns/ttml\0\0\0", &boxed(b"mime", &[&[0; 4], b"a;codecs=b\0"])],
    ));
    all
}

/// Calls all methods of a codec that was read, to find panics.
fn use_it(entry: &[u8]) {
    if let Ok(SampleEntry { codec, kind }) = parse(entry) {
        iso_agrees(entry, &codec, kind);
        let parameter = codec.parameter();
        assert!(parameter.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b','), "{parameter}");
        assert_ne!(codec.samples_per_frame(), Some(0));
        assert_ne!(codec.color(), Some(Color::UNSPECIFIED));
        assert!(codec.heap_bytes() <= 64 * entry.len() + 256);
        if let Codec::Aac(config) = &codec {
            assert_eq!(config.adts_header(0).is_some(), codec.fits_ts());
        }
    }
}

#[test]
fn no_prefix_does_harm() {
    for entry in every_entry() {
        for len in 0..=entry.len() {
            use_it(&entry[..len]);
        }
    }
}

#[test]
fn no_changed_byte_does_harm() {
    for mut entry in every_entry() {
        for at in 0..entry.len() {
            let original = entry[at];
            let flips = (0..8).map(|bit| original ^ 1 << bit);
            for value in flips.chain([0, 1, 2, 0x7f, 0x80, 0xfe, 0xff]) {
                entry[at] = value;
                use_it(&entry);
            }
            entry[at] = original;
        }
    }
}

proptest! {
    #[test]
    fn no_bytes_do_harm(which: prop::sample::Index, tail in prop::collection::vec(any::<u8>(), 0..200), keep in 8_usize..120) {
        let entries = every_entry();
        let entry = which.get(&entries);
        let mut mixed = entry[..keep.min(entry.len())].to_vec();
        mixed.extend(tail);
        let size = mixed.len() as u32;
        mixed[..4].copy_from_slice(&size.to_be_bytes());
        use_it(&mixed);
    }
}
