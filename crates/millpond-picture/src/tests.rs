use super::*;

/// Streams of one picture of 50 by 38 that x264 coded, each with the samples that another decoder makes of it without filtering.
const STREAMS: [(&str, &[u8], &[u8]); 7] = [
    ("CAVLC", include_bytes!("fixtures/cavlc.h264"), include_bytes!("fixtures/cavlc.yuv")),
    ("CAVLC, 8 by 8", include_bytes!("fixtures/cavlc_8.h264"), include_bytes!("fixtures/cavlc_8.yuv")),
    ("CABAC", include_bytes!("fixtures/cabac.h264"), include_bytes!("fixtures/cabac.yuv")),
    ("CABAC, 8 by 8", include_bytes!("fixtures/cabac_8.h264"), include_bytes!("fixtures/cabac_8.yuv")),
    ("scaling lists, two slices", include_bytes!("fixtures/lists.h264"), include_bytes!("fixtures/lists.yuv")),
    ("a coarse quantizer", include_bytes!("fixtures/smooth.h264"), include_bytes!("fixtures/smooth.yuv")),
    ("a fine quantizer", include_bytes!("fixtures/fine.h264"), include_bytes!("fixtures/fine.yuv")),
];
const UNLIKE: &[u8] = include_bytes!("fixtures/unlike.h264");

/// NAL units of a byte stream (annex B).
fn units(bytes: &[u8]) -> Vec<&[u8]> {
    let mut starts: Vec<usize> = (0..bytes.len() - 3).filter(|n| bytes[*n..*n + 3] == [0, 0, 1]).collect();
    starts.push(bytes.len());
    let unit = |pair: &[usize]| {
        let unit = &bytes[pair[0] + 3..pair[1]];
        let end = unit.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        &unit[..end]
    };
    starts.windows(2).map(unit).collect()
}

#[test]
fn pictures_are_exact() {
    for (name, stream, expected) in STREAMS {
        let picture = decode(units(stream), 100).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((picture.width(), picture.height()), (50, 38), "{name}");
        let samples: Vec<u8> = picture.planes.iter().flat_map(|plane| plane.samples.clone()).collect();
        let differs = samples.iter().zip(expected).position(|(found, expected)| found != expected);
        assert_eq!((samples.len(), differs), (expected.len(), None), "{name}");
    }
}

#[test]
fn what_is_not_decoded_is_told() {
    assert_eq!(decode(units(UNLIKE), 100), Err(DecodeError::Unsupported("chroma of 4:2:2 or 4:4:4")));
    let (_, stream, _) = STREAMS[0];
    assert_eq!(decode(units(stream), 11), Err(DecodeError::TooLarge { found: 12, most: 11 }));
    assert_eq!(decode([], 100), Err(DecodeError::Truncated("a slice")));
    let (_, two, _) = STREAMS[4];
    let all = units(two);
    let found = decode(all[..all.len() - 1].iter().copied(), 100);
    assert!(matches!(found, Err(DecodeError::Incomplete { all: 12, .. })), "{found:?}");
    let mut twice = all.clone();
    twice.push(all[all.len() - 1]);
    assert_eq!(decode(twice, 100), Err(DecodeError::Invalid("place of a slice")));
}

#[test]
fn blank_pictures_have_no_variance() {
    let mut picture = Picture::black(64, 36);
    assert_eq!((picture.variance(), Picture::black(0, 0).variance()), (0, 0));
    // Half of it is 100 brighter: each sample is 50 from the mean.
    picture.planes[0].samples[..32 * 36].fill(116);
    assert_eq!(picture.variance(), 2500);
    let (_, stream, _) = STREAMS[2];
    assert_eq!(decode(units(stream), 100).unwrap().variance(), 1630);
}

/// Numbers that are the same in each run.
fn random(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize
}

