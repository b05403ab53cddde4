//! Base64 (RFC 4648 4).

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Encodes `bytes` in Base64, padded.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let word = group.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for place in 0..4 {
            let digit = ALPHABET[(word >> (18 - 6 * place) & 63) as usize];
            out.push(if place <= group.len() { digit as char } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn groups_are_padded() {
        let cases = ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(|text| super::encode(text.as_bytes()));
        assert_eq!(cases, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"]);
        assert_eq!(super::encode(&[0xfb, 0xff, 0xfe]), "+//+");
    }
}
