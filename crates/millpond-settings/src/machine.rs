//! The machine's memory and cores, from which defaults are derived.

use std::os::unix::fs::MetadataExt as _;
use std::{fs, path::Path};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors that are kept for listeners, logs, the cache and the admin address.
const KEPT: u64 = 256;

/// Number of connections that fit in a limit of open files: a connection takes one, and what it is served from another
/// third.
pub fn connections_within(open_files: u64) -> usize {
    usize::try_from((open_files.saturating_sub(KEPT) / 4 * 3).max(64)).unwrap_or(usize::MAX)
}

/// Cores, memory and open files that this process may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// Cores, as scheduling affinity and control group quotas leave them.
    pub cores: usize,
    /// Bytes of memory: of the machine, or of the control group where that is less.
    pub memory: u64,
    /// Files open at a time, at most.
    pub open_files: u64,
}

impl Machine {
    /// Looks at the machine. What it can't find out it takes to be small.
    pub fn detect() -> Self {
        let limit = getrlimit(Resource::Nofile);
        Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory: memory(|path| fs::read_to_string(path).ok()),
            // The soft limit is raised to the hard one at start, see `raise_open_files`.
            open_files: limit.maximum.or(limit.current).unwrap_or(1 << 20),
        }
    }

    /// A quarter of memory, between 32 MiB and 1 GiB.
    pub fn default_memory(&self) -> u64 {
        (self.memory / 4).clamp(32 << 20, 1 << 30)
    }

    /// Twenty thousand, or three quarters of the open files allowed, less 256 for listeners, origins and the rest: a
    /// connection takes one, and what many are served from takes the others.
    pub fn default_connections(&self) -> usize {
        connections_within(self.open_files).min(20_000)
    }
}

/// Bytes of the disk for slices: 10 GiB, and at most half of what is free where the cache folder is or will be, the slices
/// that are there already not counted as taken. In whole GiB, or MiB where that is less than one.
pub fn default_cache_size(folder: &Path) -> u64 {
    let free = existing(folder).map_or(0, free_bytes);
    let slices = std::fs::read_dir(folder.join("slices")).into_iter().flatten().flatten();
    let own: u64 = slices.filter_map(|file| Some(file.metadata().ok()?.blocks() * 512)).sum();
    let half = (free.saturating_add(own) / 2).min(10 << 30);
    let unit = if half >= 1 << 30 { 1 << 30 } else { 1 << 20 };
    half / unit * unit
}

/// The folder itself, or the nearest one above it that exists. A relative path begins in the present folder.
pub fn existing(folder: &Path) -> Option<&Path> {
    let mut all = folder.ancestors().map(|path| if path == Path::new("") { Path::new(".") } else { path });
    all.find(|path| path.is_dir())
}

/// Free bytes of the disk of a folder.
pub fn free_bytes(folder: &Path) -> u64 {
    rustix::fs::statvfs(folder).map_or(0, |disk| disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Raises the limit of open files to what the system allows this process, and says what it is now.
///
/// Shells start programs with 1,024 for the sake of `select`, which nothing here uses.
pub fn raise_open_files() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    }
}

fn memory(read: impl Fn(&str) -> Option<String>) -> u64 {
    const UNKNOWN: u64 = 512 << 20;
    let installed = read("/proc/meminfo").and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        kib.checked_mul(1024)
    });
    // Control groups version 2, then version 1; "max" or an absurdly high number stands for no limit.
    let granted = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        .into_iter()
        .find_map(|path| read(path)?.trim().parse::<u64>().ok());
    match (installed, granted) {
        (Some(installed), Some(granted)) => installed.min(granted),
        (Some(bytes), None) | (None, Some(bytes)) => bytes,
        (None, None) => UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_the_lesser_of_machine_and_group() {
        let files = |group: Option<&'static str>| {
            move |path: &str| match path {
                "/proc/meminfo" => Some("MemTotal:        4194304 kB\nMemFree: 1 kB\n".to_owned()),
                "/sys/fs/cgroup/memory.max" => group.map(str::to_owned),
                _ => None,
            }
        };
        assert_eq!(memory(files(None)), 4 << 30);
        assert_eq!(memory(files(Some("max\n"))), 4 << 30);
        assert_eq!(memory(files(Some("536870912\n"))), 512 << 20);
        assert_eq!(memory(|_| None), 512 << 20);
    }

    #[test]
    fn defaults_follow_the_machine() {
        let machine = |memory, open_files| Machine { cores: 2, memory, open_files };
        assert_eq!(machine(64 << 30, 1 << 20).default_memory(), 1 << 30);
        assert_eq!(machine(2 << 30, 1 << 20).default_memory(), 512 << 20);
        assert_eq!(machine(0, 1 << 20).default_memory(), 32 << 20);
        assert_eq!(machine(0, 1 << 20).default_connections(), 20_000);
        assert_eq!(machine(0, 1_024).default_connections(), 576);
        assert_eq!(machine(0, 0).default_connections(), 64);
    }

    #[test]
    fn the_disk_is_shared_in_round_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let size = default_cache_size(folder.path());
        let unit: u64 = if size >= 1 << 30 { 1 << 30 } else { 1 << 20 };
        assert!(size <= 10 << 30 && size.is_multiple_of(unit), "{size}");
    }

    #[test]
    fn this_machine_has_something() {
        let machine = Machine::detect();
        assert!(machine.cores > 0 && machine.memory > 0 && machine.open_files > 0);
    }

    #[test]
    fn descriptors_are_kept_for_others() {
        for limit in [512, 1024, 4096, 20_000] {
            let connections = connections_within(limit) as u64;
            assert!(connections + 256 <= limit && connections >= 64, "{limit}: {connections}");
        }
    }
}
