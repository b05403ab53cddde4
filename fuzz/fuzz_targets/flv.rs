//! FLV tags, as RTMP publishers send them: no more media than the tag has, and configurations that are read or refused.
#![cfg_attr(feature = "libfuzzer", no_main)]

use bytes::Bytes;
use millpond_fuzz::fuzz_target;
use millpond_media::{
    codec::make,
    flv::{FlvCodec, FlvContent, FlvTag},
};

fuzz_target!(|bytes: &[u8]| {
    let Ok(Some(FlvTag { codec, content, .. })) = FlvTag::read(&Bytes::copy_from_slice(bytes)) else { return };
    match content {
        FlvContent::Frame { data, composition, .. } => {
            assert!(data.len() < bytes.len() && composition.unsigned_abs() <= 1 << 23);
            let _ = make::mpeg_audio(&data);
        }
        FlvContent::Configuration(record) => {
            assert!(record.len() < bytes.len());
            if let Some(syntax) = codec.syntax()
                && let Ok((length_size, sets)) = make::parameter_sets(syntax, &record)
            {
                assert!(length_size <= 4 && sets.iter().map(Vec::len).sum::<usize>() < record.len());
            }
            if codec == FlvCodec::Aac {
                let _ = make::aac(&record);
            }
        }
    }
});
