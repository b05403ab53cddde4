//! Users: their names and passwords, read from a file.

use millpond_rtp::digest::{Algorithm, Secret};
use millpond_settings::{ConfigError, Sources};
use std::{
    collections::HashMap,
    fmt, io,
    path::{Path, PathBuf},
};

/// The realm of Digest authentication, which players show to their users.
pub const REALM: &str = "millpond";

/// A file of users: of those that may play, or of those that may publish.
#[derive(Debug, Clone)]
pub struct UserFile {
    /// File of the users, which is read again when it changes.
    pub path: PathBuf,
    /// Users of that file.
    pub users: Users,
}

impl UserFile {
    /// Reads the file that a setting names.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn read(path: PathBuf, key: &'static str, sources: &Sources) -> Result<Self, Vec<ConfigError>> {
        Users::read(&path).map(|users| Self { path: path.clone(), users }).map_err(|all| {
            let wrong = |reason: String| ConfigError::File { at: sources.of(key), key, path: path.clone(), reason };
            all.iter().map(|error| wrong(error.to_string())).collect()
        })
    }
}

/// Users and the hashes of their passwords. The passwords themselves are not kept.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Users {
    secrets: HashMap<String, Secrets>,
}

#[derive(Clone, PartialEq, Eq)]
struct Secrets {
    sha256: Secret,
    md5: Secret,
}

/// A line that names no user. The error does not contain its text, which may be a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: expected {expected}, found {found}")]
pub struct BadLine {
    /// Line number, counted from 1.
    pub line: usize,
    /// Expected content.
    pub expected: &'static str,
    /// Description of the content.
    pub found: &'static str,
}

/// A fault of a user file.
#[derive(Debug, thiserror::Error)]
pub enum UsersError {
    /// The file cannot be read.
    #[error("cannot read the file: {0}")]
    Unreadable(#[from] io::Error),
    /// A line is not valid.
    #[error(transparent)]
    Line(#[from] BadLine),
}

const FORM: &str = "name:password";

impl Users {
    /// Reads a file with lines in the form of [`parse`](Self::parse).
    ///
    /// # Errors
    /// All faults of the file.
    pub fn read(path: &Path) -> Result<Self, Vec<UsersError>> {
        let text = millpond_settings::files::read(path).map_err(|error| vec![error.into()])?;
        Self::parse(&text).map_err(|lines| lines.into_iter().map(UsersError::from).collect())
    }

    /// Parses lines of the form `name:password`. Empty lines and comments (`#` in front) are skipped. A password may
    /// contain colons.
    ///
    /// # Errors
    /// All lines that are not valid, in order.
    pub fn parse(text: &[u8]) -> Result<Self, Vec<BadLine>> {
        let (mut users, mut bad) = (Self::default(), Vec::new());
        for (number, line) in text.split(|byte| *byte == b'\n').enumerate() {
            if let Err((expected, found)) = users.add(line.strip_suffix(b"\r").unwrap_or(line)) {
                bad.push(BadLine { line: number + 1, expected, found });
            }
        }
        if bad.is_empty() && users.secrets.is_empty() {
            bad.push(BadLine { line: 1, expected: FORM, found: "no user in the whole file" });
        }
        if bad.is_empty() { Ok(users) } else { Err(bad) }
    }

    fn add(&mut self, line: &[u8]) -> Result<(), (&'static str, &'static str)> {
        if line.is_empty() || line.starts_with(b"#") {
            return Ok(());
        }
        let line = std::str::from_utf8(line).map_err(|_| ("UTF-8", "other bytes"))?;
        if line.chars().any(char::is_control) {
            return Err((FORM, "a control character"));
        }
        let (name, password) = match line.split_once(':').ok_or((FORM, "no colon"))? {
            ("", _) => return Err((FORM, "no name")),
            (_, "") => return Err((FORM, "no password")),
            found => found,
        };
        let secret = |algorithm| Secret::of(algorithm, name, REALM, password);
        let secrets = Secrets { sha256: secret(Algorithm::Sha256), md5: secret(Algorithm::Md5) };
        match self.secrets.insert(name.to_owned(), secrets) {
            Some(_) => Err(("each name once", "a name that stands above")),
            None => Ok(()),
        }
    }

    /// Returns the secret of a user, which replaces the password; `None` without such a user.
    pub(super) fn secret(&self, name: &str, algorithm: Algorithm) -> Option<Secret> {
        let secrets = self.secrets.get(name)?;
        Some(match algorithm {
            Algorithm::Sha256 => secrets.sha256.clone(),
            Algorithm::Md5 => secrets.md5.clone(),
        })
    }
}

/// Shows no names: they are confidential too.
impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Users").field("count", &self.secrets.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_passwords_are_read() {
        let users = Users::parse(b"# who may\nann:pass\r\n\nbob:a:b #c\n").unwrap();
        let of = |name, password| Secret::of(Algorithm::Sha256, name, REALM, password);
        assert_eq!(users.secret("ann", Algorithm::Sha256), Some(of("ann", "pass")));
        assert_eq!(users.secret("bob", Algorithm::Sha256), Some(of("bob", "a:b #c")));
        let md5 = Secret::of(Algorithm::Md5, "ann", REALM, "pass");
        assert_eq!(users.secret("ann", Algorithm::Md5), Some(md5));
        assert_eq!(users.secret("eve", Algorithm::Md5), None);
        assert_eq!(format!("{users:?}"), "Users { count: 2, .. }");
    }

    #[test]
    fn every_bad_line_is_named_but_not_shown() {
        let bad = Users::parse(b"ann:pass\nhush\n:hush\nbob:\nann:hush\n\xff:hush\na\tb:hush").unwrap_err();
        let told: Vec<String> = bad.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "line 2: expected name:password, found no colon",
                "line 3: expected name:password, found no name",
                "line 4: expected name:password, found no password",
                "line 5: expected each name once, found a name that stands above",
                "line 6: expected UTF-8, found other bytes",
                "line 7: expected name:password, found a control character",
            ]
        );
        assert_eq!(Users::parse(b"# nobody\n").unwrap_err()[0].found, "no user in the whole file");
    }
}