#[test]
fn damaged_data_is_decoded_or_refused() {
    let mut state = 1;
    let mut refused = 0;
    for (_, stream, _) in STREAMS {
        for _ in 0..300 {
            let mut damaged = stream.to_vec();
            for _ in 0..1 + random(&mut state) % 4 {
                let place = 4 + random(&mut state) % (damaged.len() - 4);
                damaged[place] = random(&mut state) as u8;
            }
            damaged.truncate(8 + random(&mut state) % damaged.len());
            match decode(units(&damaged), 400) {
                Ok(picture) => assert!(picture.jpeg(50).is_ok() || picture.width() > 65_535),
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > 1000, "{refused}");
}

#[test]
fn pictures_are_scaled_put_together_and_coded() {
    let (_, stream, _) = STREAMS[3];
    let picture = decode(units(stream), 100).unwrap();
    let same = picture.scaled(50, 38);
    assert_eq!(same, picture);
    let turned = picture.clone().turned(1);
    assert_eq!((turned.width(), turned.height(), turned.luma()[37]), (38, 50, picture.luma()[0]));
    assert_eq!(turned.turned(3), picture);
    let mirrored = picture.clone().mirrored();
    assert_eq!((mirrored.luma()[0], mirrored.luma()[49]), (picture.luma()[49], picture.luma()[0]));
    assert_eq!(mirrored.mirrored(), picture);
    let small = picture.scaled(10, 7);
    assert_eq!((small.width(), small.height()), (10, 7));
    let mean = |picture: &Picture| picture.luma().iter().map(|s| usize::from(*s)).sum::<usize>() / picture.luma().len();
    assert!(mean(&small).abs_diff(mean(&picture)) <= 3, "{} {}", mean(&small), mean(&picture));
    let mut sheet = Picture::black(25, 8);
    sheet.put(&small, (10, 0));
    sheet.put(&small, (20, 4));
    assert_eq!((sheet.luma()[0], sheet.luma()[10], sheet.luma()[4 * 25 + 20]), (16, small.luma()[0], small.luma()[0]));
    let file = sheet.jpeg(75).unwrap();
    assert_eq!((&file[..2], &file[file.len() - 2..]), (&[0xff, 0xd8][..], &[0xff, 0xd9][..]));
    assert!(Picture::black(0, 0).jpeg(75).is_err());
}

/// The NAL unit of a picture parameter set of CAVLC, with a number.
fn picture_set(number: u32) -> Vec<u8> {
    let code = number + 1;
    let digits = 32 - code.leading_zeros() as usize;
    let bits = format!("{}{code:b}1001110001110001", "0".repeat(digits - 1));
    let bytes = bits.as_bytes().chunks(8).map(|bits| {
        let bits = format!("{:0<8}", std::str::from_utf8(bits).unwrap());
        u8::from_str_radix(&bits, 2).unwrap()
    });
    std::iter::once(0x68).chain(bytes).collect()
}

#[test]
fn work_is_bounded_by_what_a_picture_needs() {
    let (_, stream, _) = STREAMS[0];
    let all = units(stream);
    let (first, slice) = (all.iter().position(|unit| unit[0] & 0x1f == 7).unwrap(), all[all.len() - 1]);
    let sets: Vec<Vec<u8>> = (0..256).map(picture_set).collect();
    let began = std::time::Instant::now();
    let many = std::iter::once(all[first]).chain(sets.iter().map(Vec::as_slice).cycle().take(1_000_000));
    assert_eq!(decode(many, 36_864), Err(DecodeError::TooMany { what: "parameter sets", most: MOST_SETS }));
    // A slice that says nothing, again and again.
    let empty = [slice[0], slice[1], slice[2], slice[3], slice[4], slice[5], 0x80];
    let many = all[..all.len() - 1].iter().copied().chain(std::iter::repeat_n(&empty[..], 1_000_000));
    assert!(decode(many, 100).is_err());
    let large = vec![slice[0]; 1 << 20];
    let most = SPARE_BYTES + 100 * BYTES_A_MACROBLOCK;
    let many = all[..all.len() - 1].iter().copied().chain([&large[..]]);
    assert_eq!(decode(many, 100), Err(DecodeError::TooMany { what: "bytes", most }));
    assert!(began.elapsed() < std::time::Duration::from_secs(2), "{:?}", began.elapsed());
}

#[test]
fn zeros_behind_a_slice_change_nothing() {
    for (name, stream, _) in STREAMS {
        let mut all: Vec<Vec<u8>> = units(stream).into_iter().map(<[u8]>::to_vec).collect();
        let plain = decode(all.iter().map(Vec::as_slice), 100).unwrap();
        all.iter_mut().for_each(|unit| unit.resize(unit.len() + 20_000, 0));
        assert_eq!(decode(all.iter().map(Vec::as_slice), 100).as_ref(), Ok(&plain), "{name}");
    }
}
