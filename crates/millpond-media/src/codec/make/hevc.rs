//! HEVC: `hvc1` and `hev1` with `HEVCDecoderConfigurationRecord` (ISO/IEC 14496-15 8.3.3.1 and 8.4.1).

use super::{Made, avc::write_sets, entry};
use crate::{
    boxes::FourCc,
    codec::{
        nal::{NalSyntax, unescaped},
        video::sps::PictureSequence,
    },
    error::MediaError,
};

/// Path of errors.
const PATH: &str = "H.265 parameter sets";
/// Most sets of one type: identifiers of picture parameter sets are below it, those of others below 16 (ISO/IEC 23008-2
/// 7.4.3).
const MOST_SETS: usize = 64;
/// Place of `sps_max_sub_layers_minus1`, the nesting flag and the general profile, tier and level in a sequence parameter
/// set (ISO/IEC 23008-2 7.3.2.2.1).
const GENERAL: std::ops::Range<usize> = 2..15;
/// NAL unit types of parameter sets (ISO/IEC 23008-2 table 7-1).
const TYPES: [u8; 3] = [32, 33, 34];
/// Flag of an array that has all sets of its type.
const COMPLETE: u8 = 0x80;

/// Makes an `hvc1` entry: frames must not contain parameter sets. The sets are NAL units without start codes or lengths.
///
/// # Errors
/// A set is missing, empty or too large, or the first sequence parameter set is not readable.
pub fn hevc(vps: &[impl AsRef<[u8]>], sps: &[impl AsRef<[u8]>], pps: &[impl AsRef<[u8]>]) -> Result<Made, MediaError> {
    made(b"hvc1", vps, sps, pps)
}

/// Makes an `hev1` entry: frames may contain parameter sets that differ from these.
///
/// # Errors
/// As [`hevc`].
pub fn hevc_in_band(
    vps: &[impl AsRef<[u8]>],
    sps: &[impl AsRef<[u8]>],
    pps: &[impl AsRef<[u8]>],
) -> Result<Made, MediaError> {
    made(b"hev1", vps, sps, pps)
}

fn made(
    kind: &FourCc,
    vps: &[impl AsRef<[u8]>],
    sps: &[impl AsRef<[u8]>],
    pps: &[impl AsRef<[u8]>],
) -> Result<Made, MediaError> {
    let bytes = |sets: &[&[u8]]| sets.iter().map(|set| set.len()).sum::<usize>();
    let (vps, sps, pps) = (as_bytes(vps), as_bytes(sps), as_bytes(pps));
    entry::bounded(bytes(&vps) + bytes(&sps) + bytes(&pps))?;
    let first = sps.first().copied().unwrap_or_default();
    let sequence = PictureSequence::read(NalSyntax::Hevc, first)?;
    let unescaped = unescaped(first);
    let Some([layers, general @ ..]) = unescaped.get(GENERAL) else {
        return Err(MediaError::truncated(PATH, 0, unescaped.len() as u64, GENERAL.end as u64));
    };
    let mut record = vec![1];
    record.extend(general);
    let (luma, chroma) = sequence.bit_depths;
    // No minimum spatial segmentation, unknown parallelism. The bits before a field narrower than a byte are ones.
    record.extend([0xf0, 0, 0xfc, 0xfc | sequence.chroma_format & 3, 0xf8 | (luma - 8) & 7, 0xf8 | (chroma - 8) & 7]);
    // An unspecified frame rate, temporal layers and their nesting, lengths of four bytes, and three arrays.
    let (temporal_layers, is_nested) = ((layers >> 1 & 7) + 1, layers & 1);
    record.extend([0, 0, (temporal_layers & 7) << 3 | is_nested << 2 | 3, TYPES.len() as u8]);
    for (sets, number) in [vps, sps, pps].iter().zip(TYPES) {
        if !(1..=MOST_SETS).contains(&sets.len()) {
            let found = format!("{} NAL units of type {number}", sets.len());
            return Err(MediaError::invalid(PATH, 0, found, "1 to 64"));
        }
        record.push(number | if kind == b"hvc1" { COMPLETE } else { 0 });
        record.extend((sets.len() as u16).to_be_bytes());
        write_sets(&mut record, sets)?;
    }
    Made::parsed(entry::visual(kind, &entry::Picture::of(&sequence)?, (b"hvcC", &record)), b"vide")
}

fn as_bytes<S: AsRef<[u8]>>(sets: &[S]) -> Vec<&[u8]> {
    sets.iter().map(AsRef::as_ref).collect()
}
