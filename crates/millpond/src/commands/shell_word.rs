//! Words of commands that are printed for a shell.

/// Returns a word as a shell of POSIX takes it: quoted, where it has other characters than plain ones.
pub(super) fn shell_word(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:@%+=,".contains(&byte);
    match !word.is_empty() && word.bytes().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_change_them() {
        for (word, shown) in [
            ("edge-1.example:8380", "edge-1.example:8380"),
            ("[::1]:8380", "'[::1]:8380'"),
            ("ssh {host} reboot", "'ssh {host} reboot'"),
            ("it's", r"'it'\''s'"),
            ("$HOME", "'$HOME'"),
            ("~", "'~'"),
            ("", "''"),
        ] {
            assert_eq!(shell_word(word), shown);
        }
    }
}
