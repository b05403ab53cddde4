use super::*;
use crate::fixture::{AAC, AVC, bx, fields, tables, words};

fn parsed(bytes: &[u8]) -> Result<TrackHeader, MediaError> {
    let node = Node::new(bytes, 0, "trak").unwrap();
    parse(&node, Tkhd::parse(&node)?, &[1], false)
}

fn with_box(mut trak: Vec<u8>, extra: &[u8]) -> Vec<u8> {
    trak.extend_from_slice(extra);
    let size = trak.len() as u32;
    trak[..4].copy_from_slice(&size.to_be_bytes());
    trak
}

#[test]
fn a_header_has_it_all() {
    let udta = bx(b"udta", &[&bx(b"name", &[b"Director's commentary"])]);
    let header = parsed(&with_box(crate::fixture::trak(7, b"soun", AAC, &tables(1, 1, 0)), &udta)).unwrap();
    assert_eq!((header.id, header.enabled, header.timescale.get()), (7, true, 1000));
    assert_eq!((&*header.language, header.name.as_deref()), ("eng", Some("Director's commentary")));
    assert!(matches!(header.kind, TrackKind::Audio { sample_rate: 48_000, .. }));
    assert_eq!(header.location, None);
}

#[test]
fn handlers_that_nobody_plays_are_unsupported() {
    let error = parsed(&crate::fixture::trak(1, b"tmcd", AVC, &[])).unwrap_err();
    assert_eq!(error.path(), "trak/mdia/hdlr");
    assert!(matches!(error, MediaError::Unsupported { .. }));
}

/// Returns a picture track whose header has this group and matrix.
fn with_header(group: u32, [a, b, c, d]: [i32; 4]) -> TrackHeader {
    let mut bytes = crate::fixture::trak(1, b"vide", AVC, &tables(1, 1, 0));
    let tkhd = bytes.windows(4).position(|kind| kind == b"tkhd").unwrap() + 4;
    bytes[tkhd + 34..tkhd + 36].copy_from_slice(&(group as u16).to_be_bytes());
    for (place, value) in [(40, a), (44, b), (52, c), (56, d)] {
        bytes[tkhd + place..tkhd + place + 4].copy_from_slice(&value.to_be_bytes());
    }
    parsed(&bytes).unwrap()
}

#[test]
fn the_scale_of_the_matrix_is_an_aspect_of_pixels() {
    const ONE: i32 = 0x1_0000;
    let aspect = |header: &TrackHeader| match header.kind {
        TrackKind::Video { pixel_aspect, orientation, .. } => (pixel_aspect, orientation.degrees()),
        _ => panic!(),
    };
    let wide = with_header(3, [ONE * 4 / 3, 0, 0, ONE]);
    assert_eq!((aspect(&wide).1, wide.alternate_group), (0, 3));
    let (h, v) = aspect(&wide).0;
    assert!((f64::from(h) / f64::from(v) - 4.0 / 3.0).abs() < 1e-4, "{h}:{v}");
    let pasp = wide.sample_entry.windows(4).filter(|kind| kind == b"pasp").count();
    let stated = wide.sample_entry.get(wide.sample_entry.len() - 8..).unwrap();
    assert_eq!((pasp, stated), (1, &words(&[h, v])[..]), "in the init segment too");
    assert_eq!(wide.sample_entry[..4], (wide.sample_entry.len() as u32).to_be_bytes());
    // Turned, and with both scales alike.
    assert_eq!(aspect(&with_header(0, [0, ONE * 2, -ONE, 0])), ((2, 1), 90));
    assert_eq!(aspect(&with_header(0, [ONE * 2, 0, 0, ONE * 2])), ((1, 1), 0));
    for odd in [[0; 4], [ONE, 0, 0, 0], [ONE * 100, 0, 0, ONE], [i32::MIN, 0, 0, 1]] {
        assert_eq!(aspect(&with_header(0, odd)).0, (1, 1), "{odd:?}");
    }
}

#[test]
fn mirrored_pictures_stay_mirrored() {
    const ONE: i32 = 0x1_0000;
    let orientation = |matrix| match with_header(0, matrix).kind {
        TrackKind::Video { orientation, .. } => orientation,
        _ => panic!(),
    };
    assert_eq!(orientation([-ONE, 0, 0, ONE]), Orientation::UPRIGHT.mirrored());
    assert_eq!(orientation([0, ONE, ONE, 0]), Orientation::rotated(270).mirrored());
    assert_eq!(orientation([0, ONE, -ONE, 0]), Orientation::rotated(90));
}

#[test]
fn languages() {
    assert_eq!(language(0x15c7), "eng");
    assert_eq!(language(0x55c4), "und");
    assert_eq!(language(2), "deu", "a QuickTime number");
    assert_eq!(language(0), "und");
    assert_eq!(language(0x7fff), "und");
}

#[test]
fn names_of_writers_are_no_names() {
    for name in ["VideoHandler", "Core Media Audio", "GPAC ISO Video Handler", "film.264#video", "", "a\u{1}"] {
        assert!(!is_useful(name), "{name}");
    }
    assert!(is_useful("Deutsch"));
}

#[test]
fn both_versions_of_edit_lists() {
    let with = |elst: Vec<u8>| {
        let bytes = bx(b"trak", &[&bx(b"edts", &[&elst])]);
        edits(&Node::new(&bytes, 0, "trak").unwrap())
    };
    let expected = [Edit { duration: 5, media_time: None }, Edit { duration: 7, media_time: Some(1024) }];
    let short = fields(b"elst", &[0, 2, 5, u32::MAX, 0x1_0000, 7, 1024, 0x1_0000]);
    assert_eq!(with(short).unwrap(), expected);
    let m = u32::MAX;
    let long = fields(b"elst", &[0x0100_0000, 9, 0, 5, m, m, 0x1_0000, 0, 7, 0, 1024, 0x1_0000]);
    assert_eq!(with(long).unwrap(), expected, "a count beyond the bytes is cut");
    let endless = bx(b"elst", &[&words(&[0, 10_001]), &[0; 12 * 10_001]]);
    assert!(with(endless).unwrap_err().to_string().contains("10001 edits"));
}

#[test]
fn data_references() {
    let location = |entry: &[u8]| {
        let dref = bx(b"dref", &[&words(&[0, 1]), entry]);
        let minf = bx(b"minf", &[&bx(b"dinf", &[&dref])]);
        data_location(&Node::new(&minf, 0, "minf").unwrap(), &crate::fixture::hex(AVC))
    };
    assert_eq!(location(&fields(b"url ", &[1])), Ok(None));
    assert_eq!(location(&fields(b"url ", &[0])), Ok(None), "no location is this file");
    assert_eq!(location(&bx(b"url ", &[&[0; 4], b"film.mp4\0"])), Ok(Some("film.mp4".to_owned())));
    assert_eq!(location(&bx(b"alis", &[&[0, 0, 0, 1]])), Ok(None));
    assert!(location(&bx(b"alis", &[&[0; 4]])).unwrap_err().to_string().contains("alias"));
    assert!(location(&bx(b"urn ", &[&[0; 4], b"urn:x\0\0"])).unwrap_err().to_string().contains("urn"));
}
