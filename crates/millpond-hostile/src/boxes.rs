//! Boxes and their fields as bytes.

/// A box of `kind` with the joined `parts` as its body.
pub(crate) fn bx(kind: &[u8; 4], parts: &[&[u8]]) -> Vec<u8> {
    let len: usize = parts.iter().map(|part| part.len()).sum();
    let mut out = Vec::with_capacity(len + 8);
    out.extend_from_slice(&(len as u32 + 8).to_be_bytes());
    out.extend_from_slice(kind);
    parts.iter().for_each(|part| out.extend_from_slice(part));
    out
}

/// Words in big-endian order.
pub(crate) fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// A full box whose fields after version and flags are `count` and the entries' words.
pub(crate) fn table(kind: &[u8; 4], count: u32, entries: impl Iterator<Item = u32>) -> Vec<u8> {
    let mut body = words(&[0, count]);
    body.extend(entries.flat_map(u32::to_be_bytes));
    bx(kind, &[&body])
}
