//! Relative references between paths (RFC 3986 4.2).

/// Returns the reference from a document in the folder `from` to the folder `to`, with a slash at its end. The reference is empty
/// if both are the same folder. Both are decoded paths below one root, without slashes at their ends. The reference is
/// percent-encoded.
#[must_use]
pub fn relative_folder(from: &str, to: &str) -> String {
    let components = |path: &'_ str| path.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
    let (from, to): (Vec<String>, Vec<String>) = (components(from), components(to));
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let mut out = "../".repeat(from.len() - common);
    for component in to.iter().skip(common) {
        component.bytes().for_each(|byte| push(&mut out, byte));
        out.push('/');
    }
    out
}

/// Appends a byte of a path component: as it is where it is unreserved (RFC 3986 2.3), else percent-encoded.
fn push(out: &mut String, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    if byte.is_ascii_alphanumeric() || b"-_.~,".contains(&byte) {
        out.push(char::from(byte));
    } else {
        out.push('%');
        out.push(char::from(HEX[usize::from(byte >> 4)]));
        out.push(char::from(HEX[usize::from(byte & 15)]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_between_folders() {
        for (from, to, expected) in [
            ("cams/door", "cams/door/hi", "hi/"),
            ("cams/door/hi/v1", "cams/door/lo/v1", "../../lo/v1/"),
            ("cams/door", "cams/101", "../101/"),
            ("door", "door", ""),
            ("", "floor 2/ä\"", "floor%202/%C3%A4%22/"),
            ("a/b", "", "../../"),
        ] {
            assert_eq!(relative_folder(from, to), expected, "{from} to {to}");
        }
    }
}
