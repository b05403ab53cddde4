use super::flac_crc;
use crate::{
    Codec, Edit, Movie, PcmCoding, Sample,
    error::MediaError,
    index::indexer::{IndexLimits, Indexer, Step, index_bytes},
    work::Work,
};
use bytes::Bytes;
use proptest::prelude::*;

/// MPEG-1 layer III, 128 kbit/s at 44.1 kHz: 417 bytes.
const MP3: [u8; 4] = [0xff, 0xfb, 0x90, 0x04];

fn mp3(frames: usize) -> Vec<u8> {
    [&MP3[..], &[0x55; 413]].concat().repeat(frames)
}

fn adts(frames: usize, size: usize) -> Vec<u8> {
    let length = size + 7;
    let (high, low) = ((length >> 3) as u8, (length << 5) as u8 | 0x1f);
    [&[0xff, 0xf1, 0x50, 0x80, high, low, 0xfc][..], &vec![0x55; size]].concat().repeat(frames)
}

fn id3(size: usize) -> Vec<u8> {
    let digits = [21, 14, 7, 0].map(|shift| (size >> shift) as u8 & 0x7f);
    [&b"ID3\x04\0\0"[..], &digits, &vec![0xff; size]].concat()
}

/// Frames of 4096 samples with 16 bits at 44.1 kHz, whose bodies have no other sync code.
pub(crate) fn flac_frames(count: u8) -> Vec<Vec<u8>> {
    let frame = |number: u8| {
        let header = [0xff, 0xf8, 0xc9, 0x18, number];
        let mut frame = [&header[..], &[flac_crc::crc8(&header)], &vec![0x33; 200 + usize::from(number)]].concat();
        frame.extend(flac_crc::crc16(0, &frame).to_be_bytes());
        frame
    };
    (0..count).map(frame).collect()
}

/// A signature, STREAMINFO, and a metadata block of 100 bytes.
pub(crate) fn flac_head() -> Vec<u8> {
    let mut head = b"fLaC\0\0\0\x22\x10\0\x10\0\0\0\0\0\0\0\x0a\xc4\x42\xf0\0\0\0\0".to_vec();
    head.extend([0; 16]);
    head.extend(b"\x84\0\0\x64");
    head.extend([0xff; 100]);
    head
}

fn flac(frames: u8) -> Vec<u8> {
    [flac_head(), flac_frames(frames).concat()].concat()
}

fn chunk(kind: &[u8; 4], body: &[u8]) -> Vec<u8> {
    [&kind[..], &(body.len() as u32).to_le_bytes(), body, &vec![0; body.len() % 2]].concat()
}

fn format(tag: u16, channels: u16, bits: u16) -> Vec<u8> {
    let frame = channels * bits.div_ceil(8);
    let fields = [tag, channels, 0x1f40, 0, 0, 0, frame, bits];
    chunk(b"fmt ", &fields.iter().flat_map(|field| field.to_le_bytes()).collect::<Vec<_>>())
}

fn wave(chunks: &[Vec<u8>]) -> Vec<u8> {
    [&b"RIFF\0\0\0\0WAVE"[..], &chunks.concat()].concat()
}

/// Indexes an object; returns the lengths of all reads too.
fn reads(object: &[u8]) -> (Result<Movie, MediaError>, Vec<u64>) {
    reads_from(object, IndexLimits::default())
}

fn reads_from(object: &[u8], limits: IndexLimits) -> (Result<Movie, MediaError>, Vec<u64>) {
    let (mut indexer, mut reads) = (Indexer::with_limits(object.len() as u64, limits), Vec::new());
    loop {
        match indexer.poll() {
            Ok(Step::Done(movie)) => return (Ok(movie), reads),
            Err(error) => return (Err(error), reads),
            Ok(Step::Need(ranges)) => {
                for range in ranges {
                    reads.push(range.len());
                    let bytes = &object[range.start as usize..range.end as usize];
                    indexer.supply(range, Bytes::copy_from_slice(bytes));
                }
            }
        }
    }
}

fn samples(object: &[u8]) -> Vec<(u64, u64, i64)> {
    let movie = index_bytes(object).unwrap();
    movie.tracks[0].samples.iter().map(|s| (s.range.start, s.range.len(), s.dts)).collect()
}

