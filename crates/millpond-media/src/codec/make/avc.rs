//! AVC: `avc1` and `avc3` with `AVCDecoderConfigurationRecord` (ISO/IEC 14496-15 5.3.3.1 and 5.4.2).

use super::{Made, entry};
use crate::{
    boxes::FourCc,
    codec::{
        nal::NalSyntax,
        video::sps::{HIGH, PictureSequence},
    },
    error::MediaError,
};

/// Path of errors.
const PATH: &str = "H.264 parameter sets";
/// Most sequence parameter sets, whose count has 5 bits.
const MOST_SPS: usize = 31;
/// Most picture parameter sets, whose count has 8 bits.
const MOST_PPS: usize = 255;

/// Makes an `avc1` entry: frames must not contain parameter sets. The sets are NAL units without start codes or lengths.
///
/// # Errors
/// A set is missing, empty or too large, or the first sequence parameter set is not readable.
pub fn avc(sps: &[impl AsRef<[u8]>], pps: &[impl AsRef<[u8]>]) -> Result<Made, MediaError> {
    made(b"avc1", sps, pps)
}

/// Makes an `avc3` entry: frames may contain parameter sets that differ from these.
///
/// # Errors
/// As [`avc`].
pub fn avc_in_band(sps: &[impl AsRef<[u8]>], pps: &[impl AsRef<[u8]>]) -> Result<Made, MediaError> {
    made(b"avc3", sps, pps)
}

fn made(kind: &FourCc, sps: &[impl AsRef<[u8]>], pps: &[impl AsRef<[u8]>]) -> Result<Made, MediaError> {
    let [sps_count, pps_count] = [count(sps.len(), MOST_SPS, "sequence")?, count(pps.len(), MOST_PPS, "picture")?];
    entry::bounded(sps.iter().map(|set| set.as_ref().len()).chain(pps.iter().map(|set| set.as_ref().len())).sum())?;
    let first = sps.first().map(AsRef::as_ref).unwrap_or_default();
    let sequence = PictureSequence::read(NalSyntax::Avc, first)?;
    let [_, profile, compatibility, level, ..] = *first else {
        return Err(MediaError::truncated(PATH, 0, first.len() as u64, 4));
    };
    // Lengths of NAL units have four bytes. The bits before a field narrower than a byte are ones.
    let mut record = vec![1, profile, compatibility, level, 0xff, 0xe0 | sps_count];
    write_sets(&mut record, sps)?;
    record.push(pps_count);
    write_sets(&mut record, pps)?;
    if HIGH.contains(&profile) {
        let (luma, chroma) = sequence.bit_depths;
        record.extend([0xfc | sequence.chroma_format & 3, 0xf8 | (luma - 8) & 7, 0xf8 | (chroma - 8) & 7, 0]);
    }
    Made::parsed(entry::visual(kind, &entry::Picture::of(&sequence)?, (b"avcC", &record)), b"vide")
}

/// Returns the number of sets, which is at least 1.
fn count(found: usize, most: usize, what: &str) -> Result<u8, MediaError> {
    let count = u8::try_from(found).ok().filter(|count| (1..=most).contains(&usize::from(*count)));
    count.ok_or_else(|| MediaError::invalid(PATH, 0, format!("{found} {what} parameter sets"), format!("1 to {most}")))
}

/// Appends NAL units after their lengths of 16 bits.
pub(super) fn write_sets(record: &mut Vec<u8>, sets: &[impl AsRef<[u8]>]) -> Result<(), MediaError> {
    for set in sets.iter().map(AsRef::as_ref) {
        let Some(length) = u16::try_from(set.len()).ok().filter(|length| *length > 0) else {
            return Err(MediaError::invalid(PATH, 0, format!("a parameter set of {} bytes", set.len()), "1 to 65535"));
        };
        record.extend(length.to_be_bytes());
        record.extend(set);
    }
    Ok(())
}
