//! Options of a load run.

use std::time::Duration;

use url::Url;

/// All settings of a load run. [`LoadOptions::new`] gives the defaults named at each field.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadOptions {
    /// The manifest that the players open, or any other URL to fetch over and over.
    pub url: Url,
    /// Kind of the URL. Default: [`Target::Detect`].
    pub target: Target,
    /// How many players (or plain clients) there are at once. Default: 10.
    pub clients: u32,
    /// Over how long a time the players arrive; zero starts them all together. Default: 0.
    pub ramp_up: Duration,
    /// How their arrivals are spread over `ramp_up`. Default: [`Arrivals::Even`].
    pub arrivals: Arrivals,
    /// How long the run lasts. Default: [`RunLength::Title`].
    pub length: RunLength,
    /// How fast segments are asked for. Default: realtime with 20 s of buffer.
    pub pace: Pace,
    /// Which rendition is asked for. Default: [`Abr::Switching`].
    pub abr: Abr,
    /// Players start at a random place in this first fraction (0 to 1) of the title: 0 starts all of them at
    /// the beginning, 0.5 anywhere in the first half. Default: 0.
    pub start_within: f64,
    /// The mean fraction (above 0, up to 1) of what is left of the title that a player watches before it leaves.
    /// 1 watches to the end; below, fractions are spread over the whole of 0 to 1 with this mean. Default: 1.
    pub mean_watch: f64,
    /// The HTTP version spoken. Default: [`HttpVersion::Http1`].
    pub http: HttpVersion,
    /// Accept any certificate the server shows. Default: false.
    pub insecure: bool,
    /// The longest time one request may take, from asking to the last byte. Default: 30 s.
    pub timeout: Duration,
    /// Count as errors what real players would trip over: bodies whose length is not the one promised, empty
    /// segments, ranges answered with something else, and a segment whose length changes between two viewers.
    /// Default: true.
    pub verify: bool,
    /// How often a failed request is made again before the viewer gives up. Default: 2.
    pub retries: u32,
    /// In plain mode, ask for random ranges of this many bytes instead of the whole; `None` asks for the whole.
    /// Default: `None`.
    pub random_ranges: Option<u64>,
    /// How many players share one connection pool. 1 gives every player connections of its own, as in life;
    /// more saves memory and connections, and over HTTP/2 puts that many players on one connection. Default: 1.
    pub players_per_pool: u32,
    /// Threads that make requests. Default: as many as the machine has cores.
    pub threads: usize,
    /// Where the random numbers start, so that a run can be repeated. Default: 1.
    pub seed: u64,
}

impl LoadOptions {
    /// The default settings for a URL.
    #[must_use]
    pub fn new(url: Url) -> Self {
        Self {
            url,
            target: Target::Detect,
            clients: 10,
            ramp_up: Duration::ZERO,
            arrivals: Arrivals::Even,
            length: RunLength::Title,
            pace: Pace::Realtime { buffer: Duration::from_secs(20) },
            abr: Abr::Switching,
            start_within: 0.0,
            mean_watch: 1.0,
            http: HttpVersion::Http1,
            insecure: false,
            timeout: Duration::from_secs(30),
            verify: true,
            retries: 2,
            random_ranges: None,
            players_per_pool: 1,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            seed: 1,
        }
    }

    /// The first setting that makes no sense, as the sentence to show for it.
    pub(crate) fn problem(&self) -> Option<String> {
        let problem = if !matches!(self.url.scheme(), "http" | "https") {
            format!("the URL must be http or https, not {}", self.url.scheme())
        } else if self.clients == 0 {
            "clients must be 1 or more".to_owned()
        } else if !(0.0..=1.0).contains(&self.start_within) {
            format!("the start fraction must be 0 to 1, not {}", self.start_within)
        } else if !(self.mean_watch > 0.0 && self.mean_watch <= 1.0) {
            format!("the mean watch fraction must be above 0 and up to 1, not {}", self.mean_watch)
        } else if self.threads == 0 || self.players_per_pool == 0 {
            "threads and players per pool must be 1 or more".to_owned()
        } else if self.timeout.is_zero() {
            "the request timeout must be above 0".to_owned()
        } else if self.random_ranges == Some(0) {
            "random ranges must have 1 byte or more".to_owned()
        } else {
            return None;
        };
        Some(problem)
    }
}

/// Kind of the URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// HLS or DASH where the first bytes are those of a manifest, plain otherwise.
    Detect,
    /// Fetched over and over as it is, also when it is a manifest.
    Plain,
    /// A live stream of Low-Latency HLS, by its multivariant playlist: blocking reloads, delta updates, parts. One viewer of
    /// each thread checks the playlists against the rules of draft-pantos-hls-rfc8216bis.
    Live,
}

/// How the arrivals of players are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// One after the other at equal distances.
    Even,
    /// As a Poisson process that happens to bring all players within the ramp-up time.
    Poisson,
}

/// How long a run lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunLength {
    /// Until every player has played the title once (plain mode: one request each).
    Title,
    /// This long, ramp-up included. When a player leaves, a new one takes its place.
    For(Duration),
}

/// How fast segments are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// As a player does: as fast as they come until `buffer` of media is ahead of the playhead, then one
    /// segment for each segment played.
    Realtime {
        /// Media held ahead of the playhead.
        buffer: Duration,
    },
    /// Each segment as soon as the one before it is complete.
    Fast,
}

/// Which rendition a player asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abr {
    /// Always the lowest bandwidth.
    Lowest,
    /// Always the highest bandwidth.
    Highest,
    /// Starts at the lowest and follows the measured throughput, with hysteresis.
    Switching,
}

/// The HTTP version spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpVersion {
    /// HTTP/1.1 with keep-alive.
    Http1,
    /// HTTP/2 only: by prior knowledge where the URL is plain http.
    Http2,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> LoadOptions {
        LoadOptions::new(Url::parse("http://h/a.m3u8").unwrap())
    }

    #[test]
    fn defaults_are_sound() {
        assert_eq!(options().problem(), None);
    }

    #[test]
    fn each_nonsense_is_named() {
        let ftp = Url::parse("ftp://h/a").unwrap();
        let table: [(&str, LoadOptions); 8] = [
            ("not ftp", LoadOptions { url: ftp, ..options() }),
            ("clients", LoadOptions { clients: 0, ..options() }),
            ("start fraction", LoadOptions { start_within: 1.5, ..options() }),
            ("start fraction", LoadOptions { start_within: f64::NAN, ..options() }),
            ("mean watch", LoadOptions { mean_watch: 0.0, ..options() }),
            ("threads", LoadOptions { threads: 0, ..options() }),
            ("timeout", LoadOptions { timeout: Duration::ZERO, ..options() }),
            ("random ranges", LoadOptions { random_ranges: Some(0), ..options() }),
        ];
        for (word, options) in table {
            let problem = options.problem().unwrap_or_default();
            assert!(problem.contains(word), "{word}: {problem:?}");
        }
    }
}
