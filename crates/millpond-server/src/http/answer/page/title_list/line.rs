//! Names of titles as one line of text.

/// Returns a name without characters that end a line or that XML 1.0 forbids (section 2.2). Each becomes a space.
pub(super) fn of(name: &str) -> String {
    let is_kept = |c: char| !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{fffe}' | '\u{ffff}');
    let name: String = name.chars().map(|c| if is_kept(c) { c } else { ' ' }).collect();
    name.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_line() {
        assert_eq!(of("a\r\n#EXTINF:1,b\u{2028}\u{85}\u{0}c\n"), "a  #EXTINF:1,b   c");
        assert_eq!(of("\"Ä\", 100 %"), "\"Ä\", 100 %");
    }
}
