use super::{auxiliary::Form, *};
use crate::{
    fixture::{AAC, AVC, HEVC, bx, fields, hex, mvhd, tables, trak, words},
    index_bytes,
    movie::Movie,
};
use proptest::prelude::*;

const KEY: [u8; 16] = *b"0123456789abcdef";
const OTHER: [u8; 16] = *b"fedcba9876543210";

/// Body of `tenc`, or of a `seig` group: initialization vectors of `iv_size` bytes, or a constant one of 16 bytes.
fn parameters(is_protected: u8, iv_size: u8, key: &[u8; 16]) -> Vec<u8> {
    let mut out = vec![0, 0x19, is_protected, iv_size];
    out.extend(key);
    if is_protected == 1 && iv_size == 0 {
        out.push(16);
        out.extend([7; 16]);
    }
    out
}

/// An encrypted sample entry of the fixtures, as hexadecimal digits.
fn encrypted(entry: &str, kind: &[u8; 4], scheme: &[u8; 4], tenc: &[u8]) -> String {
    let mut whole = hex(entry);
    let format = [whole[4], whole[5], whole[6], whole[7]];
    whole[4..8].copy_from_slice(kind);
    let tenc = bx(b"tenc", &[&words(&[0x0100_0000]), tenc]);
    let schm = bx(b"schm", &[&words(&[0]), scheme, &words(&[0x1_0000])]);
    whole.extend(bx(b"sinf", &[&bx(b"frma", &[&format]), &schm, &bx(b"schi", &[&tenc])]));
    let size = whole.len() as u32;
    whole[..4].copy_from_slice(&size.to_be_bytes());
    whole.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn video(iv_size: u8) -> String {
    encrypted(AVC, b"encv", if iv_size == 0 { b"cbcs" } else { b"cenc" }, &parameters(1, iv_size, &KEY))
}

/// An entry with an initialization vector of 8 bytes `number`, and a subsample of 5 clear and 95 encrypted bytes.
fn entry(number: u8) -> Vec<u8> {
    [&[number; 8][..], &[0, 1, 0, 5, 0, 0, 0, 95]].concat()
}

fn senc(entries: u8) -> Vec<u8> {
    let all: Vec<u8> = (1..=entries).flat_map(entry).collect();
    bx(b"senc", &[&words(&[2, entries.into()]), &all])
}

/// A movie box with one track of ten samples of 100 bytes at offset 0, and `more` boxes in its `stbl`.
fn progressive(entry: &str, more: &[Vec<u8>]) -> Vec<u8> {
    let tables: Vec<Vec<u8>> = tables(10, 100, 0).into_iter().chain(more.iter().cloned()).collect();
    let moov = bx(b"moov", &[&mvhd(), &trak(1, b"vide", entry, &tables), &pssh(b"a"), &pssh(b"a"), &pssh(b"b")]);
    [bx(b"ftyp", &[b"isom\0\0\0\0"]), moov, vec![0; 1000]].concat()
}

fn pssh(data: &[u8]) -> Vec<u8> {
    bx(b"pssh", &[&words(&[0x0100_0000]), &OTHER, &words(&[1]), &KEY, &words(&[data.len() as u32]), data])
}

fn protection(movie: &Movie) -> &Protection {
    movie.tracks[0].protection.as_deref().unwrap()
}

fn refused(object: &[u8]) -> String {
    index_bytes(object).unwrap_err().to_string()
}

#[test]
fn entries_of_a_progressive_file_are_in_senc() {
    let movie = index_bytes(&progressive(&video(8), &[senc(10)])).unwrap();
    let protection = protection(&movie);
    assert_eq!(
        (protection.scheme, protection.parameters.key_id, protection.parameters.iv_size),
        (Scheme::Cenc, Uuid(KEY), 8)
    );
    assert_eq!((protection.parameters.crypt_blocks, protection.parameters.skip_blocks), (1, 9));
    assert_eq!(movie.tracks[0].codec.parameter(), "avc1.64000c", "the format before encryption");
    assert_eq!(&movie.tracks[0].sample_entry[4..8], b"encv");
    let mut cursor = protection.samples.cursor();
    for index in [0, 1, 2, 9, 4, 5] {
        let found = cursor.get(index).unwrap();
        assert_eq!((found.group, found.iv), (0, &[index as u8 + 1; 8][..]));
        assert_eq!(found.subsamples, Some(&[0, 5, 0, 0, 0, 95][..]));
    }
    assert_eq!(cursor.get(10), None);
    let headers: Vec<&[u8]> = movie.system_headers.iter().map(SystemHeader::data).collect();
    assert_eq!(headers, [b"a", b"b"], "each once");
    assert_eq!(movie.system_headers[0].system.to_string(), "66656463-6261-3938-3736-353433323130");
}

/// An entry of HEVC of type `name`, with Dolby Vision of profile 8.1 or 5.
fn vision(name: &[u8; 4], profile: u8) -> String {
    let mut entry = hex(HEVC);
    let level = 6 << 3 | 5;
    let compatibility = u8::from(profile == 8) << 4;
    entry.extend(bx(b"dvvC", &[&[1, 0, profile << 1, level, compatibility], &[0; 19]]));
    let size = entry.len() as u32;
    entry[..4].copy_from_slice(&size.to_be_bytes());
    entry[4..8].copy_from_slice(name);
    encrypted(
        &entry.iter().map(|byte| format!("{byte:02x}")).collect::<String>(),
        b"encv",
        b"cenc",
        &parameters(1, 8, &KEY),
    )
}

#[test]
fn encrypted_dolby_vision_is_named_as_without_encryption() {
    for (name, profile, parameter, supplement, format) in [
        (b"dvh1", 8, "hvc1.1.6.L60.90", Some(("dvh1.08.06".to_owned(), "db1p")), b"hvc1"),
        (b"dvhe", 8, "hev1.1.6.L60.90", Some(("dvh1.08.06".to_owned(), "db1p")), b"hev1"),
        (b"hvc1", 5, "dvh1.05.06", None, b"dvh1"),
        (b"dvhe", 5, "dvhe.05.06", None, b"dvhe"),
    ] {
        let movie = index_bytes(&progressive(&vision(name, profile), &[senc(10)])).unwrap();
        let track = &movie.tracks[0];
        assert_eq!((track.codec.parameter(), track.codec.supplement()), (parameter.to_owned(), supplement));
        assert_eq!(&track.sample_entry[4..8], b"encv");
        let format = [&b"frma"[..], format].concat();
        assert!(track.sample_entry.windows(8).any(|bytes| bytes == format), "{:?}", track.sample_entry);
    }
}

#[test]
fn an_index_file_refuses_encrypted_tracks() {
    let movie = index_bytes(&progressive(&video(8), &[senc(10)])).unwrap();
    let told = crate::mp4::dref::write(&movie, "film.mp4").unwrap_err().to_string();
    assert_eq!(told, "moov/trak[1] at byte 0: a track encrypted by cenc in an index file is not supported");
}

#[test]
fn entries_of_a_progressive_file_are_where_saio_leads() {
    let entries: Vec<u8> = (1..=10).flat_map(entry).collect();
    let with = |offset: u32| {
        let saiz = bx(b"saiz", &[&words(&[1]), b"cenc", &words(&[0]), &[16], &words(&[10])]);
        let saio = bx(b"saio", &[&words(&[1]), b"cenc", &words(&[0, 1, offset])]);
        progressive(&video(8), &[saiz, saio, bx(b"free", &[&entries])])
    };
    let place = with(0).windows(entries.len()).position(|bytes| bytes == entries).unwrap();
    let movie = index_bytes(&with(place as u32)).unwrap();
    assert_eq!(protection(&movie).samples.cursor().get(9).unwrap().iv, [10; 8]);
    let media = with(0).len() as u32 - 500;
    let told = refused(&with(media));
    assert!(told.contains(&format!("auxiliary information of encryption at byte {media}, outside of moov")), "{told}");
}

#[test]
fn what_is_wrong_is_named() {
    let cases: [(Vec<u8>, &str); 8] = [
        (progressive(&video(8), &[]), "found no senc, and no saiz with saio, of 10 encrypted samples"),
        (progressive(&video(8), &[senc(9)]), "stbl/senc at byte "),
        (progressive(&video(8), &[senc(9)]), "found auxiliary information of 9 samples, expected that of 10"),
        (progressive(&video(16), &[senc(10)]), "senc at byte "),
        (progressive(&encrypted(AVC, b"encv", b"piff", &[]), &[]), "'avc1' encrypted by piff"),
        (
            progressive(&encrypted(AVC, b"encv", b"cenc", &parameters(2, 8, &KEY)), &[]),
            "found isProtected 2, expected 0 or 1",
        ),
        (
            progressive(&encrypted(AVC, b"encv", b"cenc", &parameters(1, 4, &KEY)), &[]),
            "found initialization vectors of 4 bytes, expected 0, 8 or 16",
        ),
        (progressive(&video(8), &[bx(b"senc", &[&words(&[2, 10]), &[1; 8], &[255, 255]])]), "senc at byte "),
    ];
    for (object, expected) in cases {
        let told = refused(&object);
        assert!(told.contains(expected), "{told}\n{expected}");
    }
}

#[test]
fn a_constant_initialization_vector_needs_no_entries() {
    let movie = index_bytes(&progressive(&video(0), &[])).unwrap();
    let protection = protection(&movie);
    assert_eq!((protection.scheme, &protection.parameters.constant_iv[..]), (Scheme::Cbcs, &[7; 16][..]));
    let found = protection.samples.cursor().get(7).unwrap();
    assert_eq!((found.iv, found.subsamples), (&[][..], None));
    assert_eq!((protection.samples.len(), protection.samples.largest()), (10, 0));
}

/// A fragment of `count` samples of 10 bytes, with the sample description and `more` boxes in its `traf`.
fn moof(count: u32, description: u32, header: &[u8], more: &[Vec<u8>]) -> Vec<u8> {
    let tfhd = fields(b"tfhd", &[0x2_0002, 1, description]);
    let trun = fields(b"trun", &[0, count]);
    let traf = bx(b"traf", &[&tfhd, &trun, &more.concat()]);
    bx(b"moof", &[header, &traf])
}

/// A fragmented file whose samples all have 10 bytes.
fn fragmented(entries: &[String], moofs: &[Vec<u8>]) -> Vec<u8> {
    let entries: String = entries.concat();
    let track = trak(1, b"vide", &entries, &[]);
    let trex = fields(b"trex", &[0, 1, 1, 40, 10, 0]);
    let moov = bx(b"moov", &[&mvhd(), &track, &bx(b"mvex", &[&trex])]);
    let mut object = [bx(b"ftyp", &[b"isom\0\0\0\0"]), moov].concat();
    for moof in moofs {
        object.extend_from_slice(moof);
        object.extend(bx(b"mdat", &[&[0; 100]]));
    }
    object
}

/// `sgpd` and `sbgp` of type `seig`: parameters of groups, and runs of samples with a group.
fn seig(groups: &[Vec<u8>], runs: &[(u32, u32)]) -> Vec<Vec<u8>> {
    let described: Vec<u8> =
        groups.iter().flat_map(|group| [&words(&[group.len() as u32])[..], group].concat()).collect();
    let sgpd = bx(b"sgpd", &[&words(&[0x0100_0000]), b"seig", &words(&[0, groups.len() as u32]), &described]);
    let runs: Vec<u32> = runs.iter().flat_map(|(count, group)| [*count, *group]).collect();
    vec![sgpd, bx(b"sbgp", &[&words(&[0]), b"seig", &words(&[runs.len() as u32 / 2]), &words(&runs)])]
}

#[test]
fn groups_of_the_second_version_state_a_length_and_a_default() {
    let index = |default: u32| {
        let group = parameters(1, 8, &OTHER);
        let [_, sbgp] = &seig(&[], &[(2, 0x1_0001)])[..] else { panic!() };
        let described = words(&[group.len() as u32, default, 1]);
        let sgpd = bx(b"sgpd", &[&words(&[0x0200_0000]), b"seig", &described, &group]);
        let boxes = [senc(2), sgpd, sbgp.clone()];
        index_bytes(&fragmented(&[video(8)], &[moof(2, 1, &[], &boxes)]))
    };
    let movie = index(0).unwrap();
    assert_eq!(protection(&movie).groups[0].key_id, Uuid(OTHER));
    let told = index(1).unwrap_err().to_string();
    assert!(told.contains("sgpd at byte ") && told.contains("a default group of encryption parameters"), "{told}");
}

#[test]
fn keys_change_with_groups_and_headers_come_with_fragments() {
    let (clear, other) = (parameters(0, 0, &[0; 16]), parameters(1, 8, &OTHER));
    let first = [vec![senc(2)], seig(&[clear, other], &[(1, 0x1_0001), (1, 0x1_0002)])].concat();
    // The clear sample also has an entry in `senc`: its subsamples, without an initialization vector.
    let entries = [&[0, 1, 0, 10, 0, 0, 0, 0][..], &entry(2)].concat();
    let first = [vec![bx(b"senc", &[&words(&[2, 2]), &entries])], first[1..].to_vec()].concat();
    let moofs = [
        moof(2, 1, &pssh(b"x"), &first),
        moof(3, 1, &[pssh(b"y"), pssh(b"x")].concat(), &[senc(3)]),
        moof(1, 1, &pssh(b"x"), &[senc(1)]),
    ];
    let movie = index_bytes(&fragmented(&[video(8)], &moofs)).unwrap();
    let protection = protection(&movie);
    assert!(movie.skipped.is_empty(), "{:?}", movie.skipped);
    assert!(protection.changes_key());
    let mut cursor = protection.samples.cursor();
    let found: Vec<(u16, usize)> = (0..6).map(|i| cursor.get(i).map(|a| (a.group, a.iv.len())).unwrap()).collect();
    assert_eq!(found, [(1, 0), (2, 8), (0, 8), (0, 8), (0, 8), (0, 8)]);
    assert!(!protection.groups[0].is_protected);
    assert_eq!(protection.groups[1].key_id, Uuid(OTHER));
    let data: Vec<&[u8]> = movie.fragment_headers.iter().map(SystemHeader::data).collect();
    assert_eq!(data, [b"x", b"y"]);
    let places: Vec<(u32, u32)> = protection.headers.iter().map(|header| (header.sample, header.header)).collect();
    assert_eq!(places, [(0, 0), (2, 0), (2, 1), (5, 0)]);
}

#[test]
fn fragments_with_the_clear_sample_entry_are_clear_samples() {
    let moofs = [moof(2, 2, &[], &[]), moof(2, 1, &[], &[senc(2)])];
    let movie = index_bytes(&fragmented(&[video(8), AVC.to_owned()], &moofs)).unwrap();
    let protection = protection(&movie);
    assert!(movie.skipped.is_empty() && !protection.changes_key(), "{:?}", movie.skipped);
    let mut cursor = protection.samples.cursor();
    let found: Vec<(u16, usize)> = (0..4).map(|i| cursor.get(i).map(|a| (a.group, a.iv.len())).unwrap()).collect();
    assert_eq!(found, [(1, 0), (1, 0), (0, 8), (0, 8)]);
    // A clear entry with another codec is another format.
    let movie =
        index_bytes(&fragmented(&[video(8), AAC.to_owned()], &[moof(2, 1, &[], &[senc(2)]), moof(2, 2, &[], &[])]));
    let movie = movie.unwrap();
    assert_eq!(movie.tracks[0].samples.len(), 2);
    assert!(movie.skipped[0].reason.contains("a change from sample entry 1 to 2"), "{:?}", movie.skipped);
}

#[test]
fn a_fragment_without_entries_ends_the_track_before_it() {
    let object = fragmented(&[video(8)], &[moof(2, 1, &[], &[senc(2)]), moof(2, 1, &[], &[senc(1)])]);
    let movie = index_bytes(&object).unwrap();
    assert_eq!((movie.tracks[0].samples.len(), protection(&movie).samples.len()), (2, 2));
    assert!(movie.skipped[0].reason.contains("senc"), "{:?}", movie.skipped);
    let unknown = seig(&[], &[(2, 0x1_0001)]);
    let object =
        fragmented(&[video(8)], &[moof(2, 1, &[], &[senc(2)]), moof(2, 1, &[], &[vec![senc(2)], unknown].concat())]);
    let movie = index_bytes(&object).unwrap();
    assert!(movie.skipped[0].reason.contains("samples in group 65537"), "{:?}", movie.skipped);
}

#[test]
fn more_headers_than_a_movie_has_are_left_out() {
    let large = [bx(b"pssh", &[&words(&[0]), &KEY, &words(&[70_000]), &vec![0; 70_000]])];
    let moov = bx(b"moov", &[&mvhd(), &trak(1, b"vide", &video(0), &tables(10, 100, 0)), &large[0]]);
    let movie = index_bytes(&[bx(b"ftyp", &[b"isom\0\0\0\0"]), moov, vec![0; 1000]].concat()).unwrap();
    assert!(movie.system_headers.is_empty());
    assert!(movie.skipped[0].reason.contains("bytes of protection system headers"), "{:?}", movie.skipped);
}

proptest! {
    /// A cursor returns the entries that were appended, in any order of requests.
    #[test]
    fn cursors_find_every_entry(
        runs in proptest::collection::vec((1..200_u32, 0..3_u16, prop_oneof![Just(0), Just(8), Just(16)], any::<bool>()), 1..8),
        order in proptest::collection::vec(any::<u32>(), 1..64),
    ) {
        let mut table = AuxiliaryTable::default();
        let mut expected = Vec::new();
        for (count, group, iv_size, subsamples) in runs {
            for _ in 0..count {
                let number = expected.len();
                let iv = vec![number as u8; usize::from(iv_size)];
                let units = if subsamples { vec![number as u8; 6 * (number % 3)] } else { Vec::new() };
                let mut entry = iv.clone();
                if subsamples {
                    entry.extend((units.len() as u16 / 6).to_be_bytes());
                    entry.extend(&units);
                }
                table.push(Form { group, iv_size, subsamples }, &entry);
                expected.push((group, iv, subsamples.then_some(units)));
            }
        }
        let mut cursor = table.cursor();
        let all = (0..table.len()).chain(order.iter().map(|at| at % table.len()));
        for index in all {
            let found = cursor.get(index).unwrap();
            let (group, iv, units) = &expected[index as usize];
            prop_assert_eq!((found.group, found.iv, found.subsamples), (*group, &iv[..], units.as_deref()));
        }
    }
}