fn words(object: &[u8]) -> String {
    index_bytes(object).unwrap_err().to_string()
}

#[test]
fn frames_follow_one_another() {
    assert_eq!(samples(&mp3(4)), [(0, 417, 0), (417, 417, 1152), (834, 417, 2304), (1251, 417, 3456)]);
    assert_eq!(samples(&adts(3, 50)), [(7, 50, 0), (64, 50, 1024), (121, 50, 2048)]);
    let movie = index_bytes(&adts(3, 50)).unwrap();
    assert_eq!((movie.tracks[0].codec.name(), movie.tracks[0].timescale.get()), ("AAC", 44_100));
    assert_eq!((movie.duration, movie.timescale.get(), movie.tracks[0].edits.len()), (3072, 44_100, 0));
}

#[test]
fn tags_are_passed_without_their_bytes() {
    let tail = [&b"TAG"[..], &[0xff; 125]].concat();
    let object = [id3(3_000_000), id3(2_000_000), mp3(10), tail].concat();
    let (movie, reads) = reads(&object);
    assert_eq!(movie.unwrap().tracks[0].samples.len(), 10);
    assert!(reads.iter().sum::<u64>() < 250_000, "{reads:?}");
    let between = [mp3(5), id3(500), mp3(5), b"LYRICSBEGIN".repeat(20)].concat();
    assert_eq!(samples(&between).len(), 10);
    let flac = [id3(100), flac(3)].concat();
    assert_eq!(index_bytes(&flac).unwrap().tracks[0].codec.name(), "FLAC");
    assert!(matches!(index_bytes(&id3(9)), Err(MediaError::Truncated { .. })));
    assert!(matches!(index_bytes(&id3(0).repeat(65)), Err(MediaError::TooLarge { .. } | MediaError::Truncated { .. })));
}

#[test]
fn a_scan_reads_a_mebibyte_at_a_time() {
    let (movie, reads) = reads(&mp3(10_000));
    assert_eq!(movie.unwrap().tracks[0].samples.len(), 10_000);
    assert!(reads.len() < 6 && reads[1] == 1 << 20, "{reads:?}");
}

#[test]
fn formats_are_recognised_by_few_bytes() {
    let wave = wave(&[format(1, 2, 16), chunk(b"data", &[0; 3000])]);
    for object in [mp3(12), adts(30, 60), flac(12), wave, [id3(300), mp3(3)].concat()] {
        let (movie, _) = reads_from(&object, IndexLimits { head: 1, ..IndexLimits::default() });
        assert_eq!(movie.unwrap(), index_bytes(&object).unwrap());
    }
}

#[test]
fn sync_words_alone_are_no_frames() {
    // Two frames, then bytes that are none.
    let two = [mp3(2), vec![0; 1000]].concat();
    assert!(words(&two).contains("expected FLAC, or frames of MPEG audio or of ADTS"), "{}", words(&two));
    assert_eq!(samples(&mp3(1)).len(), 1, "a file of one frame");
    let padded = [id3(20), vec![0; 3000], mp3(5)].concat();
    assert_eq!(samples(&padded)[0].0, 3030);
    let unmarked = [vec![0x11; 300], mp3(5)].concat();
    assert_eq!(samples(&unmarked).len(), 5);
    let damaged = [mp3(5), [&MP3[..], &[0; 40]].concat().repeat(9), mp3(5)].concat();
    assert_eq!(samples(&damaged).len(), 10, "the first damaged frame follows others, and hides one behind the damage");
    let ends = [mp3(5), vec![0xff; 2 << 20], mp3(5)].concat();
    let movie = index_bytes(&ends).unwrap();
    assert_eq!(movie.tracks[0].samples.len(), 5);
    assert!(movie.skipped[0].reason.contains("bytes without frames"), "{:?}", movie.skipped);
}

