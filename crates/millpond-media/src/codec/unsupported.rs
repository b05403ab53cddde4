//! Errors for sample entries that are not played, with reasons that help an operator.

use super::Medium;
use crate::{
    boxes::{FourCc, Node, show, text},
    error::MediaError,
};

/// Names of known formats that are not played.
const NAMES: [(&[u8; 4], &str); 22] = [
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
    (b"text", "QuickTime text"),
];

/// Returns the error for a sample entry of unknown type.
pub(super) fn unknown(node: &Node<'_>, handler: FourCc) -> MediaError {
    let code = show(node.kind);
    let found = match name(node.kind) {
        Some(name) if node.kind == *b"text" => format!("'{code}' ({name}; supported are tx3g, wvtt and stpp)"),
        Some(name) => format!("'{code}' ({name})"),
        None => format!("sample entry '{code}' (handler '{}')", show(handler)),
    };
    let error = node.unsupported(found);
    match Medium::of_handler(handler) {
        Some(medium) => codec_of(error, medium, node.kind),
        None => error,
    }
}

/// Returns the error of a track whose codec is read, but not in the track's form. The form is its reason, unless the error names a codec.
pub(super) fn form_of(error: MediaError, medium: Medium) -> MediaError {
    let form = match &error {
        MediaError::Unsupported { found, .. } => found.clone(),
        _ => return error,
    };
    error.of_codec(medium, form)
}

/// Returns the error with the codec of the sample entry as its reason.
fn codec_of(error: MediaError, medium: Medium, kind: FourCc) -> MediaError {
    error.of_codec(medium, name(kind).map_or_else(|| show(kind), str::to_owned))
}

fn name(kind: FourCc) -> Option<&'static str> {
    NAMES.iter().find(|(known, _)| **known == kind).map(|(_, name)| *name)
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
