use super::*;

fn bytes_of(kind: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 8).unwrap();
    [&length.to_be_bytes()[..], kind, body].concat()
}

fn movie(list: &[u8]) -> Vec<u8> {
    bytes_of(b"moov", &bytes_of(b"udta", &bytes_of(b"chpl", list)))
}

fn chapter(seconds: u64, title: &str) -> Chapter {
    Chapter { start: Duration::from_secs(seconds), title: title.to_owned() }
}

#[test]
fn lists_of_both_versions_are_read() {
    let entries = [&0_u64.to_be_bytes()[..], b"\x03One", &50_000_000_u64.to_be_bytes(), b"\x04Zw\xc3\xb6"].concat();
    let expected = [chapter(0, "One"), chapter(5, "Zw\u{f6}")];
    for head in [&[0, 0, 0, 0, 2][..], &[1, 0, 0, 0, 0, 0, 0, 0, 2], &[1, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]] {
        let moov = movie(&[head, &entries].concat());
        assert_eq!(listed(&Node::new(&moov, 0, "moov").unwrap()), expected, "{head:?}");
    }
    for cut in [&[][..], &[0, 0, 0, 0], &[1, 0, 0, 0, 0, 0], &[0, 0, 0, 0, 9, 1]] {
        let moov = movie(cut);
        assert!(listed(&Node::new(&moov, 0, "moov").unwrap()).is_empty(), "{cut:?}");
    }
}

#[test]
fn titles_near_each_other_are_read_together() {
    let place = |start: u64| ByteRange::at(start, 10);
    let places = [place(100), place(200), place(1 << 20), ByteRange::at(50, 0)];
    let track = ChapterTrack { places: places.map(|place| (Duration::from_secs(place.start), place)).to_vec() };
    assert_eq!(track.wanted(), [ByteRange::new(100, 210), place(1 << 20)]);
    let first = [&[0, 3][..], b"One.....", &[0; 90], &[0, 6, 0xfe, 0xff, 0, b'Z', 0, b'w'], &[0; 2]].concat();
    let read = |range: ByteRange| (range.start == 100).then(|| Bytes::from(first.clone()));
    let expected = [chapter(50, ""), chapter(100, "One"), chapter(200, "Zw"), chapter(1 << 20, "")];
    assert_eq!(track.read(read), expected);
    let far = (0..100).map(|number| (Duration::ZERO, place(number << 20))).collect();
    assert_eq!(ChapterTrack { places: far }.wanted().len(), MOST_READS);
}

#[test]
fn edits_move_chapters() {
    let [second, half] = [1000, 500].map(|ticks| Timescale::new(ticks).unwrap());
    let empty = Edit { duration: 1000, media_time: None };
    let from = Edit { duration: 0, media_time: Some(1000) };
    assert!((shift(&[empty, from], half, second) - -1.0).abs() < 1e-9);
    assert!(shift(&[], half, second).abs() < 1e-9);
}
