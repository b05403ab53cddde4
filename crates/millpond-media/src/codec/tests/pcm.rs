//! Sample entries of PCM.

use super::*;

/// Reads a sample entry of PCM.
fn pcm(entry: &[u8]) -> (PcmCoding, u16, u32) {
    match read(entry).codec {
        Codec::Pcm(config) => (config.coding, config.channels, config.sample_rate),
        other => panic!("{other:?}"),
    }
}

#[test]
fn pcm_of_all_kinds() {
    use ByteOrder::{Big, Little};
    let of = |kind: &[u8; 4], bits: u8, boxes: &[u8]| {
        let mut entry = sound(kind, boxes);
        entry[8 + 19] = bits;
        parse(&entry).map(|_| pcm(&entry).0).map_err(|error| error.to_string())
    };
    let enda = |order| boxed(b"wave", &[&boxed(b"frma", &[b"in24"]), &boxed(b"enda", &[&[0, order]])]);
    let pcmc = |flags, bits| boxed(b"pcmC", &[&[0, 0, 0, 0, flags, bits]]);
    for (kind, bits, boxes, expected) in [
        (b"raw ", 8, vec![], PcmCoding::Unsigned8),
        (b"raw ", 16, vec![], PcmCoding::Signed16(Big)),
        (b"NONE", 8, vec![], PcmCoding::Unsigned8),
        (b"twos", 8, vec![], PcmCoding::Signed8),
        (b"twos", 16, vec![], PcmCoding::Signed16(Big)),
        (b"sowt", 8, vec![], PcmCoding::Signed8),
        (b"sowt", 24, vec![], PcmCoding::Signed24(Little)),
        (b"in24", 16, vec![], PcmCoding::Signed24(Big)),
        (b"in24", 16, enda(0), PcmCoding::Signed24(Big)),
        (b"in24", 16, enda(1), PcmCoding::Signed24(Little)),
        (b"in32", 16, enda(1), PcmCoding::Signed32(Little)),
        (b"fl32", 16, vec![], PcmCoding::Float32(Big)),
        (b"fl64", 16, enda(1), PcmCoding::Float64(Little)),
        (b"twos", 32, vec![], PcmCoding::Signed32(Big)),
        (b"alaw", 16, vec![], PcmCoding::ALaw),
        (b"ipcm", 16, pcmc(0, 24), PcmCoding::Signed24(Big)),
        (b"ipcm", 16, pcmc(1, 16), PcmCoding::Signed16(Little)),
        (b"ipcm", 16, pcmc(0, 32), PcmCoding::Signed32(Big)),
        (b"fpcm", 16, pcmc(1, 64), PcmCoding::Float64(Little)),
    ] {
        assert_eq!(of(kind, bits, &boxes), Ok(expected), "{}", show(*kind));
    }
    for (kind, boxes, expected) in [
        (b"ipcm", pcmc(0, 20), "'ipcm' (PCM of 20 bits) is not supported"),
        (b"ipcm", vec![], "found no pcmC box, expected one"),
        (b"lpcm", vec![], "found 'lpcm' without a description of version 2, expected one"),
        (b"fpcm", pcmc(0, 16), "'fpcm' (PCM in floating point of 16 bits) is not supported"),
    ] {
        let error = of(kind, 16, &boxes).unwrap_err();
        assert!(error.ends_with(expected), "{error}");
    }
    let error = parse_sample_entry(&sound(b"ipcm", &pcmc(0, 20)), *b"soun", PATH, 0).unwrap_err();
    let form = error.unread_codec().map(|codec| (codec.medium, &codec.name[..]));
    assert_eq!(form, Some((Medium::Audio, "'ipcm' (PCM of 20 bits)")), "PCM is read in other forms");
    assert_eq!(pcm(&bytes(e::PCM_IN24)), (PcmCoding::Signed24(Little), 2, 48_000));
    let error = parse_sample_entry(&sound(b"raw ", &[]), *b"vide", PATH, 0).unwrap_err();
    assert!(error.to_string().contains("'raw ' (uncompressed video) is not supported"), "{error}");
}

#[test]
fn lpcm_is_what_its_flags_say() {
    let mut entry = bytes(e::PCM_LPCM);
    assert_eq!(pcm(&entry), (PcmCoding::Signed24(ByteOrder::Little), 6, 96_000));
    let flags = 8 + 28 + 24;
    entry[flags + 3] = 0xe;
    assert_eq!(pcm(&entry).0, PcmCoding::Signed24(ByteOrder::Big));
    for (format, reason) in [
        (0xd, "'lpcm' (PCM in floating point of 24 bits) is not supported"),
        (0x2c, "'lpcm' (PCM of 24 bits, format 0x2c) is not supported"),
        (8, "'lpcm' (unsigned PCM of 24 bits) is not supported"),
    ] {
        entry[flags + 3] = format;
        assert!(refused(&entry).ends_with(reason), "{}", refused(&entry));
    }
    // Values of 24 bits in four bytes.
    entry[flags + 3] = 0xc;
    entry[flags + 7] = 24;
    assert!(refused(&entry).contains("format 0xc"));
}

#[test]
fn a_rate_that_does_not_fit_is_the_clock_and_units_fit_packets() {
    let mut entry = sound(b"twos", &[]);
    entry[8 + 24..8 + 28].fill(0);
    let SampleEntry { codec: Codec::Pcm(config), kind } = read(&entry).with_clock(Timescale::new(96_000).unwrap())
    else {
        panic!()
    };
    assert_eq!((config.sample_rate, kind), (96_000, audio(1, 96_000)));
    let units = |coding, channels, sample_rate| {
        let config = PcmConfig { fourcc: *b"sowt", coding, channels, sample_rate };
        (config.frame_bytes(), config.frames_per_unit())
    };
    assert_eq!(units(PcmCoding::MuLaw, 1, 8000), (1, 160), "20 ms");
    assert_eq!(units(PcmCoding::Signed16(ByteOrder::Little), 2, 48_000), (4, 300), "1200 bytes");
    assert_eq!(units(PcmCoding::Signed24(ByteOrder::Big), 8, 96_000), (24, 50));
    assert_eq!(units(PcmCoding::Unsigned8, 1, 0), (1, 1));
    entry[8 + 16..8 + 18].copy_from_slice(&1000_u16.to_be_bytes());
    assert!(refused(&entry).contains("'twos' (PCM of 1000 channels) is not supported"));
    entry[8 + 16..8 + 18].fill(0);
    assert!(refused(&entry).contains("found no channels, expected at least one"));
}
