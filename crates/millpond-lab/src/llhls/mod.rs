//! A checker of Low-Latency HLS: which rules of draft-pantos-hls-rfc8216bis a sequence of media playlists breaks.
//!
//! A [`Checker`] takes each [`Reload`] of the media playlists of one presentation, with the times at which it was asked for and
//! arrived, and returns each [`Violation`]. A [`MediaChecker`] takes the parts of one of them. They fetch nothing.

mod listed;
mod media;
mod playlist;
mod rules;
#[cfg(test)]
mod tests;
mod view;

pub use media::{MediaChecker, ReceivedPart};
pub use rules::{Rule, Violation};

pub(crate) use listed::{KnownPlaylists, ListedPart, Place};
pub(crate) use playlist::{LivePlaylist, Part};

use playlist::Control;
use std::{collections::HashMap, time::Duration};
use view::View;

/// One answered request of a media playlist.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reload<'a> {
    /// Path of the playlist without its query, as rendition reports name it once resolved.
    pub path: &'a str,
    /// `_HLS_msn`.
    pub segment: Option<u64>,
    /// `_HLS_part`.
    pub part: Option<u64>,
    /// Whether `_HLS_skip` was asked for.
    pub skip: bool,
    /// Time of the request.
    pub asked: Duration,
    /// Time at which the reply was complete.
    pub arrived: Duration,
    /// Time for which caches may keep it.
    pub max_age: Option<Duration>,
    /// The playlist.
    pub body: &'a str,
}

/// Checks the playlists of one presentation. Replies of one playlist must be given in the order of their requests.
#[derive(Debug, Default)]
pub struct Checker {
    lists: HashMap<String, View>,
    control: Option<Control>,
}

impl Checker {
    /// Takes a reply; returns the rules that it breaks.
    pub fn check(&mut self, reload: &Reload<'_>) -> Vec<Violation> {
        let mut found = Vec::new();
        let list = match LivePlaylist::read(reload.body) {
            Ok(list) => list,
            Err(what) => return vec![Violation { rule: Rule::Syntax, what }],
        };
        rules::alone(&list, &mut found);
        rules::answer(&list, reload, &mut found);
        if *self.control.get_or_insert(list.control) != list.control {
            rules::breaks(&mut found, Rule::ControlDiffers, format!("{:?}, then {:?}", self.control, list.control));
        }
        for report in &list.reports {
            let path = resolve(reload.path, &report.uri);
            if let Some(view) = self.lists.get(&path) {
                view.check_report(report, &list, reload.asked, &mut found);
            }
        }
        match self.lists.get_mut(reload.path) {
            Some(view) => view.reload(list, reload, &mut found),
            None => {
                if list.skipped > 0 {
                    rules::breaks(&mut found, Rule::SkipWithoutBase, "the first playlist skips segments".to_owned());
                }
                self.lists.insert(reload.path.to_owned(), View::new(list, reload));
            }
        }
        found
    }
}

/// Path of a relative reference (RFC 3986 5.2), without its query.
fn resolve(base: &str, reference: &str) -> String {
    let reference = reference.split('?').next().unwrap_or_default();
    if reference.starts_with('/') {
        return reference.to_owned();
    }
    let mut path: Vec<&str> = base.split('/').collect();
    path.pop();
    for step in reference.split('/') {
        match step {
            "." => {}
            ".." => drop(path.pop()),
            step => path.push(step),
        }
    }
    path.join("/")
}
