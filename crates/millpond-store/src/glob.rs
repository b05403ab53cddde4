//! Patterns of paths.

/// Most bytes of a pattern.
const LONGEST: usize = 1024;

/// A pattern of the paths of a place. `*` and `?` match within a component, `**` matches across components. A pattern that matches a folder
/// matches all below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob {
    text: String,
    /// Bytes before the first `*` or `?`.
    literal: usize,
    parts: Vec<Part>,
}

/// A pattern that is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GlobError {
    /// No character.
    #[error("an empty pattern: expected a path with *, ** or ?")]
    Empty,
    /// More bytes than a pattern may have.
    #[error("a pattern of {0} bytes: expected at most {LONGEST}")]
    TooLong(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Char(char),
    /// `?`: one character of a component.
    One,
    /// `*`: any characters of a component.
    Some,
    /// `**`: any characters.
    All,
    /// `**/` at the beginning of a component: any folders, or none.
    Folders,
}

impl Glob {
    /// Reads a pattern. All characters but `*` and `?` stand for themselves.
    ///
    /// # Errors
    /// An empty text, or one that is too long.
    pub fn parse(text: &str) -> Result<Self, GlobError> {
        if text.is_empty() {
            return Err(GlobError::Empty);
        }
        if text.len() > LONGEST {
            return Err(GlobError::TooLong(text.len()));
        }
        let (mut parts, mut rest) = (Vec::new(), text);
        while let Some(first) = rest.chars().next() {
            let begins = matches!(parts.last(), None | Some(Part::Char('/') | Part::Folders));
            let (part, length) = match first {
                '*' if begins && rest.starts_with("**/") => (Part::Folders, 3),
                '*' if rest.starts_with("**") => (Part::All, 2),
                '*' => (Part::Some, 1),
                '?' => (Part::One, 1),
                other => (Part::Char(other), other.len_utf8()),
            };
            parts.push(part);
            rest = &rest[length..];
        }
        let literal = text.find(['*', '?']).unwrap_or(text.len());
        Ok(Self { text: text.to_owned(), literal, parts })
    }

    /// Returns the pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether the pattern matches a path, or a folder above it.
    ///
    /// All positions in the pattern are followed at once, so the work is at most the product of the lengths.
    pub fn matches(&self, path: &str) -> bool {
        // Most paths differ before the first star.
        if !path.starts_with(&self.text[..self.literal]) {
            return false;
        }
        let end = self.parts.len();
        let (mut at, mut next) = (vec![false; end + 1], vec![false; end + 1]);
        at[0] = true;
        self.skip(&mut at, true);
        for found in path.chars() {
            if found == '/' && at[end] {
                return true;
            }
            next.fill(false);
            for (index, part) in self.parts.iter().enumerate().filter(|(index, _)| at[*index]) {
                match part {
                    Part::Char(wanted) => next[index + 1] |= *wanted == found,
                    Part::One => next[index + 1] |= found != '/',
                    Part::Some => next[index] |= found != '/',
                    Part::All | Part::Folders => next[index] = true,
                }
            }
            std::mem::swap(&mut at, &mut next);
            self.skip(&mut at, found == '/');
            if !at.contains(&true) {
                return false;
            }
        }
        at[end]
    }

    /// Adds the positions behind parts that match nothing. `begins` is whether a component begins.
    fn skip(&self, at: &mut [bool], begins: bool) {
        for (index, part) in self.parts.iter().enumerate() {
            let is_empty = matches!(part, Part::Some | Part::All) || (*part == Part::Folders && begins);
            if at[index] && is_empty {
                at[index + 1] = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stars_end_at_components_and_two_stars_do_not() {
        for (pattern, matched, others) in [
            ("a.mp4", &["a.mp4"][..], &["b.mp4", "a.mp", "a.mp44"][..]),
            ("*.mp4", &["a.mp4", ".mp4"], &["a/b.mp4", "a.mp3"]),
            ("a/*/c", &["a/b/c", "a//c"], &["a/b/b/c", "a/c"]),
            ("**.mp4", &["a.mp4", "a/b/c.mp4"], &["a.mp3"]),
            ("**/a.mp4", &["a.mp4", "b/a.mp4", "c/b/a.mp4"], &["ba.mp4", "c/ba.mp4"]),
            ("a/**/b", &["a/b", "a/x/b", "a/x/y/b"], &["a/xb", "ab"]),
            ("**/**/b", &["b", "a/b"], &["ab"]),
            ("?é", &["aé", "éé"], &["é", "/é", "aaé"]),
            ("se*on-[1]", &["season-[1]"], &["season-1"]),
            // Folders.
            ("a*", &["a", "ab/c/d", "a/b"], &["b/a"]),
            ("a/b", &["a/b/c"], &["a", "a/bc"]),
        ] {
            let glob = Glob::parse(pattern).unwrap();
            assert_eq!(glob.as_str(), pattern);
            matched.iter().for_each(|path| assert!(glob.matches(path), "{pattern} {path}"));
            others.iter().for_each(|path| assert!(!glob.matches(path), "{pattern} {path}"));
        }
        assert_eq!(Glob::parse(""), Err(GlobError::Empty));
        assert_eq!(Glob::parse(&"a".repeat(1025)), Err(GlobError::TooLong(1025)));
    }

    proptest! {
        #[test]
        fn a_path_matches_itself_and_its_beginnings_with_stars(path in "[a-c/]{1,12}", cut in 0_usize..12) {
            prop_assert!(Glob::parse(&path).unwrap().matches(&path));
            let begin = &path[..cut.min(path.len())];
            let pattern = format!("{begin}**");
            prop_assert!(Glob::parse(&pattern).unwrap().matches(&path));
        }
    }
}
