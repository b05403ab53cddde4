//! RTSP through HTTP: what a connection begins with, and its base64, however they are cut.
#![cfg_attr(feature = "libfuzzer", no_main)]

use bytes::BytesMut;
use millpond_fuzz::fuzz_target;
use millpond_rtp::tunnel::{Decoder, NotBase64, Opening, recognize};

fn decoded<'a>(mut parts: impl Iterator<Item = &'a [u8]>) -> (BytesMut, Result<(), NotBase64>) {
    let (mut decoder, mut output) = (Decoder::default(), BytesMut::new());
    let result = parts.try_for_each(|part| decoder.decode(part, &mut output));
    (output, result)
}

fuzz_target!(|bytes: &[u8]| {
    let [step, bytes @ ..] = bytes else { return };
    let step = usize::from(*step).max(1);
    // What is said of the first bytes holds whatever follows.
    let mut said = None;
    for end in (0..bytes.len()).step_by(step).chain([bytes.len()]) {
        let now = recognize(&bytes[..end]);
        assert!(said.is_none() || now == said, "{said:?}, then {now:?}");
        said = now;
    }
    let text = match said {
        Some(Opening::Tunnel { length, .. }) => &bytes[length..],
        _ => bytes,
    };
    let (output, result) = decoded([text].into_iter());
    assert_eq!(decoded(text.chunks(step)), (output.clone(), result));
    assert!(output.len() <= text.len() / 4 * 3);
    if let Err(NotBase64 { at, found }) = result {
        assert_eq!(text[at as usize], found);
    }
});
