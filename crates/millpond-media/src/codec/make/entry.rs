//! Writes sample entries.

use super::{MOST_CONFIGURATION, PATH};
use crate::{
    boxes::FourCc,
    codec::{
        from_quicktime,
        video::{color::Color, sps::PictureSequence},
    },
    error::MediaError,
};

/// Properties of pictures that a sample entry states.
#[derive(Clone, Copy, Debug)]
pub(super) struct Picture {
    /// Width and height in pixels.
    pub(super) size: (u16, u16),
    pub(super) pixel_aspect: Option<(u32, u32)>,
    pub(super) color: Option<Color>,
}

impl Picture {
    /// The properties that a sequence parameter set states. A missing size is an error.
    pub(super) fn of(sequence: &PictureSequence) -> Result<Self, MediaError> {
        let size = sequence.size.ok_or_else(|| {
            MediaError::invalid("sequence parameter set", 0, "no picture size", "1 to 65535 pixels across and down")
        })?;
        Ok(Self { size, pixel_aspect: sequence.pixel_aspect, color: sequence.color })
    }
}

/// Writes a `VisualSampleEntry` (ISO/IEC 14496-12 12.1.3) with the configuration box, `colr` and `pasp`.
pub(super) fn visual(kind: &FourCc, picture: &Picture, configuration: (&FourCc, &[u8])) -> Vec<u8> {
    let mut body = Vec::with_capacity(128 + configuration.1.len());
    // Data reference 1, predefined and reserved fields.
    body.extend([0, 0, 0, 0, 0, 0, 0, 1]);
    body.extend([0; 16]);
    body.extend(picture.size.0.to_be_bytes());
    body.extend(picture.size.1.to_be_bytes());
    // 72 dpi, a reserved word, and one frame per sample.
    body.extend([0, 0x48, 0, 0, 0, 0x48, 0, 0, 0, 0, 0, 0, 0, 1]);
    // No compressor name, a depth of 24 bits, and no colour table.
    body.extend([0; 32]);
    body.extend([0, 0x18, 0xff, 0xff]);
    from_quicktime::put(&mut body, configuration.0, &[configuration.1]);
    if let Some(color) = picture.color {
        from_quicktime::put(&mut body, b"colr", &[&self::color(color)]);
    }
    if let Some(ratio) = picture.pixel_aspect {
        from_quicktime::put(&mut body, b"pasp", &[&aspect(ratio)]);
    }
    from_quicktime::boxed(*kind, &body)
}

/// The body of `colr` (12.1.5) of type `nclx`.
pub(super) fn color(color: Color) -> Vec<u8> {
    let codes = [0, color.primaries, 0, color.transfer, 0, color.matrix, u8::from(color.full_range) << 7];
    [&b"nclx"[..], &codes].concat()
}

/// The body of `pasp` (12.1.4): horizontal and vertical spacing.
pub(super) fn aspect((horizontal, vertical): (u32, u32)) -> Vec<u8> {
    [horizontal.to_be_bytes(), vertical.to_be_bytes()].concat()
}

/// Appends boxes to a sample entry.
pub(super) fn with_boxes(mut entry: Vec<u8>, boxes: &[(FourCc, Vec<u8>)]) -> Vec<u8> {
    for (kind, body) in boxes {
        from_quicktime::put(&mut entry, kind, &[body]);
    }
    let size = u32::try_from(entry.len()).unwrap_or(u32::MAX).to_be_bytes();
    if let Some(field) = entry.first_chunk_mut() {
        *field = size;
    }
    entry
}

/// Writes an `AudioSampleEntry` of version 0 (ISO/IEC 14496-12 12.2.3) with a configuration box. A rate of more than 16
/// bits is written as 0: the configuration or the track's clock states it.
pub(super) fn audio(
    kind: &FourCc,
    channels: u16,
    value_bits: u16,
    sample_rate: u32,
    configuration: Option<(&FourCc, &[u8])>,
) -> Vec<u8> {
    let mut body = vec![0, 0, 0, 0, 0, 0, 0, 1];
    body.extend([0; 8]);
    body.extend(channels.to_be_bytes());
    body.extend(value_bits.to_be_bytes());
    body.extend([0; 4]);
    body.extend(u16::try_from(sample_rate).unwrap_or(0).to_be_bytes());
    body.extend([0; 2]);
    if let Some((kind, configuration)) = configuration {
        from_quicktime::put(&mut body, kind, &[configuration]);
    }
    from_quicktime::boxed(*kind, &body)
}

/// Returns an error unless `bytes` fit into a configuration.
pub(super) fn bounded(bytes: usize) -> Result<(), MediaError> {
    if bytes <= MOST_CONFIGURATION {
        return Ok(());
    }
    Err(MediaError::too_large(PATH, 0, bytes as u64, MOST_CONFIGURATION as u64, "bytes of configuration"))
}
