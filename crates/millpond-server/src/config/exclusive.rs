//! Settings that exclude each other. A flag wins over a variable of the environment there too: operators export variables such as
//! `MILLPOND_ADMIN_TOKEN` for all commands of a shell.

/// Pairs of settings of which one server has one at most.
const PAIRS: [(&str, &str); 6] = [
    ("admin-token", "admin-token-file"),
    ("hook-secret", "hook-secret-file"),
    ("cluster", "cluster-nodes"),
    ("tls-cert", "tls-self-signed"),
    ("tls-key", "tls-self-signed"),
    ("access-users", "auth-url"),
];
/// Values by which a setting is off. It excludes nothing then.
const OFF: [&str; 4] = ["", "none", "off", "false"];

/// Tells whether a flag excludes the setting of a name.
pub(super) fn is_excluded(name: &str, flags: &[(String, String)]) -> bool {
    let is_given =
        |other: &str| flags.iter().any(|(flag, text)| flag.replace('_', "-") == other && !OFF.contains(&text.as_str()));
    PAIRS.iter().any(|(one, other)| (*one == name && is_given(other)) || (*other == name && is_given(one)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn pairs_are_settings() {
        assert!(PAIRS.iter().all(|(one, other)| Config::find(one).is_some() && Config::find(other).is_some()));
    }

    #[test]
    fn flags_exclude_the_other_setting_of_a_pair() {
        let flags = |name: &str, text: &str| [(name.to_owned(), text.to_owned())];
        assert!(is_excluded("admin-token", &flags("admin-token-file", "/token")));
        assert!(is_excluded("tls-key", &flags("tls-self-signed", "true")));
        assert!(!is_excluded("tls-key", &flags("tls-self-signed", "false")));
        assert!(!is_excluded("admin-token", &flags("admin-token", "x")));
        assert!(!is_excluded("access-users", &flags("auth-url", "none")));
    }
}
