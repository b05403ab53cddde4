use crate::{
    ByteRange, Extractor, Medium, Movie, Sample, UnreadCodec,
    error::MediaError,
    index::indexer::{Indexer, Step, index_bytes},
};
use bytes::Bytes;
use proptest::prelude::*;

/// A key frame of VP8 with 16 x 16 pixels, and another frame.
const KEY: [u8; 10] = [0x10, 0, 0, 0x9d, 1, 0x2a, 16, 0, 16, 0];
const OTHER: [u8; 6] = [0x11, 0, 0, 1, 2, 3];
/// Parameter sets of H.264 Baseline in the byte stream format.
const SETS: &[u8] =
    b"\0\0\0\x01\x67\x42\xc0\x1e\xd9\x03\xc5\x68\x40\0\0\x03\0\x40\0\0\x0c\x03\xc5\x8b\x92\0\0\0\x01\x68\xcb\x8c\xb2";

fn chunk(kind: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let padding = vec![0; body.len() % 2];
    [&kind[..], &(body.len() as u32).to_le_bytes(), body, &padding].concat()
}

fn list(kind: &[u8; 4], body: &[u8]) -> Vec<u8> {
    chunk(b"LIST", &[&kind[..], body].concat())
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A list `strl` of pictures with this code, 24,000 / 1001 in a second.
fn pictures(code: &[u8; 4], start: u32, further: &[u8]) -> Vec<u8> {
    let header = [&b"vids"[..], code, &words(&[0, 0, 0, 1001, 24_000, start, 0, 0, 0, 0, 0, 0])].concat();
    let format = [words(&[40, 16, 16, 1 | 24 << 16]), code.to_vec(), words(&[0; 5])].concat();
    list(b"strl", &[chunk(b"strh", &header), chunk(b"strf", &format), further.to_vec()].concat())
}

/// A list `strl` of sound with this tag and the codec's data `extra`: two channels of 16 bits with 48 kHz.
fn sound(tag: u16, sample_size: u32, extra: &[u8]) -> Vec<u8> {
    let header = [&b"auds"[..], &words(&[0, 0, 0, 0, 1, 48_000, 0, 0, 0, 0, sample_size, 0, 0])].concat();
    let format = [&tag.to_le_bytes()[..], &[2, 0], &words(&[48_000, 192_000]), &[4, 0, 16, 0]].concat();
    let format = [&format[..], &(extra.len() as u16).to_le_bytes(), extra].concat();
    list(b"strl", &[chunk(b"strh", &header), chunk(b"strf", &format), chunk(b"strn", b"Commentary\0")].concat())
}

/// A file of streams, chunks of media, and the chunks `behind` them.
fn file(streams: &[Vec<u8>], media: &[Vec<u8>], behind: &[u8]) -> Vec<u8> {
    let head = list(b"hdrl", &[chunk(b"avih", &[0; 56]), streams.concat()].concat());
    let body = [&b"AVI "[..], &head, &chunk(b"JUNK", &[0; 7]), &list(b"movi", &media.concat()), behind].concat();
    chunk(b"RIFF", &body)
}

/// `idx1` of chunks, whose offsets count from the type of `movi` or, with `base`, from the beginning of the file.
fn index(media: &[Vec<u8>], base: u32) -> Vec<u8> {
    let mut at = base + 4;
    let mut entries = Vec::new();
    for chunk in media {
        let size = u32::from_le_bytes(*chunk[4..].first_chunk().unwrap());
        let is_key = chunk.get(8).is_some_and(|first| first & 1 == 0);
        entries.extend([&chunk[..4], &words(&[if is_key { 0x10 } else { 0 }, at, size])].concat());
        at += chunk.len() as u32;
    }
    chunk(b"idx1", &entries)
}

fn media() -> Vec<Vec<u8>> {
    let pcm = |fill: u8| chunk(b"01wb", &[fill; 400]);
    let dropped = chunk(b"00dc", &[]);
    vec![chunk(b"00dc", &KEY), pcm(2), chunk(b"00dc", &OTHER), dropped, pcm(4), chunk(b"00dc", &KEY), pcm(6)]
}

/// Indexes an object. Returns the movie, and the bytes that were read.
fn indexed(object: &[u8]) -> Result<(Movie, u64), MediaError> {
    let (mut indexer, mut read) = (Indexer::new(object.len() as u64), 0);
    loop {
        match indexer.poll()? {
            Step::Done(movie) => return Ok((movie, read)),
            Step::Need(ranges) => {
                for range in ranges {
                    read += range.len();
                    let bytes = &object[range.start as usize..range.end as usize];
                    indexer.supply(range, Bytes::copy_from_slice(bytes));
                }
            }
        }
    }
}

/// Returns the bytes of each sample of a track.
fn bytes(object: &[u8], movie: &Movie, track: usize) -> Vec<Vec<u8>> {
    let of = |range: ByteRange| match &movie.extraction {
        None => object[range.start as usize..range.end as usize].to_vec(),
        Some(extraction) => {
            let mut extractor = Extractor::new(extraction, range).unwrap();
            let source = extractor.source();
            object[source.start as usize..source.end as usize].chunks(7).for_each(|piece| extractor.supply(piece));
            extractor.finish().unwrap().to_vec()
        }
    };
    movie.tracks[track].samples.iter().map(|sample| of(sample.range)).collect()
}

/// Decoding times and key flags of a track.
fn times(movie: &Movie, track: usize) -> Vec<(i64, bool)> {
    movie.tracks[track].samples.iter().map(|sample| (sample.dts, sample.sync)).collect()
}

fn assert_media(object: &[u8], movie: &Movie) {
    assert_eq!(movie.tracks.iter().map(|track| track.codec.name()).collect::<Vec<_>>()[0], "VP8");
    assert_eq!(times(movie, 0), [(0, true), (1001, false), (3003, true)], "the third picture was dropped");
    assert_eq!(movie.tracks[0].timescale.get(), 24_000);
    assert_eq!(bytes(object, movie, 0), [&KEY[..], &OTHER, &KEY]);
    let heard = bytes(object, movie, 1).concat();
    assert_eq!(heard, [[2; 400], [4; 400], [6; 400]].concat());
    assert_eq!((movie.tracks[1].samples.end_dts(), movie.tracks[1].name.as_deref()), (300, Some("Commentary")));
    assert!(movie.skipped.is_empty() && !movie.cut_short, "{:?}", movie.skipped);
}

#[test]
fn an_index_tells_chunks_that_are_samples() {
    let streams = [pictures(b"VP80", 0, &[]), sound(1, 4, &[])];
    let whole = file(&streams, &media(), &[]);
    let movi = whole.windows(4).position(|four| four == b"movi").unwrap() as u32;
    for base in [0, movi] {
        let object = file(&streams, &media(), &index(&media(), base));
        let (movie, _) = indexed(&object).unwrap();
        assert!(movie.extraction.is_none());
        assert_media(&object, &movie);
    }
    // Few bytes of a file with many chunks are read.
    let long: Vec<_> = media().into_iter().cycle().take(7 * 1000).collect();
    let object = file(&streams, &long, &index(&long, 0));
    let (movie, read) = indexed(&object).unwrap();
    assert_eq!((movie.tracks[0].samples.len(), movie.extraction.is_none()), (3000, true));
    assert!(read < 64 * 1024 + 8000 * 16 + 16_384, "{read} of {} bytes", object.len());
}

#[test]
fn without_a_right_index_all_chunks_are_read() {
    let streams = [pictures(b"VP80", 0, &[]), sound(1, 4, &[])];
    let further = [&b"AVIX"[..], &list(b"movi", &media().concat())].concat();
    for (behind, times_two) in [
        (Vec::new(), false),
        (index(&media(), 3), false),
        (index(&media()[1..], 0), false),
        (index(&[chunk(b"00dc", &[0; 4000])], 0), false),
        ([index(&media(), 0), chunk(b"JUNK", &[1])].concat(), true),
    ] {
        let mut object = file(&streams, &media(), &behind);
        if times_two {
            // The index describes the first RIFF chunk alone.
            object = [file(&streams, &media(), &index(&media(), 0)), chunk(b"RIFF", &further)].concat();
        }
        let (movie, _) = indexed(&object).unwrap();
        assert!(movie.extraction.is_some());
        if times_two {
            assert_eq!(times(&movie, 0).len(), 6);
            assert_eq!(bytes(&object, &movie, 0)[3..], [&KEY[..], &OTHER, &KEY]);
        } else {
            assert_media(&object, &movie);
        }
    }
}

#[test]
fn indexes_of_opendml_tell_chunks_of_several_riff_chunks() {
    let of = |base: u64, places: [u64; 2]| {
        let body = [&[4, 0, 0, 0][..], &words(&[2]), b"00dc", &[0; 12]].concat();
        let entry = |place: u64| [&place.to_le_bytes()[..], &words(&[48, 0])].concat();
        let indx = chunk(b"indx", &[body, entry(places[0]), entry(places[1])].concat());
        let index = |base: u64| {
            let head = [&[2, 0, 0, 1][..], &words(&[2]), b"00dc", &base.to_le_bytes(), &[0; 4]].concat();
            chunk(b"ix00", &[head, words(&[8, 10, 26, 6 | 1 << 31])].concat())
        };
        let parts = [chunk(b"00dc", &KEY), chunk(b"00dc", &OTHER)].concat();
        let first = file(&[pictures(b"VP80", 0, &indx)], &[parts.clone(), index(base)], &[]);
        let next = first.len() as u64 + 24;
        let further = chunk(b"RIFF", &[&b"AVIX"[..], &list(b"movi", &[parts, index(next)].concat())].concat());
        ([first, further].concat(), next)
    };
    let (draft, next) = of(0, [0; 2]);
    let first = draft.windows(4).position(|four| four == b"movi").unwrap() as u64 + 4;
    let (object, _) = of(first, [first + 32, next + 32]);
    let (movie, _) = indexed(&object).unwrap();
    assert!(movie.extraction.is_none());
    assert_eq!(times(&movie, 0), [(0, true), (1001, false), (2002, true), (3003, false)]);
    assert_eq!(bytes(&object, &movie, 0), [&KEY[..], &OTHER, &KEY, &OTHER]);
    // The super index names a place without an index.
    let (broken, _) = of(first, [first, next]);
    assert!(indexed(&broken).unwrap().0.extraction.is_some());
}

#[test]
fn pictures_in_byte_streams_get_lengths() {
    let first = [SETS, b"\0\0\x01\x65\x88\x84\x11\0\0\x01\x65\x44\x22"].concat();
    let chunks = [chunk(b"00dc", &first), chunk(b"00dc", b"\0\0\0\x01\x41\x9a\x33"), chunk(b"00dc", &[])];
    let last = chunk(b"00dc", b"\0\0\0\x01\x09\xf0\0\0\x01\x41\x9a\x44");
    let object = file(&[pictures(b"H264", 2, &[])], &[&chunks[..], &[last]].concat(), &[]);
    let (movie, _) = indexed(&object).unwrap();
    let lengths = [
        &b"\0\0\0\x04\x65\x88\x84\x11\0\0\0\x03\x65\x44\x22"[..],
        b"\0\0\0\x03\x41\x9a\x33",
        b"\0\0\0\x03\x41\x9a\x44",
    ];
    assert_eq!(bytes(&object, &movie, 0), lengths);
    assert_eq!(times(&movie, 0), [(2002, true), (3003, false), (5005, false)], "two pictures later");
    assert!(movie.tracks[0].samples.iter().all(|sample| sample.composition == 0), "Baseline has no B-frames");
}

#[test]
fn frames_of_mp3_are_found_across_chunks() {
    let frame = |fill: u8| [&[0xff, 0xfb, 0x90, 0xc4][..], &[fill; 413]].concat();
    let stream: Vec<u8> = (1..20).flat_map(frame).collect();
    let chunks: Vec<_> = stream.chunks(1000).map(|part| chunk(b"00wb", part)).collect();
    let object = file(&[sound(0x55, 1, &[])], &chunks, &[]);
    let (movie, _) = indexed(&object).unwrap();
    assert_eq!(bytes(&object, &movie, 0), (1..20).map(frame).collect::<Vec<_>>());
    assert_eq!(movie.tracks[0].samples.end_dts(), 19 * 1152);
}

#[test]
fn a_chunk_of_aac_is_a_frame_and_an_empty_one_is_none() {
    let chunks = [&[1; 9][..], &[2; 8], &[], &[3; 7]].map(|body| chunk(b"00wb", body));
    let object = file(&[sound(0xff, 0, &[0x11, 0x90])], &chunks, &[]);
    let (movie, _) = indexed(&object).unwrap();
    assert_eq!(movie.tracks[0].codec.name(), "AAC");
    assert_eq!(times(&movie, 0), [(0, true), (1024, true), (2048, true)]);
}

#[test]
fn other_codecs_are_named() {
    for (streams, words) in [
        (vec![pictures(b"XVID", 0, &[]), sound(0x55, 1, &[])], "MPEG-4 Part 2 video (XVID) is not supported"),
        (vec![pictures(b"MJPG", 0, &[])], "Motion JPEG (MJPG) is not supported"),
        (vec![sound(0x161, 1, &[])], "Windows Media Audio (format 0x161) is not supported"),
    ] {
        let error = index_bytes(&file(&streams, &media(), &[])).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    let other = file(&[pictures(b"VP80", 0, &[]), sound(0x161, 1, &[])], &media(), &[]);
    let movie = index_bytes(&other).unwrap();
    assert!(movie.tracks.len() == 1 && movie.skipped[0].reason.contains("stream 1"), "{:?}", movie.skipped);
    let codec = UnreadCodec { medium: Medium::Audio, name: "Windows Media Audio".to_owned() };
    assert_eq!(movie.skipped[0].codec, Some(codec));
}

#[test]
fn time_passes_for_damaged_chunks_that_an_index_lists() {
    let sizes = [KEY.len(), OTHER.len(), OTHER.len(), KEY.len()].map(|size| size as u32);
    let mut chunks: Vec<_> = [&KEY[..], &OTHER, &OTHER, &KEY].iter().map(|body| chunk(b"00dc", body)).collect();
    let (old, head) = (index(&chunks, 0), [&[2, 0, 0, 1][..], &words(&[4]), b"00dc"].concat());
    chunks[1][..8].fill(0xff);
    // A chunk of another type is passed.
    chunks[2][..4].copy_from_slice(b"lost");
    let object = |inner: &[u8], behind: &[u8]| {
        file(&[pictures(b"VP80", 0, &[])], &[&chunks[..], &[inner.to_vec()]].concat(), behind)
    };
    let movi = object(&[], &[]).windows(4).position(|four| four == b"movi").unwrap() as u64 + 4;
    let entries = words(&[8, sizes[0], 26, sizes[1] | 1 << 31, 40, sizes[2] | 1 << 31, 54, sizes[3]]);
    let standard = chunk(b"ix00", &[&head[..], &movi.to_le_bytes(), &[0; 4], &entries].concat());
    let times_of = |object: &[u8]| times(&indexed(object).unwrap().0, 0);
    assert_eq!(times_of(&object(&standard, &[])), [(0, true), (3003, true)]);
    assert_eq!(times_of(&object(&[], &[])), [(0, true), (1001, true)], "nothing tells how many are missing");
    // An index of the first RIFF chunk is right about this chunk.
    let further = chunk(b"RIFF", b"AVIX");
    assert_eq!(times_of(&object(&[], &[old, further].concat())), [(0, true), (3003, true)]);
}

#[test]
fn time_passes_for_chunks_that_are_too_large() {
    let streams = [pictures(b"VP80", 0, &[]), sound(1, 4, &[])];
    let large = vec![0; (16 << 20) + 400];
    for has_index in [true, false] {
        let object =
            |chunks: &[Vec<u8>]| file(&streams, chunks, &if has_index { index(chunks, 0) } else { Vec::new() });
        let mut chunks = media();
        chunks[2] = chunk(b"00dc", &large);
        let (movie, _) = indexed(&object(&chunks)).unwrap();
        assert_eq!(times(&movie, 0), [(0, true), (3003, true)]);
        let reason = &movie.skipped[0].reason;
        assert!(movie.skipped.len() == 1 && reason.contains("1 chunks of more than 16 MiB"), "{:?}", movie.skipped);
        // Samples of PCM are parts of a chunk, which need not be read if an index lists it.
        let mut chunks = media();
        chunks[4] = chunk(b"01wb", &large);
        let (movie, _) = indexed(&object(&chunks)).unwrap();
        let samples = &movie.tracks[1].samples;
        let played = if has_index { 800 + large.len() as u64 } else { 800 };
        assert_eq!((samples.total_bytes(), movie.skipped.is_empty()), (played, has_index));
        assert_eq!(samples.end_dts(), 200 + large.len() as i64 / 4);
    }
}

#[test]
fn headers_with_much_padding_are_read() {
    let padding = chunk(b"JUNK", &vec![0; 5 << 20]);
    let media = media();
    let object = file(&[pictures(b"VP80", 0, &[]), sound(1, 4, &[]), padding], &media, &index(&media, 0));
    let (movie, read) = indexed(&object).unwrap();
    assert_media(&object, &movie);
    assert!(read < 5 << 20, "{read} bytes were read");
}

#[test]
fn files_that_end_early_are_cut_short() {
    let object = file(&[pictures(b"VP80", 0, &[]), sound(1, 4, &[])], &media(), &[]);
    let cut = index_bytes(&object[..object.len() - 200]).unwrap();
    assert!(cut.cut_short && cut.tracks[0].samples.len() == 3);
    for end in [0, 12, 100, 300] {
        assert!(index_bytes(&object[..end]).is_err());
    }
}

#[test]
fn an_index_that_is_cut_off_is_no_media() {
    let object = file(&[pictures(b"VP80", 0, &[]), sound(1, 4, &[])], &media(), &[]);
    let whole = index_bytes(&object).unwrap();
    let entries = [&b"00dc\x10\0\0\0\x04\0\0\0\x08\0\0\0"[..], b"01wb\x10\0\0\0\x04\0\0\0\x08\0\0\0"].concat();
    let cut = [&object[..], b"idx1\x00\x10\0\0", &entries.repeat(8)].concat();
    let cut = index_bytes(&cut).unwrap();
    let samples = |movie: &Movie| movie.tracks.iter().map(|track| track.samples.len()).collect::<Vec<_>>();
    assert_eq!((samples(&cut), cut.cut_short), (samples(&whole), true));
}

proptest! {
    #[test]
    fn damaged_files_give_ranges_within_them(
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        cut: prop::sample::Index,
        is_framed: bool,
    ) {
        let streams = if is_framed {
            [pictures(b"H264", 0, &[]), sound(0x55, 1, &[])]
        } else {
            [pictures(b"VP80", 0, &[]), sound(1, 4, &[])]
        };
        let first = [SETS, b"\0\0\x01\x65\x88\x84\x11"].concat();
        let chunks = if is_framed { vec![chunk(b"00dc", &first), chunk(b"00dc", b"\0\0\x01\x41\x9a")] } else { media() };
        let mut object = file(&streams, &chunks, &index(&chunks, 0));
        for (place, value) in places {
            let place = place.index(object.len());
            object[place] = value;
        }
        object.truncate(cut.index(object.len()) + 1);
        if let Ok((movie, _)) = indexed(&object) {
            let len = movie.extraction.as_ref().map_or(object.len() as u64, |extraction| extraction.len());
            for track in 0..movie.tracks.len() {
                let samples: Vec<Sample> = movie.tracks[track].samples.iter().collect();
                prop_assert!(samples.iter().all(|s| s.range.end <= len && !s.range.is_empty()));
                prop_assert!(samples.windows(2).all(|pair| pair[0].dts <= pair[1].dts));
                bytes(&object, &movie, track);
            }
        }
    }
}