#[test]
fn bytes_between_frames_are_named() {
    let object = [vec![0x11; 100], mp3(5), vec![0; 300], mp3(5), vec![0; 200], mp3(5), vec![0; 400]].concat();
    let movie = index_bytes(&object).unwrap();
    assert_eq!(movie.tracks[0].samples.len(), 15);
    let reasons: Vec<_> = movie.skipped.iter().map(|skipped| &skipped.reason[..]).collect();
    let places = "in 2 places: byte 2185 (0.131 s), byte 4570 (0.261 s)";
    assert_eq!(reasons, [format!("MPEG audio: 500 bytes that are no frames were passed {places}")]);
    assert_eq!(index_bytes(&mp3(20)).unwrap().skipped, []);
}

#[test]
fn files_that_end_within_a_frame_are_cut_short() {
    let object = mp3(5);
    let movie = index_bytes(&object[..2000]).unwrap();
    assert!(movie.cut_short && movie.tracks[0].samples.len() == 4);
}

#[test]
fn frames_that_are_not_supported_are_named() {
    let free = [&[0xff, 0xfb, 0x00, 0x04][..], &[0; 500]].concat().repeat(4);
    assert!(words(&free).contains("the free format"), "{}", words(&free));
    let mut divided = adts(3, 50);
    (0..3).for_each(|frame| divided[57 * frame + 6] |= 1);
    assert!(words(&divided).contains("several raw data blocks"));
    let mut listed = adts(3, 50);
    (0..3).for_each(|frame| listed[57 * frame + 3] &= 0x3f);
    assert!(words(&listed).contains("without channel configuration"));
}

#[test]
fn delays_of_encoders_become_edits() {
    let mut first = [&MP3[..], &[0; 32], b"Info\0\0\0\x01\0\0\0\x04LAME3.100"].concat();
    first.extend([0; 12]);
    first.extend([0x24, 0x03, 0xe8]);
    first.resize(417, 0);
    let movie = index_bytes(&[first.clone(), mp3(4)].concat()).unwrap();
    let edit = Edit { duration: 4 * 1152 - 576 - 1000, media_time: Some(576 + 529) };
    assert_eq!((movie.tracks[0].samples.len(), &movie.tracks[0].edits[..], movie.duration), (4, &[edit][..], 3032));
    assert!(words(&first).contains("no frames with sound"));
}

#[test]
fn pcm_is_told_by_headers() {
    let object = wave(&[chunk(b"LIST", &[0; 101]), format(1, 2, 16), chunk(b"data", &[0; 2000])]);
    let (movie, reads) = reads(&object);
    let movie = movie.unwrap();
    let Codec::Pcm(config) = &movie.tracks[0].codec else { panic!("PCM") };
    assert_eq!((config.sample_rate, config.channels, config.value_bits()), (8000, 2, 16));
    let table = &movie.tracks[0].samples;
    assert_eq!((table.total_bytes(), table.end_dts(), table.get(0).unwrap().range.start), (2000, 500, 154));
    assert_eq!(reads.len(), 1);
    for (tag, bits, coding) in [(6, 8, PcmCoding::ALaw), (7, 8, PcmCoding::MuLaw), (1, 8, PcmCoding::Unsigned8)] {
        let movie = index_bytes(&wave(&[format(tag, 1, bits), chunk(b"data", &[0; 100])])).unwrap();
        assert!(matches!(&movie.tracks[0].codec, Codec::Pcm(config) if config.coding == coding));
    }
}

