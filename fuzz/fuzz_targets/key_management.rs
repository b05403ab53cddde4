//! Keys as attributes, headers and messages have them: what is read and written again reads the same.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;
use millpond_rtp::key_management::{
    carriage::{self, KeyMgmt},
    mikey::MikeyMessage,
};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(message) = MikeyMessage::read(bytes) {
        same(&message);
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(message) = carriage::from_attribute(text) {
        same(&message);
    }
    let Ok(header) = KeyMgmt::from_header(text) else { return };
    same(&header.message);
    // What can't be in a URL is left out, and what then is too long for a header is none.
    let Ok(again) = KeyMgmt::from_header(&header.to_header()) else {
        assert!(header.to_header().len() > 8192);
        return;
    };
    assert!(again.message == header.message && again.url.len() <= header.url.len());
    assert_eq!(KeyMgmt::from_header(&again.to_header()), Ok(again));
});

fn same(message: &MikeyMessage) {
    assert_eq!(MikeyMessage::read(&message.to_bytes()).as_ref(), Ok(message));
    assert_eq!(carriage::from_attribute(&carriage::to_attribute(message)).as_ref(), Ok(message));
}
