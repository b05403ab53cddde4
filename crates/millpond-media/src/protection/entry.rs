//! Protected sample entries (ISO/IEC 14496-12 8.12): the format before encryption, the scheme, and its parameters.

use super::{AuxiliaryTable, KeyParameters, Protection, Scheme, Uuid};
use crate::{
    boxes::{Fields, FourCc, FullBox, Node, show},
    error::MediaError,
};

/// Offsets in entries at which boxes can begin: after the fields of `VisualSampleEntry`, and of `AudioSampleEntry` in
/// the versions of ISO and QuickTime (1 and 2).
const BOXES_AT: [usize; 4] = [78, 28, 44, 64];

fn is_protected(entry: &Node<'_>) -> bool {
    matches!(&entry.kind, b"encv" | b"enca")
}

/// Returns the sample entry with the type that it had before encryption. Other entries are not changed.
pub(crate) fn clear_format(entry: Node<'_>) -> Result<Node<'_>, MediaError> {
    if !is_protected(&entry) {
        return Ok(entry);
    }
    let (sinf, _) = scheme(&entry)?;
    let kind = sinf.need(b"frma")?.fields().four_cc()?;
    Ok(Node { kind, ..entry })
}

/// Sets the type of a visual sample entry: that before encryption where it is encrypted.
pub(crate) fn rename_format(entry: &mut [u8], name: FourCc) {
    let field = match Node::new(entry, 0, "") {
        Some(node) if is_protected(&node) => node
            .children_after(BOXES_AT[0])
            .filter_map(|child| child.child(b"frma").filter(|_| child.kind == *b"sinf"))
            .map(|frma| frma.body_offset() as usize)
            .collect(),
        _ => vec![4],
    };
    for at in field {
        if let Some(kind) = entry.get_mut(at..at + 4) {
            kind.copy_from_slice(&name);
        }
    }
}

/// Reads the protection of a sample entry; `None` where the entry is not protected.
pub(crate) fn parse(entry: &Node<'_>) -> Result<Option<Protection>, MediaError> {
    if !is_protected(entry) {
        return Ok(None);
    }
    let (sinf, scheme) = scheme(entry)?;
    let tenc = sinf.need(b"schi")?.need(b"tenc")?;
    let FullBox { version, mut fields, .. } = tenc.full()?;
    let parameters = key_parameters(&tenc, version > 0, &mut fields)?;
    let (groups, headers, samples) = (Vec::new(), Vec::new(), AuxiliaryTable::default());
    Ok(Some(Protection { scheme, parameters, groups, samples, headers }))
}

/// Returns the first `sinf` whose scheme is one of common encryption, and that scheme (8.12.5).
fn scheme<'a>(entry: &Node<'a>) -> Result<(Node<'a>, Scheme), MediaError> {
    let all = || {
        let skip = BOXES_AT.into_iter().find(|skip| entry.children_after(*skip).any(|child| child.kind == *b"sinf"));
        skip.into_iter().flat_map(|skip| entry.children_after(skip)).filter(|child| child.kind == *b"sinf")
    };
    let of = |sinf: &Node<'a>| -> Option<FourCc> {
        let schm = sinf.child(b"schm")?;
        let FullBox { mut fields, .. } = schm.full().ok()?;
        fields.four_cc().ok()
    };
    let known = all().find_map(|sinf| of(&sinf).and_then(Scheme::of).map(|scheme| (sinf, scheme)));
    known.ok_or_else(|| {
        let scheme = all().find_map(|sinf| of(&sinf)).map_or_else(|| "an unknown scheme".to_owned(), show);
        let format = all().find_map(|sinf| sinf.child(b"frma")?.fields().four_cc().ok()).unwrap_or(entry.kind);
        entry.unsupported(format!("'{}' encrypted by {scheme} (supported are cenc, cens, cbc1 and cbcs)", show(format)))
    })
}

/// Reads the fields that `tenc` (ISO/IEC 23001-7 8.2) and the entries of `seig` groups (6) have in common.
pub(super) fn key_parameters(
    node: &Node<'_>,
    has_pattern: bool,
    fields: &mut Fields<'_, '_>,
) -> Result<KeyParameters, MediaError> {
    fields.skip(1)?;
    let pattern = if has_pattern { fields.u8()? } else { fields.skip(1).map(|()| 0)? };
    let is_protected = match fields.u8()? {
        0 => false,
        1 => true,
        other => return Err(node.invalid(format!("isProtected {other}"), "0 or 1")),
    };
    let iv_size = match fields.u8()? {
        size @ (0 | 8 | 16) => size,
        other => return Err(node.invalid(format!("initialization vectors of {other} bytes"), "0, 8 or 16")),
    };
    let mut key_id = Uuid([0; 16]);
    key_id.0.copy_from_slice(fields.take(16)?);
    let mut constant_iv = Vec::new();
    if is_protected && iv_size == 0 {
        let size = fields.u8()?;
        if !matches!(size, 8 | 16) {
            return Err(node.invalid(format!("a constant initialization vector of {size} bytes"), "8 or 16"));
        }
        constant_iv.extend_from_slice(fields.take(usize::from(size))?);
    }
    Ok(KeyParameters {
        is_protected,
        crypt_blocks: pattern >> 4,
        skip_blocks: pattern & 15,
        iv_size: if is_protected { iv_size } else { 0 },
        key_id,
        constant_iv,
    })
}
