//! Transport streams through the demultiplexer and the framers: the same events in pieces of any size, and no more media
//! than the stream has. The first byte is the size of the pieces.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;
use millpond_media::ts::{Demultiplexer, Framed, Framer, TsEvent, TsLimits};
use std::collections::BTreeMap;

const LIMITS: TsLimits = TsLimits { unit: 1 << 16, units: 1 << 18 };

fn events(bytes: &[u8], size: usize) -> Vec<TsEvent> {
    let (mut demultiplexer, mut events) = (Demultiplexer::new(LIMITS), Vec::new());
    for piece in bytes.chunks(size) {
        demultiplexer.push(piece, &mut events);
    }
    demultiplexer.finish(&mut events);
    events
}

fuzz_target!(|bytes: &[u8]| {
    let Some((size, stream)) = bytes.split_first() else { return };
    let found = events(stream, usize::from(*size) + 1);
    assert!(found == events(stream, stream.len().max(1)), "the events depend on the pieces");
    let (mut framers, mut out, mut media) = (BTreeMap::new(), Vec::new(), 0);
    for event in &found {
        match event {
            TsEvent::Streams(map) => {
                for stream in &map.streams {
                    if let Some(framer) = Framer::new(stream.coding) {
                        framers.insert(stream.pid, framer);
                    }
                }
            }
            TsEvent::Unit(unit) => {
                media += unit.data.len();
                if let Some(framer) = framers.get_mut(&unit.pid) {
                    framer.push(unit, &mut out);
                }
            }
            TsEvent::Fault(fault) => assert!(fault.offset <= stream.len() as u64 && !fault.to_string().is_empty()),
            TsEvent::Programmes(_) | TsEvent::Clock { .. } | TsEvent::Cue { .. } => {}
        }
    }
    assert!(media <= stream.len());
    for framer in framers.values_mut() {
        framer.finish(&mut out);
    }
    let mut frames = 0;
    for framed in out {
        if let Framed::Frame(frame) = framed {
            assert!(!frame.data.is_empty() && frame.pts < 1 << 33 && frame.dts < 1 << 33);
            frames += frame.data.len();
        }
    }
    // A start code of three bytes becomes a length of four.
    assert!(frames <= 2 * media);
});
