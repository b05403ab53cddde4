//! The configuration file is replaced as a whole.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, fchown},
    path::Path,
};

/// Replaces the content of a file: a reader sees the old or the new text, and a loss of power leaves one of them. A symbolic link
/// stays one, and the file keeps its permissions, and its owner where this process may give files away.
///
/// # Errors
/// The system's. The old file stays.
pub(super) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let target = fs::canonicalize(path)?;
    let folder = target.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
    let new = folder.join(format!(".{name}.new"));
    let write = || {
        let before = fs::metadata(&target)?;
        if let Err(error) = fs::remove_file(&new)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error);
        }
        // A new file, and no link that somebody has put there. It is closed to others until it has its permissions.
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&new)?;
        // Only root may give files away. The owner of the folder has the file in any case.
        let _ = fchown(&file, Some(before.uid()), Some(before.gid()));
        file.set_permissions(before.permissions())?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, &target)?;
        File::open(folder)?.sync_all()
    };
    write().inspect_err(|_| {
        let _ = fs::remove_file(&new);
    })
}

/// Whether the file can be replaced: its folder can be written to.
pub(super) fn is_replaceable(path: &Path) -> bool {
    let folder = fs::canonicalize(path).ok().and_then(|target| target.parent().map(Path::to_owned));
    folder.is_some_and(|folder| rustix::fs::access(&folder, rustix::fs::Access::WRITE_OK).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    #[test]
    fn a_link_in_the_way_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (file, other) = (folder.path().join("millpond.toml"), folder.path().join("other"));
        fs::write(&file, "old").unwrap();
        fs::write(&other, "other").unwrap();
        symlink(&other, folder.path().join(".millpond.toml.new")).unwrap();
        assert!(is_replaceable(&file) && !is_replaceable(&folder.path().join("none.toml")));
        replace(&file, "new").unwrap();
        assert_eq!(
            (fs::read_to_string(&file).unwrap(), fs::read_to_string(&other).unwrap()),
            ("new".into(), "other".into())
        );
    }

    #[test]
    fn links_and_permissions_stay() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("real.toml"), folder.path().join("millpond.toml"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&file, &link).unwrap();
        replace(&link, "new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left over");
        assert!(replace(&folder.path().join("none.toml"), "x").is_err());
    }
}
