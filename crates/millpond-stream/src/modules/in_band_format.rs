//! The format of pictures whose parameter sets are in their key frames (`avc3`, `hev1`): it changes without an epoch.

use crate::{Format, Frame};
use millpond_media::{
    NalSyntax, ParameterSets, TrackKind,
    codec::{Codec, make::Made},
    sets_with_lengths,
};

/// Length in bytes of NAL unit lengths that made sample entries state.
const LENGTH_SIZE: u8 = 4;

/// Watches the key frames of a track for another size of the pictures.
#[derive(Debug)]
pub(super) struct InBandFormat {
    track: u16,
    format: Format,
    sets: ParameterSets,
}

impl InBandFormat {
    /// Returns the one of a track; `None` if its sample entry holds all parameter sets.
    pub(super) fn of(track: u16, format: &Format) -> Option<Self> {
        let codec = &format.track.codec;
        let (syntax, length_size) = NalSyntax::of(codec).filter(|_| is_in_band(codec))?;
        let known = sets_with_lengths(codec)?;
        let sets = ParameterSets::in_band(syntax, length_size, &known);
        (length_size == LENGTH_SIZE).then(|| Self { track, format: format.clone(), sets })
    }

    /// Returns the track and its format from a frame on, if the frame is a key frame with pictures of another size. Other changes of
    /// parameter sets need no new sample entry.
    pub(super) fn change(&mut self, frame: &Frame) -> Option<(u16, Format)> {
        if frame.track != self.track || !frame.is_sync {
            return None;
        }
        let Made { codec, kind, sample_entry } = self.sets.key_frame(&frame.data)?;
        let track = &mut self.format.track;
        if size(kind) == size(track.kind) {
            return None;
        }
        (track.codec, track.kind, track.sample_entry) = (codec, kind, sample_entry);
        Some((self.track, self.format.clone()))
    }
}

fn size(kind: TrackKind) -> Option<(u32, u32)> {
    match kind {
        TrackKind::Video { width, height, .. } => Some((width.into(), height.into())),
        TrackKind::Audio { .. } | TrackKind::Text => None,
    }
}

fn is_in_band(codec: &Codec) -> bool {
    match codec {
        Codec::Avc(config) => config.fourcc == *b"avc3",
        Codec::Hevc(config) => config.fourcc == *b"hev1",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::tests::fake::{picture, pictures};
    use millpond_media::codec::make;

    const SMALL: &[u8] = &[
        0x67, 0x64, 0, 0x0c, 0xac, 0xd9, 0x41, 0x41, 0x9f, 0x9f, 1, 0x10, 0, 0, 3, 0, 0x10, 0, 0, 3, 3, 0x20, 0xf1,
        0x42, 0x99,
    ];
    const LARGE: &[u8] = &[
        0x67, 0x64, 0, 0x0d, 0xac, 0xd9, 0x41, 0x51, 0x9e, 0x22, 0x6c, 4, 0x40, 0, 0, 3, 0, 0x40, 0, 0, 0x0c, 0x83,
        0xc5, 0x0a, 0x65,
    ];
    const PPS: &[u8] = &[0x68, 0xeb, 0xe3, 0xcb, 0x22, 0xc0];
    const OTHER_PPS: &[u8] = &[0x68, 0xef, 0x8f, 0xcb];

    fn format(made: Made) -> Format {
        let mut format = pictures(*b"vp09").unwrap();
        (format.track.codec, format.track.kind, format.track.sample_entry) = (made.codec, made.kind, made.sample_entry);
        format
    }

    /// Picture `number`: NAL units, each after its length.
    fn frame(number: u32, is_sync: bool, units: &[&[u8]]) -> Frame {
        let data: Vec<u8> =
            units.iter().flat_map(|unit| [&(unit.len() as u32).to_be_bytes(), *unit].concat()).collect();
        Frame { is_sync, data: data.into(), ..picture(number) }
    }

    #[test]
    fn each_change_of_size_is_another_format() {
        let known = format(make::avc_in_band(&[SMALL], &[PPS]).unwrap());
        let mut watched = InBandFormat::of(0, &known).unwrap();
        let idr: &[u8] = &[0x65, 0x88, 0x84, 0, 0x21];
        assert_eq!(watched.change(&frame(0, true, &[SMALL, PPS, idr])), None);
        assert_eq!(watched.change(&frame(1, false, &[&[0x41, 0x9a, 1, 2]])), None);
        assert_eq!(watched.change(&frame(10, true, &[SMALL, OTHER_PPS, idr])), None, "the size is the same");
        for (number, set) in [(20, LARGE), (30, SMALL), (40, LARGE)] {
            let (track, other) = watched.change(&frame(number, true, &[set, PPS, idr])).unwrap();
            let TrackKind::Video { width, .. } = other.track.kind else { panic!("{:?}", other.track.kind) };
            assert_eq!((track, width == 322), (0, set == LARGE));
            assert_eq!((&other.track.sample_entry[4..8], &*other.name), (&b"avc3"[..], &*known.name));
            assert_eq!(watched.change(&frame(number + 5, true, &[idr])), None);
        }
    }

    #[test]
    fn sample_entries_with_all_sets_are_not_watched() {
        assert!(InBandFormat::of(0, &format(make::avc(&[SMALL], &[PPS]).unwrap())).is_none());
        assert!(InBandFormat::of(0, &pictures(*b"vp09").unwrap()).is_none());
    }
}
