//! The file with the counts: JSON, replaced as a whole.

use super::{
    ByProtocol, DayCounts, Days, UtcDay, ViewerProtocol, ViewingCounts,
    days::{MOST_DAYS, MOST_TITLES},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

/// Version of the form of the file.
const VERSION: u32 = 1;
/// Largest file that is read: thirty days with the most titles, with the longest paths, are smaller.
const LARGEST: u64 = 64 << 20;

/// Why the file can't be continued.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoadError {
    /// The system does not let it be read.
    #[error("{0}")]
    Read(#[from] io::Error),
    /// Its content is none of this file.
    #[error("{0}")]
    Content(String),
}

#[derive(Serialize, Deserialize)]
struct Content {
    version: u32,
    /// By dates such as `2026-11-30`.
    days: BTreeMap<String, DayContent>,
}

#[derive(Serialize, Deserialize)]
struct DayContent {
    all: CountsContent,
    others: CountsContent,
    titles: BTreeMap<String, CountsContent>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct CountsContent {
    peak: u64,
    rebuffers: u64,
    /// By the names of protocols. Protocols without viewers are left out.
    protocols: BTreeMap<String, ProtocolContent>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct ProtocolContent {
    starts: u64,
    viewer_milliseconds: u64,
}

impl From<&ViewingCounts> for CountsContent {
    fn from(counts: &ViewingCounts) -> Self {
        let content = ViewerProtocol::ALL.map(|protocol| {
            let (starts, watched) = (counts.starts[protocol as usize], counts.watched[protocol as usize]);
            let viewer_milliseconds = u64::try_from(watched.as_millis()).unwrap_or(u64::MAX);
            (protocol.name().to_owned(), ProtocolContent { starts, viewer_milliseconds })
        });
        let is_used = |content: &ProtocolContent| content.starts > 0 || content.viewer_milliseconds > 0;
        let protocols = content.into_iter().filter(|(_, content)| is_used(content)).collect();
        Self { peak: counts.peak, rebuffers: counts.rebuffers, protocols }
    }
}

impl From<&CountsContent> for ViewingCounts {
    fn from(content: &CountsContent) -> Self {
        let of = |protocol: ViewerProtocol| content.protocols.get(protocol.name());
        let watched: ByProtocol<Duration> = ViewerProtocol::ALL
            .map(|protocol| of(protocol).map_or(Duration::ZERO, |of| Duration::from_millis(of.viewer_milliseconds)));
        let starts = ViewerProtocol::ALL.map(|protocol| of(protocol).map_or(0, |of| of.starts));
        Self { watched, starts, peak: content.peak, rebuffers: content.rebuffers }
    }
}

impl From<&DayCounts> for DayContent {
    fn from(day: &DayCounts) -> Self {
        let titles = day.titles.iter().map(|(title, counts)| (title.clone(), counts.into())).collect();
        Self { all: (&day.all).into(), others: (&day.others).into(), titles }
    }
}

/// Returns the counts as the file has them.
pub(super) fn text(days: &Days) -> Vec<u8> {
    let days = days.iter().map(|(day, counts)| (day.to_string(), counts.into())).collect();
    // Texts, numbers and maps with texts as keys can be written as JSON.
    serde_json::to_vec(&Content { version: VERSION, days }).unwrap_or_default()
}

/// Reads the counts of a file's content, within the bounds of [`Days`].
fn parse(text: &[u8]) -> Result<Days, LoadError> {
    let content: Content = serde_json::from_slice(text).map_err(|error| LoadError::Content(error.to_string()))?;
    if content.version != VERSION {
        return Err(LoadError::Content(format!("version {} of the file, expected {VERSION}", content.version)));
    }
    let mut days = Days::default();
    // The dates of one form are in the order of time.
    let skipped = content.days.len().saturating_sub(MOST_DAYS);
    for (date, content) in content.days.iter().skip(skipped) {
        let day: UtcDay = date.parse().map_err(|_| LoadError::Content(format!("{date:?} is no date")))?;
        let day = days.day(day);
        (day.all, day.others) = ((&content.all).into(), (&content.others).into());
        for (title, counts) in content.titles.iter().take(MOST_TITLES) {
            day.title(title).add(&counts.into());
        }
    }
    Ok(days)
}

/// Reads the file. Without one there are no counts.
///
/// # Errors
/// It can't be read, or is damaged.
pub(super) fn load(path: &Path) -> Result<Days, LoadError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Days::default()),
        Err(error) => return Err(error.into()),
    };
    let mut text = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut text)?;
    if text.len() as u64 > LARGEST {
        return Err(LoadError::Content(format!("it has more than {LARGEST} bytes")));
    }
    parse(&text)
}

