//! Options of an RTSP load run.

use crate::options::Arrivals;
use std::time::Duration;
use url::Url;

/// All settings of a run. [`Options::new`] gives the defaults named at each field.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// URLs to play; each client draws one.
    pub urls: Vec<Url>,
    /// How uneven the draw is: the URL of rank n is as likely as 1/n to this power. Default: 0, all alike.
    pub zipf: f64,
    /// Arrival of clients. Default: 10 at once.
    pub audience: Audience,
    /// How their arrivals are spread. Default: [`Arrivals::Even`].
    pub arrivals: Arrivals,
    /// How long the run lasts; `None` is until every client has played once. Default: `None`.
    pub length: Option<Duration>,
    /// How long a client stays. Default: to the end of the title.
    pub watch: Watch,
    /// The mean fraction (above 0, up to 1) of the title that a client plays before it leaves, where the server says how
    /// long the title is. Below 1, fractions are spread over the whole of 0 to 1. Default: 1.
    pub mean_watch: f64,
    /// Clients start at a random place in this first fraction (0 to 1) of the title. Default: 0.
    pub start_within: f64,
    /// Jumps to random places that a client makes in a minute, on average. Default: 0.
    pub seeks: f64,
    /// Pauses that a client makes in a minute, on average, of some seconds each. Default: 0.
    pub pauses: f64,
    /// Transport of media. Default: UDP.
    pub transport: Transport,
    /// Signalling only: every client leaves as soon as it could play. Default: false.
    pub mute: bool,
    /// Clients that left are not replaced while the run lasts. Default: false.
    pub once: bool,
    /// The longest time for a connection, a reply or the first packet. Default: 10 s.
    pub timeout: Duration,
    /// The longest time between two packets; a session that is silent for longer counts as ended. Default: 4 s.
    pub silence: Duration,
    /// Longest interval of receiver reports, which are then feedback of rate control (RFC 5348): one also follows a loss.
    /// Default: `None`, a report every 5 s.
    pub reports: Option<Duration>,
    /// Threads of signalling, each with one that receives. Default: 1.
    pub threads: usize,
    /// Where random numbers start, so that a run can be repeated. Default: 1.
    pub seed: u64,
}

/// Arrival of clients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Audience {
    /// A fixed number of clients, started over a time; each that leaves is replaced.
    Places {
        /// How many.
        clients: u32,
        /// Over how long they are filled the first time.
        ramp_up: Duration,
    },
    /// A rate of new clients a second as long as the run lasts, however many are there.
    Rate(f64),
}

/// How long a client stays, at most to the end of the title.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// To the end.
    Title,
    /// So long.
    Fixed(Duration),
    /// So long on average, distributed exponentially.
    Exponential(Duration),
}

/// Transport of media.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// To a pair of ports for each track of each client.
    Udp,
    /// On the client's RTSP connection (RFC 2326 10.12).
    Tcp,
}

impl Transport {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Tcp => "tcp",
        }
    }
}

impl Options {
    /// The default settings for some URLs.
    #[must_use]
    pub fn new(urls: Vec<Url>) -> Self {
        Self {
            urls,
            zipf: 0.0,
            audience: Audience::Places { clients: 10, ramp_up: Duration::ZERO },
            arrivals: Arrivals::Even,
            length: None,
            watch: Watch::Title,
            mean_watch: 1.0,
            start_within: 0.0,
            seeks: 0.0,
            pauses: 0.0,
            transport: Transport::Udp,
            mute: false,
            once: false,
            timeout: Duration::from_secs(10),
            silence: Duration::from_secs(4),
            reports: None,
            threads: 1,
            seed: 1,
        }
    }

    /// The first setting that makes no sense, as the sentence to show for it.
    pub(crate) fn problem(&self) -> Option<String> {
        let is_rate = |value: f64| value.is_finite() && value >= 0.0;
        let wrong = self.urls.iter().find(|url| url.scheme() != "rtsp" || url.host_str().is_none_or(str::is_empty));
        let problem = if let Some(url) = wrong {
            format!("{url}: expected rtsp://HOST/PATH, and no other kind of URL beside it")
        } else if self.urls.is_empty() {
            "expected one URL or more".to_owned()
        } else if !is_rate(self.zipf) {
            format!("the Zipf exponent must be 0 or more, not {}", self.zipf)
        } else if !(self.mean_watch > 0.0 && self.mean_watch <= 1.0) {
            format!("the mean watch fraction must be above 0 and up to 1, not {}", self.mean_watch)
        } else if !(0.0..=1.0).contains(&self.start_within) {
            format!("the start fraction must be 0 to 1, not {}", self.start_within)
        } else if !is_rate(self.seeks) || !is_rate(self.pauses) {
            "seeks and pauses a minute must be 0 or more".to_owned()
        } else if self.mute && self.transport == Transport::Tcp {
            "mute leaves out the media, which over TCP comes on the connection itself: use UDP".to_owned()
        } else if self.reports.is_some_and(|interval| interval < Duration::from_millis(20)) {
            "reports must be 20ms apart or more".to_owned()
        } else if self.threads == 0 || self.timeout.is_zero() || self.silence.is_zero() {
            "threads must be 1 or more, the timeout and the silence above 0".to_owned()
        } else {
            return self.audience_problem();
        };
        Some(problem)
    }

    fn audience_problem(&self) -> Option<String> {
        match self.audience {
            Audience::Places { clients: 0, .. } => Some("clients must be 1 or more".to_owned()),
            Audience::Rate(rate) if !(rate > 0.0 && rate.is_finite()) => {
                Some(format!("the rate must be above 0, not {rate}"))
            }
            Audience::Rate(_) if self.length.is_none() => {
                Some("a rate of starts needs a duration of the run".to_owned())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> Options {
        Options::new(vec![Url::parse("rtsp://h:8554/a.mp4").unwrap()])
    }

    #[test]
    fn defaults_are_sound() {
        assert_eq!(options().problem(), None);
    }

    #[test]
    fn each_nonsense_is_named() {
        let http = vec![Url::parse("http://h/a").unwrap()];
        let nobody = Audience::Places { clients: 0, ramp_up: Duration::ZERO };
        let table: [(&str, Options); 11] = [
            ("http://h/a", Options { urls: http, ..options() }),
            ("one URL", Options { urls: Vec::new(), ..options() }),
            ("Zipf", Options { zipf: -1.0, ..options() }),
            ("mean watch", Options { mean_watch: 0.0, ..options() }),
            ("start fraction", Options { start_within: f64::NAN, ..options() }),
            ("seeks", Options { seeks: f64::INFINITY, ..options() }),
            ("mute", Options { mute: true, transport: Transport::Tcp, ..options() }),
            ("reports", Options { reports: Some(Duration::ZERO), ..options() }),
            ("threads", Options { threads: 0, ..options() }),
            ("clients", Options { audience: nobody, ..options() }),
            ("duration", Options { audience: Audience::Rate(1.0), ..options() }),
        ];
        for (word, options) in table {
            let problem = options.problem().unwrap_or_default();
            assert!(problem.contains(word), "{word}: {problem:?}");
        }
    }
}
