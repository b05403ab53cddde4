use super::*;
use crate::{
    PackageError, dash,
    delivery::transport,
    fmp4, hls,
    presentation::keys::KeyAddress,
    testing::{
        bytes,
        encrypted::{KEY, OTHER, SIZE, Second, WIDEVINE, movie, presentation},
    },
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use millpond_media::{Movie, Scheme, SystemHeader, Uuid, index_bytes};
use std::sync::Arc;

/// Key, initialization vector and subsamples of each sample; no key for clear ones.
type Found = Vec<(Option<[u8; 16]>, Vec<u8>, Option<Vec<u8>>)>;

fn found(movie: &Movie) -> Found {
    let protection = movie.tracks[0].protection.as_deref().unwrap();
    let mut cursor = protection.samples.cursor();
    let sample = |index| {
        let entry = cursor.get(index).unwrap();
        let parameters = parameters(protection, entry.group);
        let key = parameters.is_protected.then_some(parameters.key_id.0);
        (key, entry.iv.to_vec(), entry.subsamples.map(<[u8]>::to_vec))
    };
    (0..movie.tracks[0].samples.len()).map(sample).collect()
}

/// Reads back the init segment and all segments of the only track.
fn served(movie: &Arc<Movie>) -> Movie {
    let presentation = presentation(movie);
    let track = presentation.track("v1").unwrap();
    let mut file = fmp4::init(&presentation, track).to_vec();
    for number in 1..=track.segment_count() {
        file.extend(bytes(fmp4::segment(&presentation, track, number).unwrap()));
    }
    let again = index_bytes(&file).unwrap();
    assert!(again.skipped.is_empty(), "{:?}", again.skipped);
    again
}

#[test]
fn entries_headers_and_parameters_are_those_of_the_file() {
    for scheme in [Scheme::Cenc, Scheme::Cens, Scheme::Cbc1, Scheme::Cbcs] {
        let movie = movie(scheme, &[Second::Encrypted; 3], &[WIDEVINE, OTHER]);
        let again = served(&movie);
        assert_eq!(found(&again), found(&movie), "{scheme:?}");
        let (ours, file) = (&again.tracks[0], &movie.tracks[0]);
        // All but `data_reference_index`, which is that of the written file.
        assert_eq!(
            (&ours.sample_entry[..14], &ours.sample_entry[16..]),
            (&file.sample_entry[..14], &file.sample_entry[16..])
        );
        let protection =
            |track: &millpond_media::Track| track.protection.as_ref().map(|p| (p.scheme, p.parameters.clone()));
        assert_eq!(protection(ours), protection(file));
        assert_eq!(again.system_headers, movie.system_headers);
    }
}

#[test]
fn sizes_and_place_lead_to_the_same_entries() {
    let movie = movie(Scheme::Cenc, &[Second::Encrypted; 2], &[]);
    let presentation = presentation(&movie);
    let track = presentation.track("v1").unwrap();
    let mut file = fmp4::init(&presentation, track).to_vec();
    file.extend(bytes(fmp4::segment(&presentation, track, 1).unwrap()));
    // Without `senc`, `saiz` and `saio` count.
    let place = file.windows(4).position(|four| four == b"senc").unwrap();
    file[place..place + 4].copy_from_slice(b"free");
    let again = index_bytes(&file).unwrap();
    assert_eq!(found(&again), found(&movie)[..10]);
}

#[test]
fn keys_and_headers_change_where_those_of_the_file_do() {
    let movie = movie(Scheme::Cbcs, &[Second::Encrypted, Second::OtherKey, Second::Encrypted], &[]);
    let again = served(&movie);
    assert_eq!(found(&again), found(&movie));
    let keys: Vec<Option<[u8; 16]>> = found(&again).iter().map(|sample| sample.0).step_by(10).collect();
    assert_eq!(keys, [Some(KEY), Some(OTHER), Some(KEY)]);
    let headers =
        |movie: &Movie| -> Vec<Vec<u8>> { movie.fragment_headers.iter().map(|h| h.data().to_vec()).collect() };
    assert_eq!(headers(&again), [b"fragment"]);
    assert_eq!(again.tracks[0].protection.as_ref().unwrap().headers[0].sample, 10);
}

#[test]
fn a_clear_start_is_clear_and_a_mixed_segment_is_encrypted() {
    let movie = movie(Scheme::Cenc, &[Second::Clear, Second::Encrypted], &[]);
    let again = served(&movie);
    assert_eq!(found(&again), found(&movie));
    let keys: Vec<Option<[u8; 16]>> = found(&again).iter().map(|sample| sample.0).step_by(10).collect();
    assert_eq!(keys, [None, Some(KEY)]);
    // One segment that contains both.
    let options = crate::PresentationOptions { target_duration: 2.0 };
    let source = crate::SourceObject::new(movie.clone(), "film.mp4".into());
    let presentation =
        crate::Presentation::build(vec![source], Vec::new(), &options, &millpond_media::Work::unlimited()).unwrap();
    let track = presentation.track("v1").unwrap();
    assert_eq!(track.segment_count(), 1);
    let mut file = fmp4::init(&presentation, track).to_vec();
    let segment = bytes(fmp4::segment(&presentation, track, 1).unwrap());
    assert!((segment.len() as u64) * 8 <= track.bandwidth().peak * 2, "{} bytes", segment.len());
    file.extend(segment);
    let mixed = found(&index_bytes(&file).unwrap());
    assert_eq!(mixed[10..], found(&movie)[10..]);
    // All bytes of a sample are clear: 65,535 and the rest.
    let rest = (SIZE - 65_535) as u16;
    let clear = [&[0xff, 0xff, 0, 0, 0, 0][..], &rest.to_be_bytes(), &[0; 4]].concat();
    assert_eq!(mixed[..10], vec![(Some(KEY), vec![0; 8], Some(clear)); 10]);
}

#[test]
fn bandwidth_counts_the_entries() {
    let movie = movie(Scheme::Cenc, &[Second::Encrypted; 4], &[]);
    let presentation = presentation(&movie);
    let track = presentation.track("v1").unwrap();
    for number in 1..=track.segment_count() {
        let bits = bytes(fmp4::segment(&presentation, track, number).unwrap()).len() as u64 * 8;
        assert!(bits <= track.bandwidth().peak, "segment {number}: {bits} of {}", track.bandwidth().peak);
    }
    let media = track.media().unwrap();
    let peak = media.iframes(track.segments.end()).bandwidth.peak;
    let iframe = bytes(fmp4::iframe(&presentation, track, 1).unwrap()).len() as u64 * 8;
    assert!(iframe <= peak, "{iframe} of {peak}");
}

#[test]
fn hls_names_the_address_of_the_key_or_says_that_there_is_none() {
    let cenc = movie(Scheme::Cenc, &[Second::Encrypted; 2], &[]);
    let error = hls::multivariant(&presentation(&cenc), hls::Container::Fmp4).unwrap_err().to_string();
    let kid = Uuid(KEY).digits();
    assert!(error.contains("HLS: track v1 is encrypted: found cenc with key 30313233-"), "{error}");
    assert!(error.contains("key-uri"), "{error}");
    let address = |uri: &str| Some(Arc::new(KeyAddress::new(uri, None).unwrap()));
    let with = presentation(&cenc).with_key_address(address("/keys/{kid}"));
    let tag = format!("METHOD=SAMPLE-AES-CTR,URI=\"/keys/{kid}\",KEYID=0x{kid}\n");
    let text = hls::multivariant(&with, hls::Container::Fmp4).unwrap();
    assert_eq!(text.matches(&format!("#EXT-X-SESSION-KEY:{tag}")).count(), 1, "{text}");
    assert!(text.contains("CODECS=\"avc1.64001f\""), "{text}");
    let track = with.track("v1").unwrap();
    for text in [hls::media(&with, track, hls::Container::Fmp4), hls::iframes(&with, track, hls::Container::Fmp4)] {
        let text = text.unwrap();
        assert!(text.contains(&format!("#EXT-X-MAP:URI=\"init.mp4\"\n#EXT-X-KEY:{tag}#EXTINF")), "{text}");
    }
    let cbcs = movie(Scheme::Cbcs, &[Second::Encrypted], &[WIDEVINE]);
    let with = presentation(&cbcs).with_key_address(address("skd://{uuid}"));
    let text = hls::multivariant(&with, hls::Container::Fmp4).unwrap();
    let uuid = Uuid(KEY);
    for tag in [
        format!(
            "METHOD=SAMPLE-AES,URI=\"skd://{uuid}\",KEYID=0x{kid},KEYFORMAT=\"com.apple.streamingkeydelivery\",KEYFORMATVERSIONS=\"1\""
        ),
        format!(
            "METHOD=SAMPLE-AES,URI=\"data:text/plain;base64,AAAAJXBzc2gAAAAA7e+LqXnWSs6jyCfc1R0h7QAAAAVtb3ZpZQ==\",KEYID=0x{kid},\
             KEYFORMAT=\"urn:uuid:edef8ba9-79d6-4ace-a3c8-27dcd51d21ed\",KEYFORMATVERSIONS=\"1\""
        ),
    ] {
        assert!(text.contains(&format!("#EXT-X-SESSION-KEY:{tag}\n")), "{text}\n{tag}");
    }
}

#[test]
fn what_hls_and_ts_cannot_say_is_refused_by_name() {
    let address = Some(Arc::new(KeyAddress::new("/{kid}", None).unwrap()));
    let refused = |scheme, seconds: &[Second]| {
        let presentation = presentation(&movie(scheme, seconds, &[])).with_key_address(address.clone());
        hls::multivariant(&presentation, hls::Container::Fmp4).unwrap_err().to_string()
    };
    assert!(refused(Scheme::Cens, &[Second::Encrypted]).contains("found scheme cens, expected cenc or cbcs"));
    let changes = refused(Scheme::Cenc, &[Second::Encrypted, Second::OtherKey]);
    assert!(changes.contains("found cenc with keys that change, expected one key"), "{changes}");
    let presentation = presentation(&movie(Scheme::Cenc, &[Second::Encrypted], &[]));
    let error = hls::multivariant(&presentation, hls::Container::Ts).unwrap_err();
    assert!(
        matches!(&error, PackageError::Container { found, .. } if found == "avc1.64001f encrypted by cenc"),
        "{error}"
    );
    assert!(transport::segment(&presentation, presentation.track("v1").unwrap(), 1).unwrap().is_none());
}

#[test]
fn an_mpd_has_the_key_and_the_headers() {
    let rotating = movie(Scheme::Cbcs, &[Second::Encrypted, Second::OtherKey], &[WIDEVINE, OTHER]);
    let text = dash::mpd(&presentation(&rotating)).unwrap();
    assert!(text.contains("xmlns:cenc=\"urn:mpeg:cenc:2013\""), "{text}");
    let uuid = Uuid(KEY);
    let scheme = "schemeIdUri=\"urn:mpeg:dash:mp4protection:2011\" value=\"cbcs\"";
    assert!(text.contains(&format!("<ContentProtection {scheme} cenc:default_KID=\"{uuid}\"/>")), "{text}");
    let headers: &[SystemHeader] = &rotating.system_headers;
    assert_eq!(headers.len(), 2);
    for header in headers {
        let base64 = STANDARD.encode(&header.whole);
        let element = format!("<ContentProtection schemeIdUri=\"urn:uuid:{}\">", header.system);
        let place = text.find(&element).unwrap_or_else(|| panic!("{text}"));
        assert!(text[place..].contains(&format!("<cenc:pssh>{base64}</cenc:pssh>")), "{text}");
    }
    let without = dash::mpd(&presentation(&movie(Scheme::Cenc, &[Second::Encrypted], &[]))).unwrap();
    let common = "AAAANHBzc2gBAAAAEHfv7MCyTQKs4zweUuL7SwAAAAEwMTIzNDU2Nzg5YWJjZGVmAAAAAA==";
    assert!(without.contains("urn:uuid:1077efec-c0b2-4d02-ace3-3c1e52e2fb4b"), "{without}");
    assert!(without.contains(&format!("<cenc:pssh>{common}</cenc:pssh>")), "{without}");
    let clear = dash::mpd(&crate::testing::presentation(vec![crate::testing::movie(vec![crate::testing::audio(
        crate::testing::table(&crate::testing::frames(50), 0, 0),
        "eng",
        Vec::new(),
    )])]));
    assert!(!clear.unwrap().contains("cenc"), "only where a track is encrypted");
}