/// Replaces the file: a reader sees the old or the new text.
///
/// # Errors
/// The system's. The old file stays.
pub(super) fn store(path: &Path, text: &[u8]) -> io::Result<()> {
    let new = beside(path, "new");
    let write = || {
        if let Err(error) = fs::remove_file(&new)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error);
        }
        // A new file, and no link that somebody has put there.
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&new)?;
        file.write_all(text)?;
        file.sync_all()?;
        fs::rename(&new, path)
    };
    write().inspect_err(|_| _ = fs::remove_file(&new))
}

/// Gives a damaged file another name, so that it is not overwritten. Returns that name.
///
/// # Errors
/// The system's.
pub(super) fn set_aside(path: &Path) -> io::Result<PathBuf> {
    let damaged = beside(path, "damaged");
    fs::rename(path, &damaged)?;
    Ok(damaged)
}

/// Returns a path with another ending.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".");
    beside.push(ending);
    beside.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn days() -> Days {
        let mut days = Days::default();
        let day = days.day("2026-11-30".parse().unwrap());
        let time = Duration::from_millis(12_345);
        let counts = ViewingCounts {
            watched: [time, Duration::ZERO, time, Duration::ZERO, Duration::ZERO],
            starts: [3, 0, 0, 1, 0],
            peak: 2,
            rebuffers: 5,
        };
        day.title("films/\"é\".mp4").add(&counts);
        day.title("").add(&counts);
        (day.all, day.others) = (counts, counts);
        days.day("2026-11-29".parse().unwrap()).all.peak = 7;
        days
    }

    #[test]
    fn a_file_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("viewing.json");
        assert_eq!(load(&path).unwrap(), Days::default());
        for _ in 0..2 {
            store(&path, &text(&days())).unwrap();
            assert_eq!(load(&path).unwrap(), days());
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing stays beside it");
        store(&folder.path().join("none/viewing.json"), b"").unwrap_err();
    }

    #[test]
    fn damaged_files_are_told() {
        let whole = String::from_utf8(text(&days())).unwrap();
        for damaged in [
            "",
            "[]",
            &whole[..whole.len() / 2],
            &whole.replace("\"version\":1", "\"version\":2"),
            &whole.replace("2026-11-30", "2026-11-31"),
            &whole.replace("\"peak\":2", "\"peak\":-2"),
            &whole.replace("\"all\"", "\"none\""),
        ] {
            assert!(matches!(parse(damaged.as_bytes()), Err(LoadError::Content(_))), "{damaged}");
        }
    }

    #[test]
    fn what_is_read_is_bounded() {
        let counts = "{\"peak\":1}";
        let titles = (0..2000).map(|number| format!("\"{number:0>300}\":{counts}")).collect::<Vec<_>>().join(",");
        let day = format!("{{\"all\":{counts},\"others\":{counts},\"titles\":{{{titles}}}}}");
        let dates = (0..40).map(|number| format!("\"20{:02}-01-01\":{day}", number + 10)).collect::<Vec<_>>().join(",");
        let days = parse(format!("{{\"version\":1,\"days\":{{{dates}}}}}").as_bytes()).unwrap();
        assert_eq!(days.iter().count(), MOST_DAYS);
        assert_eq!(days.iter().next_back().unwrap().0.to_string(), "2049-01-01");
        assert!(days.iter().all(|(_, day)| day.titles.len() <= MOST_TITLES));
        assert!(days.iter().flat_map(|(_, day)| day.titles.keys()).all(|title| title.len() <= 256));
    }
}
