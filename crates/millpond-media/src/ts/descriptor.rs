//! Descriptors of programmes and streams (ISO/IEC 13818-1 2.6).

/// Tag of a registration descriptor (2.6.8).
const REGISTRATION: u8 = 0x05;
/// Tag of a teletext descriptor (ETSI EN 300 468 6.2.43).
pub(super) const TELETEXT: u8 = 0x56;
/// Tag of a subtitling descriptor (ETSI EN 300 468 6.2.41).
pub(super) const SUBTITLING: u8 = 0x59;
/// Tag of an ISO 639 language descriptor (2.6.18).
const LANGUAGE: u8 = 0x0a;

/// Returns tag and body of each descriptor. Bytes after the last whole one are skipped.
pub(super) fn all(mut bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let [tag, length, rest @ ..] = bytes else { return None };
        let (body, after) = rest.split_at_checked(usize::from(*length))?;
        bytes = after;
        Some((*tag, body))
    })
}

/// Returns the body of the first descriptor with this tag.
pub(super) fn find(bytes: &[u8], tag: u8) -> Option<&[u8]> {
    all(bytes).find(|(found, _)| *found == tag).map(|(_, body)| body)
}

/// Returns the format identifier of the registration descriptor.
pub(super) fn registration(bytes: &[u8]) -> Option<[u8; 4]> {
    find(bytes, REGISTRATION)?.first_chunk().copied()
}

/// Returns the first language, in lower case.
pub(super) fn language(bytes: &[u8]) -> Option<String> {
    letters(find(bytes, LANGUAGE)?)
}

/// Returns the code of a language at the beginning of a descriptor's body, in lower case.
pub(super) fn letters(body: &[u8]) -> Option<String> {
    let code = body.get(..3)?;
    code.iter()
        .all(u8::is_ascii_alphabetic)
        .then(|| code.iter().map(|byte| byte.to_ascii_lowercase() as char).collect())
}
