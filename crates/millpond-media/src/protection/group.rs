//! Sample groups of type `seig` (ISO/IEC 23001-7 6): samples whose parameters differ from their track's.

use super::{KeyParameters, entry::key_parameters};
use crate::{
    boxes::{Entries, FullBox, Node},
    budget::Budget,
    error::MediaError,
};

/// Number of consecutive samples, and the index of their `sgpd` entry as in `sbgp`.
pub(super) type Run = (u32, u32);

/// First index of groups that the fragment itself describes (ISO/IEC 14496-12 8.9.4).
pub(super) const OF_FRAGMENT: u32 = 0x1_0000;

/// Reads the entries of the `sgpd` of type `seig` in `container` (ISO/IEC 14496-12 8.9.3).
pub(super) fn descriptions(container: &Node<'_>, budget: &mut Budget) -> Result<Vec<KeyParameters>, MediaError> {
    let Some(sgpd) = of_type(container, b"sgpd") else { return Ok(Vec::new()) };
    let FullBox { version, mut fields, .. } = sgpd.full()?;
    if version > 2 {
        return Err(sgpd.unsupported(format!("version {version} of a 'seig' group description")));
    }
    fields.skip(4)?;
    let default_length = if version >= 1 { fields.u32()? } else { 0 };
    // The group of samples that no `sbgp` counts; 0 is none.
    let default_group = if version == 2 { fields.u32()? } else { 0 };
    if default_group > 0 {
        return Err(sgpd.unsupported("a default group of encryption parameters"));
    }
    let count = fields.u32()?;
    let mut entries = Vec::new();
    for _ in 0..count {
        budget.step(&sgpd, 1)?;
        let length = if version >= 1 && default_length == 0 { fields.u32()? } else { default_length };
        if length == 0 {
            entries.push(key_parameters(&sgpd, true, &mut fields)?);
            continue;
        }
        let mut entry = fields.clone();
        entries.push(key_parameters(&sgpd, true, &mut entry)?);
        fields.skip(length as usize)?;
    }
    Ok(entries)
}

/// Returns the runs of the `sbgp` of type `seig` in `container` (ISO/IEC 14496-12 8.9.2); none where all samples have
/// the parameters of the track.
pub(super) fn runs<'a>(
    container: &Node<'a>,
    budget: &mut Budget,
) -> Result<impl Iterator<Item = Run> + use<'a>, MediaError> {
    let mut entries = Entries::<8>::EMPTY;
    if let Some(sbgp) = of_type(container, b"sbgp") {
        let FullBox { version, mut fields, .. } = sbgp.full()?;
        fields.skip(if version == 1 { 8 } else { 4 })?;
        let count = fields.u32()?;
        entries = Entries::new(fields.rest(), count);
        budget.step(&sbgp, u32::try_from(entries.len()).unwrap_or(u32::MAX))?;
    }
    let word = |bytes: &[u8]| bytes.first_chunk().map_or(0, |word| u32::from_be_bytes(*word));
    Ok(entries.iter().map(move |entry| (word(&entry[..4]), word(&entry[4..]))))
}

/// Returns the child of type `kind` whose grouping type is `seig`.
fn of_type<'a>(container: &Node<'a>, kind: &[u8; 4]) -> Option<Node<'a>> {
    container.children_of(kind).find(|node| node.body.get(4..8) == Some(b"seig"))
}
