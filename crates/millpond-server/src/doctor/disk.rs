//! Folders that are written: whether they can be, their free space, and how fast their disk is.

use super::{Finding, lock};
use crate::config::Config;
use millpond_settings::{
    machine::{existing, free_bytes},
    value::show_size,
};
use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// Bytes that are written to measure a disk.
const SAMPLE: usize = 16 << 20;

/// Bytes of one write.
const PIECE: usize = 1 << 20;

/// Time after which a slow disk has been measured long enough.
const LONGEST: Duration = Duration::from_secs(5);

/// Rate below which a disk holds up a fast origin, in bytes a second.
const SLOW: f64 = 50e6;

/// A folder that a server of the configuration writes.
struct Written {
    setting: &'static str,
    path: PathBuf,
    /// Bytes that the configuration lets it take.
    limit: u64,
    /// Bytes of them that it takes already.
    has: u64,
    /// Bytes below which the folder is of little use.
    least: u64,
}

/// Slices for which a disk cache has room at least, or it is of little use.
const FEW_SLICES: u64 = 128;

/// Examines the folders on a thread that may wait for disks.
pub(super) async fn findings(config: &Config) -> Vec<Finding> {
    let mut folders = Vec::new();
    let storage = &config.storage;
    let least = u64::from(storage.slice) * FEW_SLICES;
    if storage.cache_size > 0 {
        let path = storage.folder.clone();
        let has = used(&path.join("slices"));
        folders.push(Written { setting: "cache", path, limit: storage.cache_size, has, least });
    }
    let small = (storage.cache_size == 0).then(|| no_room(&storage.folder, least)).flatten();
    if let Some(path) = config.record.folder.clone() {
        folders.push(Written { setting: "record-folder", path, limit: config.record.size, has: 0, least: 0 });
    }
    if config.places.iter().any(|place| !place.live.shift.is_zero()) {
        let (path, limit) = (storage.shift_folder.clone(), storage.shift_total.unwrap_or(0));
        let has = used(&path);
        folders.push(Written { setting: "time-shift-folder", path, limit, has, least: 0 });
    }
    let held = lock::finding(config);
    let examined = tokio::task::spawn_blocking(move || folders.iter().flat_map(examine).collect::<Vec<_>>());
    let examined = examined.await.unwrap_or_default();
    small.into_iter().chain(held).chain(examined).collect()
}

/// Tells that a disk is so full or small that it gets no cache.
fn no_room(folder: &Path, least: u64) -> Option<Finding> {
    let free = existing(folder).map(free_bytes)?;
    let text = format!("cache {}: {} free: nothing is kept on the disk", folder.display(), show_size(free));
    let advice = "free some space, or choose a folder on a larger disk: --cache PATH";
    (free < least).then(|| Finding::warning("disk", text, advice))
}

/// Bytes of the files of a folder, without those of folders in it.
fn used(folder: &Path) -> u64 {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
}

fn examine(folder: &Written) -> Vec<Finding> {
    let Written { setting, path, .. } = folder;
    // A folder that is missing is made when the server starts.
    let Some(existing) = existing(path) else {
        let advice = format!("choose another folder: --{setting} PATH");
        return vec![Finding::error("disk", format!("{setting} {}: there is no such folder", path.display()), &advice)];
    };
    let mut findings = Vec::new();
    let free = free_bytes(existing);
    match rate(existing, free) {
        Ok(None) => {}
        Ok(Some(rate)) => findings.push(speed(folder, rate)),
        Err(error) => findings.push(Finding::error(
            "disk",
            format!("{setting} {}: {error}", existing.display()),
            "give the user of the server the right to write there, or choose another folder",
        )),
    }
    findings.push(space(folder, free));
    findings
}

fn speed(Written { setting, path, .. }: &Written, rate: f64) -> Finding {
    let text = format!("{setting} {}: takes {:.0} MB/s", path.display(), rate / 1e6);
    if rate >= SLOW {
        return Finding::fine("disk", text);
    }
    Finding::warning(
        "disk",
        text,
        "use a faster disk; slices that the disk can't write in time are served, but not \
                                    cached",
    )
}

fn space(Written { setting, path, limit, has, least }: &Written, free: u64) -> Finding {
    let text = format!("{setting} {}: {} free", path.display(), show_size(free));
    let room = free.saturating_add(*has).min(*limit);
    if room < *least {
        let text = format!("{text}, and {} may be used: too little to keep media in", show_size(room));
        return Finding::warning("disk", text, "use a larger disk, or raise cache-size to 1GiB or more");
    }
    if free.saturating_add(*has) >= *limit {
        return Finding::fine("disk", text);
    }
    let text = format!("{text}, and it may take {} more", show_size(limit.saturating_sub(*has)));
    Finding::warning("disk", text, "free some space, or lower the limit; a full disk ends caching and recordings")
}

/// Writes and syncs a file, which is removed again. Returns bytes a second; `None` on a disk that has no room to measure it.
fn rate(folder: &Path, free: u64) -> io::Result<Option<f64>> {
    let sample = usize::try_from(free / 2).unwrap_or(SAMPLE).min(SAMPLE);
    let path = folder.join(format!(".millpond-doctor-{}", std::process::id()));
    let mut file = OpenOptions::new().write(true).create_new(true).open(&path)?;
    let measured = (|| {
        // Bytes that no disk or file system can store in less space.
        let piece: Vec<u8> = (0..PIECE).map(|_| fastrand::u8(..)).collect();
        let (began, mut written) = (Instant::now(), 0);
        while written + PIECE <= sample && began.elapsed() < LONGEST {
            file.write_all(&piece)?;
            file.sync_data()?;
            written += PIECE;
        }
        let rate = written as f64 / began.elapsed().as_secs_f64().max(1e-6);
        io::Result::Ok((written > 0).then_some(rate))
    })();
    fs::remove_file(&path)?;
    measured
}

#[cfg(test)]
mod tests {
    use super::super::Severity;
    use super::*;

    fn written(path: &Path, limit: u64) -> Written {
        Written { setting: "cache", path: path.to_owned(), limit, has: 1 << 20, least: 4 << 20 }
    }

    #[test]
    fn a_folder_is_measured_and_left_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("not/yet");
        let found = examine(&written(&missing, 8 << 20));
        assert!(found.len() == 2 && found.iter().all(|found| found.severity < Severity::Error), "{found:?}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_a_folder_has_already_counts() {
        let path = Path::new("/cache");
        assert_eq!(space(&written(path, 10 << 20), 9 << 20).severity, Severity::Fine);
        assert_eq!(space(&written(path, 10 << 20), 8 << 20).severity, Severity::Warning);
        assert_eq!(speed(&written(path, 0), 10e6).severity, Severity::Warning);
    }

    #[test]
    fn a_relative_folder_that_is_not_there_yet_lies_in_the_present_one() {
        let found = examine(&written(Path::new("not-yet/at-all"), 8 << 20));
        assert!(found.iter().all(|found| found.severity < Severity::Error), "{found:?}");
    }

    #[test]
    fn a_disk_too_small_for_media_is_told() {
        let found = space(&written(Path::new("/cache"), 10 << 30), 1 << 20);
        assert!(found.severity == Severity::Warning && found.text.contains("too little"), "{found:?}");
        assert!(no_room(Path::new("/"), u64::MAX).is_some() && no_room(Path::new("/"), 0).is_none());
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_an_error() {
        let found = examine(&written(Path::new("/proc/sys"), 1));
        assert_eq!(found[0].severity, Severity::Error, "{found:?}");
    }
}
