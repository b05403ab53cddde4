//! FLV tags, as RTMP publishers send them: no more media than the tag has, and configurations that are read or refused.
#![cfg_attr(feature = "libfuzzer", no_main)]

use bytes::Bytes;
use millpond_fuzz::fuzz_target;
use millpond_media::{
    codec::make,
    flv::{FlvContent, FlvTag},
};

fuzz_target!(|bytes: &[u8]| {
    let tag = Bytes::copy_from_slice(bytes);
    let (all, single) = (FlvTag::read_all(&tag), FlvTag::read(&tag));
    // Frames of one track are read alike by both.
    if let Ok(Some(single)) = single {
        assert!(matches!(&all[..], [Ok(only)] if *only == single));
    }
    let mut media = 0;
    for FlvTag { codec, content, .. } in all.into_iter().flatten() {
        match content {
            FlvContent::Frame { data, composition, is_key } => {
                media += data.len();
                assert!(composition.unsigned_abs() <= 1 << 23);
                let _ = (codec.described(&data, is_key), codec.samples(&data));
            }
            FlvContent::Configuration(record) => {
                media += record.len();
                if let Some(syntax) = codec.syntax()
                    && let Ok((length_size, sets)) = make::parameter_sets(syntax, &record)
                {
                    assert!(length_size <= 4 && sets.iter().map(Vec::len).sum::<usize>() < record.len());
                }
                let _ = codec.configured(&record);
            }
        }
    }
    assert!(media < bytes.len().max(1));
});
