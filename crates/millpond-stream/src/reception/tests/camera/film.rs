//! The pictures of a fake camera.

use crate::reception::tests::server::units;

/// Ten pictures of two slices; the first one and the sixth one are key frames. Made by
/// `ffmpeg -f lavfi -i testsrc2=s=96x96:r=25:d=0.4 -c:v libx264 -profile:v main -x264-params
/// slices=2:bframes=0:keyint=5:min-keyint=5:scenecut=0:repeat-headers=1:crf=40 -bsf:v filter_units=remove_types=6 door.h264`
const DOOR: &[u8] = include_bytes!("door.h264");

/// Its parameter sets, as descriptions have them.
pub(super) const SETS: &str = "Z01ACtkGNsBEAAADAAQAAAMAyDxImSA=,aOvA5LI=";

/// A film that is repeated.
pub(super) struct Film {
    pictures: Vec<Vec<&'static [u8]>>,
    next: usize,
}

impl Film {
    pub(super) fn new() -> Self {
        let mut pictures = Vec::<Vec<&[u8]>>::new();
        for unit in nal_units(DOOR) {
            match unit[0] & 0x1f {
                7 | 8 => {}
                // `first_mb_in_slice` is 0.
                _ if unit[1] & 0x80 != 0 => pictures.push(vec![unit]),
                _ => pictures.last_mut().unwrap().push(unit),
            }
        }
        assert_eq!(pictures.len(), 10);
        Self { pictures, next: 0 }
    }

    /// The next picture as a frame, and its NAL units.
    pub(super) fn next(&mut self) -> (Vec<u8>, Vec<&'static [u8]>) {
        let picture = self.pictures[self.next % self.pictures.len()].clone();
        self.next += 1;
        (units(&picture), picture)
    }
}

/// Divides a stream at its start codes.
fn nal_units(mut bytes: &'static [u8]) -> Vec<&'static [u8]> {
    let mut units = Vec::new();
    while !bytes.is_empty() {
        let end = bytes.windows(3).position(|window| window == [0, 0, 1]);
        let (unit, rest) = end.map_or((bytes, &[][..]), |end| (&bytes[..end], &bytes[end + 3..]));
        let length = unit.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        units.extend((length > 0).then(|| &unit[..length]));
        bytes = rest;
    }
    units
}
