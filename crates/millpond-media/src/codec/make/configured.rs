//! Codecs whose decoder configuration a container states as a record of its own.

use super::{Made, entry};
use crate::{boxes::FourCc, codec::video::color::Color, error::MediaError};

/// Rate of every Opus decoder's output, in samples per second.
const OPUS_RATE: u32 = 48_000;
/// First bytes of an identification header of Opus (RFC 7845 5.1), and of a FLAC stream (RFC 9639 6).
const OPUS_HEAD: &[u8] = b"OpusHead";
const FLAC: &[u8] = b"fLaC";
/// Length of a metadata block of type STREAMINFO with its header (RFC 9639 8.2).
const STREAM_INFO: usize = 4 + 34;

/// Properties of pictures, and boxes of the sample entry besides the configuration.
pub(crate) struct Pictures<'a> {
    pub(crate) size: (u16, u16),
    pub(crate) pixel_aspect: Option<(u32, u32)>,
    pub(crate) color: Option<Color>,
    pub(crate) boxes: &'a [(FourCc, Vec<u8>)],
}

/// Makes an entry of type `kind` from a configuration record: `avcC`, `hvcC` or `av1C`.
///
/// # Errors
/// The record is invalid or too long.
pub(crate) fn configured(kind: &FourCc, record: (&FourCc, &[u8]), pictures: &Pictures<'_>) -> Result<Made, MediaError> {
    let boxes = pictures.boxes.iter().map(|(_, body)| body.len()).sum::<usize>();
    entry::bounded(record.1.len().saturating_add(boxes))?;
    let picture = entry::Picture { size: pictures.size, pixel_aspect: pictures.pixel_aspect, color: pictures.color };
    Made::parsed(entry::with_boxes(entry::visual(kind, &picture, record), pictures.boxes), b"vide")
}

/// Makes an `Opus` entry from an identification header (RFC 7845 5.1), whose numbers begin with the least significant byte.
///
/// # Errors
/// The header is invalid.
pub(crate) fn opus_head(head: &[u8]) -> Result<Made, MediaError> {
    let invalid = || {
        let found = format!("{:02x?}", &head[..head.len().min(19)]);
        MediaError::invalid("OpusHead", 0, found, "an identification header of Opus")
    };
    let rest = head.strip_prefix(OPUS_HEAD).ok_or_else(invalid)?;
    let [_, channels, skip_low, skip_high, a, b, c, d, gain_low, gain_high, family, mapping @ ..] = rest else {
        return Err(invalid());
    };
    entry::bounded(mapping.len())?;
    let mut dops = vec![0, *channels, *skip_high, *skip_low, *d, *c, *b, *a, *gain_high, *gain_low, *family];
    if *family != 0 {
        dops.extend(mapping.get(..2 + usize::from(*channels)).ok_or_else(invalid)?);
    }
    let entry = entry::audio(b"Opus", u16::from(*channels), 16, OPUS_RATE, Some((b"dOps", &dops)));
    Made::parsed(entry, b"soun")
}

/// Makes a `fLaC` entry from the header of a FLAC stream: its signature, and metadata blocks.
///
/// # Errors
/// The first block is not STREAMINFO.
pub(crate) fn flac_head(head: &[u8]) -> Result<Made, MediaError> {
    let blocks = head.strip_prefix(FLAC).unwrap_or(head);
    let Some(info) = blocks.get(..STREAM_INFO).filter(|info| info[0] & 0x7f == 0) else {
        let found = format!("{} bytes", head.len());
        return Err(MediaError::invalid("FLAC header", 0, found, "a STREAMINFO block first"));
    };
    // A full box of version 0 with this block alone, which is marked as the last.
    let mut dfla = vec![0; 4];
    dfla.push(0x80);
    dfla.extend(&info[1..]);
    let channels = u16::from(info[4 + 12] >> 1 & 7) + 1;
    let bits = u16::from(info[4 + 12] & 1) << 4 | u16::from(info[4 + 13] >> 4);
    let rate = u32::from(info[4 + 10]) << 12 | u32::from(info[4 + 11]) << 4 | u32::from(info[4 + 12] >> 4);
    Made::parsed(entry::audio(b"fLaC", channels, bits + 1, rate, Some((b"dfLa", &dfla))), b"soun")
}

/// Makes an `alac` entry from a magic cookie.
///
/// # Errors
/// The cookie is invalid or too long.
pub(crate) fn alac_cookie(cookie: &[u8], channels: u16, sample_rate: u32) -> Result<Made, MediaError> {
    entry::bounded(cookie.len())?;
    let body = [&[0; 4], cookie].concat();
    Made::parsed(entry::audio(b"alac", channels, 16, sample_rate, Some((b"alac", &body))), b"soun")
}

/// Adds pixel aspect ratio and colours, which the container states, to an entry that has neither, and further boxes.
///
/// # Errors
/// The entry can't be read again.
pub(crate) fn shown(
    made: Made,
    pixel_aspect: Option<(u32, u32)>,
    color: Option<Color>,
    mut boxes: Vec<(FourCc, Vec<u8>)>,
) -> Result<Made, MediaError> {
    if let Some(color) = color.filter(|_| made.codec.color().is_none()) {
        boxes.push((*b"colr", entry::color(color)));
    }
    if let Some(ratio) = pixel_aspect {
        boxes.push((*b"pasp", entry::aspect(ratio)));
    }
    if boxes.is_empty() {
        return Ok(made);
    }
    Made::parsed(entry::with_boxes(made.sample_entry, &boxes), b"vide")
}
