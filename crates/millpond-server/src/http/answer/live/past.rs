//! The past of a stream in requests: `?dvr`, `?start=TIME` and `?start=TIME&end=TIME`.

use crate::http::AnswerError;
use millpond_package::live::Extent;
use millpond_stream::live::LiveWindow;
use percent_encoding::percent_decode_str;
use std::time::Duration;

/// The past that a request is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Past {
    /// Whether everything is listed that can be fetched (`dvr`).
    is_all: bool,
    /// Wall time of the beginning, since the Unix epoch.
    start: Option<Duration>,
    /// Wall time of the end.
    end: Option<Duration>,
}

impl Past {
    /// Parses the query of a request. Other parameters are ignored.
    ///
    /// # Errors
    /// A value is no time of RFC 3339, or the end does not follow the start.
    pub(super) fn parse(stream: &str, query: &str) -> Result<Self, AnswerError> {
        let bad = |why: String| AnswerError::Past { path: stream.to_owned(), why };
        let time = |name: &str, value: &str| {
            let text = percent_decode_str(value).decode_utf8_lossy();
            let found = millpond_utc::parse(&text).map(Some);
            found.ok_or_else(|| bad(format!("{name}: expected a time such as 2026-11-22T10:00:00Z")))
        };
        let mut past = Self::default();
        for (name, value) in query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, ""))) {
            match name {
                "dvr" => past.is_all = true,
                "start" => past.start = time(name, value)?,
                "end" => past.end = time(name, value)?,
                _ => {}
            }
        }
        match (past.start, past.end) {
            (None, Some(_)) => Err(bad("found an end without a start".to_owned())),
            (Some(start), Some(end)) if end <= start => Err(bad("the end does not follow the start".to_owned())),
            _ => Ok(past),
        }
    }

    /// Whether a time is asked for.
    pub(super) fn is_timed(self) -> bool {
        self.start.is_some()
    }

    /// Whether anything but the live edge is asked for.
    pub(super) fn is_asked(self) -> bool {
        self.is_all || self.is_timed()
    }

    /// Returns the wall times of beginning and end, where both are given.
    pub(super) fn clip(self) -> Option<(Duration, Duration)> {
        self.start.zip(self.end)
    }

    /// Returns the query of playlists with the same past, with its `?`.
    pub(super) fn query(self) -> String {
        let mut query = String::new();
        for (name, time) in [("start=", self.start), ("end=", self.end)] {
            if let Some(time) = time {
                query.push(if query.is_empty() { '?' } else { '&' });
                query.push_str(name);
                millpond_utc::push(&mut query, time);
            }
        }
        if query.is_empty() && self.is_all { "?dvr".to_owned() } else { query }
    }

    /// Returns the segments of a window that are listed. A clip whose end lies ahead is listed up to now, and goes on.
    ///
    /// # Errors
    /// The clip ended before the oldest segment.
    pub(super) fn extent(self, stream: &str, window: &LiveWindow) -> Result<Extent, AnswerError> {
        let extent = self.extent_of(stream, window)?;
        let ends = window.look(|window| {
            let ends = (window.segments().next()?.number, window.segments().next_back()?.number);
            window.is_ended().then_some(ends)
        });
        Ok(match (ends, extent) {
            (Some((first, last)), Extent::Edge | Extent::Past) => Extent::Clip(first, last),
            (Some((_, last)), Extent::From(first)) => Extent::Clip(first, last),
            _ => extent,
        })
    }

    fn extent_of(self, stream: &str, window: &LiveWindow) -> Result<Extent, AnswerError> {
        let Some(start) = self.start else {
            return Ok(if self.is_all { Extent::Past } else { Extent::Edge });
        };
        let Some(first) = window.at(start) else { return Ok(Extent::Edge) };
        let Some(end) = self.end else { return Ok(Extent::From(first)) };
        let oldest = window.look(|window| window.segments().next().map(|segment| segment.wall));
        if oldest.is_some_and(|oldest| end <= oldest) {
            let why = "the stream of that time is not kept any more".to_owned();
            return Err(AnswerError::Past { path: stream.to_owned(), why });
        }
        // The end itself is no part of the clip.
        let last = window.at(end.saturating_sub(Duration::from_nanos(1))).unwrap_or(first);
        let is_over = window.look(|window| {
            (0..window.tracks().len()).all(|track| window.last_closed(track).is_some_and(|closed| closed >= last))
                && window.segments().next_back().is_some_and(|newest| newest.number > last)
        });
        Ok(if is_over { Extent::Clip(first, last) } else { Extent::From(first) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_name_times() {
        let past = |query| Past::parse("door", query);
        let hour = Duration::from_secs(1_795_341_600);
        assert_eq!(past("_HLS_msn=4").unwrap(), Past::default());
        assert_eq!(past("dvr").unwrap().query(), "?dvr");
        let found = past("start=2026-11-22T11%3A00%3A00%2B01:00&end=2026-11-22T10:00:01Z").unwrap();
        assert_eq!((found.start, found.end), (Some(hour), Some(hour + Duration::from_secs(1))));
        assert_eq!(found.query(), "?start=2026-11-22T10:00:00.000Z&end=2026-11-22T10:00:01.000Z");
        for query in
            ["start=now", "start=", "end=2026-11-22T10:00:01Z", "start=2026-11-22T10:00:01Z&end=2026-11-22T10:00:01Z"]
        {
            assert!(past(query).is_err(), "{query}");
        }
    }
}
