//! Formats of the streams of a session description, as a publisher or an upstream server sends it.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;
use millpond_rtp::sdp_reader::SessionDescription;
use millpond_stream::reception::StreamFormat;

fuzz_target!(|bytes: &[u8]| {
    let Ok(read) = SessionDescription::read(bytes, "rtsp://host/live") else { return };
    for (stream, number) in read.streams.iter().zip(1..) {
        match StreamFormat::new(stream, u32::from(number), number) {
            Ok(format) => {
                let Some(format) = format.format() else { continue };
                assert_eq!(format.timescale(), stream.clock_rate);
                assert!(!format.track.sample_entry.is_empty());
            }
            Err(error) => assert!(error.to_string().contains(&stream.encoding), "{error}"),
        }
    }
});
