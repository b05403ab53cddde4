//! The programmes of a schedule, as viewers see them.
#![cfg_attr(not(test), forbid(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

use std::time::Duration;

/// A programme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Programme {
    /// Beginning, since the Unix epoch.
    pub(crate) at: Duration,
    /// End; `None` where it is unknown.
    pub(crate) until: Option<Duration>,
    pub(crate) title: String,
    pub(crate) description: Option<String>,
    /// Whether it is a live stream.
    pub(crate) is_live: bool,
}

/// The programmes of now and of the days ahead.
#[derive(Clone, Debug)]
pub(crate) struct Guide {
    /// Path of the stream.
    pub(crate) stream: String,
    /// Name of the channel.
    pub(crate) title: String,
    /// The programmes that are not over, in their order.
    pub(crate) programmes: Vec<Programme>,
    now: Duration,
}

impl Guide {
    /// Makes that of a moment. `list` may have programmes that are over.
    pub(super) fn new(stream: String, title: String, list: &[Programme], now: Duration) -> Self {
        let is_left = |programme: &&Programme| programme.until.is_none_or(|until| until > now);
        Self { stream, title, programmes: list.iter().filter(is_left).cloned().collect(), now }
    }

    /// The programme that plays now; `None` while the filler does.
    pub(crate) fn now(&self) -> Option<&Programme> {
        self.programmes.first().filter(|first| first.at <= self.now)
    }

    /// The programme that begins next.
    pub(crate) fn next(&self) -> Option<&Programme> {
        self.programmes.iter().find(|programme| programme.at > self.now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guide_has_what_plays_and_what_follows() {
        let s = Duration::from_secs;
        let programme = |at, until: Option<u64>| Programme {
            at: s(at),
            until: until.map(s),
            title: at.to_string(),
            description: None,
            is_live: false,
        };
        let list = [programme(10, Some(20)), programme(30, Some(40)), programme(40, None)];
        for (at, left, now, next) in [
            (10, 3, Some("10"), Some("30")),
            (20, 2, None, Some("30")),
            (39, 2, Some("30"), Some("40")),
            (99, 1, Some("40"), None),
        ] {
            let guide = Guide::new("live/tv".to_owned(), "TV".to_owned(), &list, s(at));
            let title = |programme: Option<&Programme>| programme.map(|programme| programme.title.clone());
            assert_eq!(guide.programmes.len(), left, "{at}");
            assert_eq!((title(guide.now()).as_deref(), title(guide.next()).as_deref()), (now, next), "{at}");
        }
    }
}
