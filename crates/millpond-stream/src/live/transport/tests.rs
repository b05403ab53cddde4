use super::*;
use crate::{report::Reporter, source_health::LiveTotals};
use millpond_store::{Holds, Memory, policy::PolicyName};

const MOST: u64 = 64 << 20;

fn memory() -> LiveMemory {
    let holds = Holds::of(&Memory::new(1 << 30, PolicyName::Sieve), "live");
    LiveMemory::new(holds, Arc::<LiveTotals>::default(), MOST).of_stream("rtsp://camera", Reporter::default())
}

fn segment(transports: &Transports, number: u64, len: u64) -> Result<Bytes, TransportError> {
    transports.make_room(len)?;
    transports.keep((0, SegmentNumber(number)), vec![0; len as usize].into())
}

#[test]
fn the_newest_are_kept_within_limits_and_counted() {
    let memory = memory();
    let transports = Transports::counted_in(memory.clone());
    for number in 0..6 {
        segment(&transports, number, 2).unwrap();
    }
    assert_eq!(transports.known((0, SegmentNumber(1))), None);
    assert!((2..6).all(|number| transports.known((0, SegmentNumber(number))).is_some()));
    assert_eq!(transports.known((1, SegmentNumber(5))), None);
    assert_eq!(memory.held(), 8);
    segment(&transports, 6, BYTES - 1).unwrap();
    assert_eq!((transports.made().len(), memory.held()), (1, BYTES - 1));
    let served = segment(&transports, 7, BYTES + 1).unwrap();
    assert_eq!((transports.made().len(), memory.held()), (0, BYTES + 1), "it counts while it is sent");
    drop(served);
    assert_eq!(memory.held(), 0);
}

#[test]
fn a_segment_without_room_is_refused_and_frames_keep_theirs() {
    let memory = memory();
    let transports = Transports::counted_in(memory.clone());
    segment(&transports, 1, 4 << 20).unwrap();
    let frames = memory.hold_bytes(vec![0; 52 << 20].into()).unwrap();
    segment(&transports, 2, 6 << 20).unwrap();
    assert_eq!(transports.known((0, SegmentNumber(1))), None, "what was kept makes room");
    assert_eq!(segment(&transports, 3, 9 << 20), Err(TransportError::NoMemory(9 << 20)));
    drop(frames);
    segment(&transports, 3, 9 << 20).unwrap();
}
