//! An index file that the dref writer makes of any readable file is indexed equally.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;

fuzz_target!(|object: &[u8]| {
    let Ok(movie) = millpond_media::index_bytes(object) else { return };
    let Ok(written) = millpond_media::dref::write(&movie, "media.mp4") else { return };
    let again = millpond_media::index_bytes(&written).expect("what was written can be read");
    assert_eq!(again.external_media.as_deref(), Some("media.mp4"));
    assert_eq!(again.tracks.len(), movie.tracks.len());
    // A table without any sync sample is read back with its first as one: decoding has to begin somewhere.
    for (a, b) in again.tracks.iter().zip(&movie.tracks) {
        // Single frames of PCM, each in a chunk of its own, come back in one unit.
        if matches!(b.codec, millpond_media::Codec::Pcm(_)) {
            assert_eq!(a.samples.total_bytes(), b.samples.total_bytes());
            continue;
        }
        assert_eq!(a.samples.len(), b.samples.len());
        assert!(
            a.samples
                .iter()
                .zip(b.samples.iter())
                .take(2000)
                .all(|(a, b)| a.range == b.range && (a.sync == b.sync || (a.index == 0 && a.sync)))
        );
    }
});