#[test]
fn sizes_of_data_may_be_unknown_or_wrong() {
    let with = |size: u32| {
        let mut object = wave(&[format(1, 1, 16), chunk(b"data", &[0; 1000])]);
        object[40..44].copy_from_slice(&size.to_le_bytes());
        let movie = index_bytes(&object).unwrap();
        (movie.tracks[0].samples.total_bytes(), movie.cut_short)
    };
    assert_eq!(
        [with(1000), with(0), with(u32::MAX), with(500), with(9000)],
        [(1000, false), (1000, false), (1000, false), (500, false), (1000, true)]
    );
    let long = [[0; 8], 600_u64.to_le_bytes(), [0; 8]].concat();
    let mut object = wave(&[chunk(b"ds64", &long), format(1, 1, 16), chunk(b"data", &[0; 1000])]);
    let size = object.len() - 1004;
    object[size..size + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(index_bytes(&object).unwrap().tracks[0].samples.total_bytes(), 600);
}

#[test]
fn other_waves() {
    let inside = wave(&[format(0x55, 2, 0), chunk(b"data", &mp3(3)), chunk(b"LIST", &mp3(3))]);
    assert_eq!(samples(&inside), [(44, 417, 0), (461, 417, 1152), (878, 417, 2304)]);
    let named = |tag: u16| words(&wave(&[format(tag, 2, 16), chunk(b"data", &[0; 100])]));
    assert!(named(0x2000).contains("AC-3") && named(0x11).contains("IMA ADPCM") && named(0x999).contains("0x999"));
    assert!(words(&wave(&[chunk(b"data", &[0; 100])])).contains("a fmt chunk first"));
    assert!(words(&wave(&[format(1, 2, 16)])).contains("a data chunk"));
    assert!(words(&wave(&[format(1, 0, 16), chunk(b"data", &[0; 100])])).contains("not supported"));
    assert!(words(&wave(&[format(1, 2, 16), chunk(b"data", &[])])).contains("no whole frame"));
    assert!(matches!(index_bytes(&wave(&[b"LIST\xff\xff\xff\xff".to_vec()])), Err(MediaError::Truncated { .. })));
}

#[test]
fn aiff_has_chunks_in_any_order() {
    let chunk = |kind: &[u8; 4], body: &[u8]| [&kind[..], &(body.len() as u32).to_be_bytes(), body].concat();
    let common = |kind: &[u8]| {
        let rate = [0x40, 0x0b, 0xfa, 0, 0, 0, 0, 0, 0, 0];
        chunk(b"COMM", &[&[0, 2, 0, 0, 0, 100, 0, 16][..], &rate, kind].concat())
    };
    let sound = chunk(b"SSND", &[&[0, 0, 0, 4, 0, 0, 0, 0][..], &[0; 404]].concat());
    let file = |kind: &[u8], chunks: &[Vec<u8>]| [&b"FORM\0\0\0\0"[..], kind, &chunks.concat()].concat();
    let object = file(b"AIFF", &[sound.clone(), common(b"")]);
    let movie = index_bytes(&object).unwrap();
    let table = &movie.tracks[0].samples;
    assert_eq!((table.total_bytes(), table.get(0).unwrap().range.start, movie.timescale.get()), (400, 32, 8000));
    let compressed = file(b"AIFC", &[common(b"ima4\0\0"), sound]);
    assert!(words(&compressed).contains("ima4"));
    assert!(words(&file(b"AIFF", &[common(b"")])).contains("COMM and SSND"));
}

#[test]
fn work_is_bounded() {
    for object in [mp3(2000), flac(100), adts(2000, 20), wave(&[format(1, 1, 8), chunk(b"data", &vec![0; 99_000])])] {
        let mut indexer = Indexer::new(object.len() as u64).with_work(Work::new(50));
        let error = loop {
            match indexer.poll() {
                Ok(Step::Done(_)) => panic!("done within 50 steps"),
                Err(error) => break error,
                Ok(Step::Need(ranges)) => {
                    assert!(ranges.iter().all(|range| range.end <= object.len() as u64));
                    for range in ranges {
                        let bytes = &object[range.start as usize..range.end as usize];
                        indexer.supply(range, Bytes::copy_from_slice(bytes));
                    }
                }
            }
        };
        assert!(matches!(error, MediaError::Work { .. }), "{error}");
    }
}

proptest! {
    #[test]
    fn damaged_files_give_ranges_within_them(
        which in 0..4_usize,
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        cut: prop::sample::Index,
    ) {
        let wave = wave(&[format(1, 2, 16), chunk(b"data", &[0; 3000])]);
        let mut object = [mp3(12), adts(30, 60), flac(12), wave][which].clone();
        for (place, value) in places {
            let place = place.index(object.len());
            object[place] = value;
        }
        object.truncate(cut.index(object.len()) + 1);
        if let Ok(movie) = index_bytes(&object) {
            let samples: Vec<Sample> = movie.tracks[0].samples.iter().collect();
            prop_assert!(samples.iter().all(|s| s.range.end <= object.len() as u64 && !s.range.is_empty()));
            prop_assert!(samples.windows(2).all(|pair| pair[0].dts <= pair[1].dts));
        }
    }
}
