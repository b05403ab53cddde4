//! Copies of windows as other nodes send them: what is read is written again as it was, and a window that follows it stays in its bounds. An input is
//! the bytes of a connection.
#![cfg_attr(feature = "libfuzzer", no_main)]

use bytes::Bytes;
use millpond_fuzz::fuzz_target;
use millpond_package::{
    hls::{
        Container,
        live::{PlaylistView, media},
    },
    live::{CopyReader, CopyRecord, Extent, Window, WindowLimits},
};
use std::time::Duration;

const LIMITS: WindowLimits =
    WindowLimits { segments: 20, bytes: 100_000, age: Duration::from_secs(60), listed: Duration::from_secs(30) };

fuzz_target!(|bytes: &[u8]| {
    let mut reader = CopyReader::default();
    let mut window: Option<Window> = None;
    let mut written: Vec<Bytes> = Vec::new();
    let mut has_epoch = false;
    'all: for piece in bytes.chunks(61) {
        reader.push(piece);
        loop {
            let record = match reader.read() {
                Ok(Some(record)) => record,
                Ok(None) => break,
                Err(_) => break 'all,
            };
            // Flags have one form when they are written, and formats are read from their init segments.
            has_epoch |= !matches!(record, CopyRecord::Alive | CopyRecord::Ended | CopyRecord::Head(_));
            record.write(&mut written);
            match (&mut window, record) {
                (known @ None, CopyRecord::Head(head)) => {
                    *known = Some(Window::new(LIMITS, head.tracks, head.discontinuity));
                }
                (Some(window), record) => window.follow(record),
                (None, _) => {}
            }
        }
    }
    let written = written.concat();
    assert!(has_epoch || bytes.starts_with(&written));
    let Some(mut window) = window else { return };
    let _ = window.continue_anew();
    assert!(window.segments().len() <= LIMITS.segments + 2);
    let run = "0123456789abcdef";
    for track in 0..window.tracks().len() {
        let view = PlaylistView { run, container: Container::Fmp4, skip: false, extent: Extent::Edge, query: "" };
        let _ = media(&window, track, &view);
    }
});
