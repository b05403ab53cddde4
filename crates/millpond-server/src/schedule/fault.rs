//! Faults in the file of a schedule.

use super::timetable::{Content, Timetable};
use crate::live::Sources;
use std::fmt;

/// A fault of a file, with its cure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Line; 0 where it is that of the whole file.
    pub(crate) line: usize,
    pub(crate) words: String,
}

/// Most faults that are told at once.
const MOST: usize = 20;

impl Fault {
    /// Leaves the first faults of a file, and tells the number of the others.
    pub(super) fn first(mut faults: Vec<Self>) -> Vec<Self> {
        faults.sort_by_key(|fault| fault.line);
        if faults.len() > MOST {
            let words = format!("{} more faults: correct these first", faults.len() - MOST);
            faults.truncate(MOST);
            faults.push(Self { line: 0, words });
        }
        faults
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.words),
            line => write!(f, "line {line}: {}", self.words),
        }
    }
}

/// The kind of thing that a path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathUse {
    /// An asset, if there is one.
    Asset,
    /// A live stream or channel.
    Stream,
    /// An asset that also plays as a channel.
    Both,
}

/// The places and channels of a configuration.
pub(crate) trait PathUses {
    /// Returns what a path names; `None` where no place has it.
    fn of(&self, path: &str) -> Option<PathUse>;
}

impl PathUses for Sources {
    fn of(&self, path: &str) -> Option<PathUse> {
        if self.find(path).list().is_some() {
            return Some(PathUse::Stream);
        }
        let place = self.place(path)?;
        Some(match (self.is_live(&place), self.is_channel(path)) {
            (true, _) => PathUse::Stream,
            (false, true) => PathUse::Both,
            (false, false) => PathUse::Asset,
        })
    }
}

impl Timetable {
    /// Returns the faults of its paths. `stream` is the path of its stream.
    pub(super) fn faults(&self, stream: &str, uses: &impl PathUses) -> Vec<Fault> {
        let filler = (uses.of(&self.filler).is_none()).then(|| no_place(0, "filler", &self.filler));
        let own = |line, key, path| {
            (path == stream).then(|| Fault {
                line,
                words: format!("{key}: {path} is the stream of this schedule: name another one"),
            })
        };
        let entries = self.entries().iter().filter_map(|entry| {
            let (key, path) = match &entry.content {
                Content::Asset(path) => ("asset", path),
                Content::Stream(path) => ("stream", path),
            };
            let words = match (uses.of(path), key) {
                (None, _) => return Some(no_place(entry.line, key, path)),
                (Some(PathUse::Stream), "asset") => format!("asset: {path} is a live stream: write stream = {path:?}"),
                (Some(PathUse::Asset), "stream") => format!("stream: {path} is no live stream: write asset = {path:?}"),
                _ => return own(entry.line, key, path),
            };
            Some(Fault { line: entry.line, words })
        });
        Fault::first(filler.into_iter().chain(own(0, "filler", &self.filler)).chain(entries).collect())
    }
}

fn no_place(line: usize, key: &str, path: &str) -> Fault {
    Fault {
        line,
        words: format!("{key}: no place has the path {path}: correct it, or add the place to the configuration"),
    }
}
