//! Session descriptions, and the URLs in them.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;
use millpond_rtp::{
    payload::Depacketizer,
    sdp_reader::{self, SessionDescription},
};

const BASE: &str = "rtsp://host/film.mp4";

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let base = sdp_reader::base(Some(text), None, BASE);
        assert!(base == BASE || base == text.trim());
        assert!(sdp_reader::resolve(text, "a").ends_with('a'));
    }
    let Ok(read) = SessionDescription::read(bytes, BASE) else { return };
    assert!(read.control.contains("://"));
    for stream in &read.streams {
        assert!(stream.payload_type < 128 && stream.clock_rate > 0 && !stream.encoding.is_empty(), "{stream:?}");
        assert!(stream.control.contains("://"), "{stream:?}");
        let _ = Depacketizer::of(stream);
    }
});
