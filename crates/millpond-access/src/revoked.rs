//! Tokens that were revoked before their end: a file with their names (`jti`), one in a line.

use millpond_settings::files::{FileStamp, Looks};
use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
};
use tokio::sync::watch;

/// Longest file, in bytes.
const MOST_BYTES: u64 = 16 << 20;

/// The names of revoked tokens.
#[derive(Debug)]
pub(super) struct Revoked {
    file: PathBuf,
    /// Read by each request with a token; replaced when the file has changed.
    names: RwLock<Arc<HashSet<Box<str>>>>,
}

impl Revoked {
    /// Reads a file.
    ///
    /// # Errors
    /// It can't be read.
    pub(super) fn open(file: &Path) -> Result<Self, String> {
        let names = RwLock::new(Arc::new(read(file)?));
        Ok(Self { file: file.to_owned(), names })
    }

    /// Whether it is the list of a file.
    pub(super) fn is_of(&self, file: &Path) -> bool {
        self.file == file
    }

    /// Reads the file again, because a reload does.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub(super) fn read_again(&self) -> Result<(), String> {
        read(&self.file).map(|names| self.replace(names))
    }

    fn replace(&self, names: HashSet<Box<str>>) {
        *self.names.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(names);
    }

    /// Whether the token of a name is revoked.
    pub(super) fn has(&self, name: &str) -> bool {
        self.names.read().unwrap_or_else(PoisonError::into_inner).contains(name)
    }

    /// Reads the file again when it changes, until the server stops. Where it can't be read, the last good list stays.
    pub(super) async fn watch(self: Arc<Self>, stop: watch::Receiver<bool>) {
        let mut looks = Looks::until(stop);
        let mut seen = FileStamp::of(&self.file);
        while looks.next().await {
            let file = self.file.clone();
            let looked = move || {
                let stamp = FileStamp::of(&file);
                (stamp != seen).then(|| (stamp, read(&file)))
            };
            match tokio::task::spawn_blocking(looked).await {
                Ok(None) => {}
                Ok(Some((stamp, names))) => {
                    seen = stamp;
                    self.took(names);
                }
                Err(error) => tracing::error!(%error, "checking the list of revoked tokens failed"),
            }
        }
    }

    fn took(&self, read: Result<HashSet<Box<str>>, String>) {
        let file = self.file.display();
        match read {
            Ok(names) => {
                tracing::info!(%file, tokens = names.len(), "list of revoked tokens read");
                self.replace(names);
            }
            Err(error) => tracing::error!(%file, error, "revoked tokens can't be read, the last good list stays"),
        }
    }

    #[cfg(test)]
    pub(super) fn of(text: &str) -> Self {
        Self { file: PathBuf::new(), names: RwLock::new(Arc::new(parse(text))) }
    }
}

/// Reads the names in a file.
pub(super) fn read(file: &Path) -> Result<HashSet<Box<str>>, String> {
    use std::io::Read as _;
    let mut text = String::new();
    let wrong = |error: std::io::Error| format!("cannot read the file: {error}");
    let opened = millpond_settings::files::open(file).map_err(wrong)?;
    opened.take(MOST_BYTES + 1).read_to_string(&mut text).map_err(wrong)?;
    if text.len() as u64 > MOST_BYTES {
        return Err(format!("the file is larger than {} MiB", MOST_BYTES >> 20));
    }
    Ok(parse(&text))
}

/// One name in a line; empty lines and comments (`#` in front) are skipped.
fn parse(text: &str) -> HashSet<Box<str>> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(Box::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_in_lines() {
        let revoked = Revoked::of("# lost\n a1 \r\n\nb2\n");
        assert!(revoked.has("a1") && revoked.has("b2") && !revoked.has("# lost") && !revoked.has(""));
    }
}
