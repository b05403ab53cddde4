//! Errors for sample entries that are not played, with reasons that help an operator.

use crate::{
    boxes::{FourCc, Node, show, text},
    error::MediaError,
};

/// Names of known formats that are not played.
const NAMES: [(&[u8; 4], &str); 21] = [
    (b"mp4v", "MPEG-4 Visual"),
    (b"s263", "H.263"),
    (b"jpeg", "Motion JPEG"),
    (b"mjpa", "Motion JPEG"),
    (b"mjpb", "Motion JPEG"),
    (b"apch", "ProRes"),
    (b"apcn", "ProRes"),
    (b"apcs", "ProRes"),
    (b"apco", "ProRes"),
    (b"ap4h", "ProRes"),
    (b"vvc1", "VVC"),
    (b"vvi1", "VVC"),
    (b"raw ", "uncompressed video"),
    (b"NONE", "uncompressed video"),
    (b"samr", "AMR"),
    (b"sawb", "AMR-WB"),
    (b"dtsc", "DTS"),
    (b"ac-4", "AC-4"),
    (b"mlpa", "Dolby TrueHD"),
    (b"c608", "CEA-608 captions"),
    (b"tmcd", "QuickTime time code"),
];

/// Returns the error for a sample entry of unknown type.
pub(super) fn unknown(node: &Node<'_>, handler: FourCc) -> MediaError {
    let code = show(node.kind);
    let found = match NAMES.iter().find(|(kind, _)| **kind == node.kind) {
        Some((_, name)) => format!("'{code}' ({name})"),
        None if node.kind == *b"text" => "'text' (QuickTime text; supported are tx3g, wvtt and stpp)".to_owned(),
        None => format!("sample entry '{code}' (handler '{}')", show(handler)),
    };
    node.unsupported(found)
}

/// Returns the error for an encrypted sample entry (ISO/IEC 14496-12 8.12).
pub(super) fn encrypted(node: &Node<'_>) -> MediaError {
    if matches!(&node.kind, b"drms" | b"drmi") {
        return node.unsupported(format!("'{}' encrypted: FairPlay", show(node.kind)));
    }
    let sinf = protection_scheme_info(node);
    let field = |kind: &FourCc, at: usize| -> Option<FourCc> {
        let child = sinf.as_ref()?.child(kind)?;
        child.body.get(at..)?.first_chunk().copied()
    };
    let format = field(b"frma", 0).unwrap_or(node.kind);
    // The scheme follows version and flags of `schm` (8.12.5).
    let scheme = field(b"schm", 4).map_or_else(|| "unknown scheme".to_owned(), |scheme| text(&scheme));
    node.unsupported(format!("'{}' encrypted: {scheme}", show(format)))
}

/// Returns the `sinf` box of a text sample entry.
fn protection_scheme_info<'a>(node: &Node<'a>) -> Option<Node<'a>> {
    node.children_after(8).find(|child| child.kind == *b"sinf")
}
