//! Numbers of things in messages.

/// Returns a number with its noun, such as `1 node` and `2 nodes`.
pub(super) fn counted(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_singular() {
        assert_eq!([0, 1, 2].map(|number| counted(number, "session")), ["0 sessions", "1 session", "2 sessions"]);
    }
}
