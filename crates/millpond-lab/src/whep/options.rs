//! Options of a WHEP load run.

use std::time::Duration;
use url::Url;

/// All settings of a run. [`Options::new`] gives the defaults named at each field.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// WHEP endpoint of the stream.
    pub url: Url,
    /// How many viewers there are. Default: 10.
    pub viewers: u32,
    /// How many of them arrive in a second. Default: 50.
    pub rate: f64,
    /// How long the run lasts, arrivals included. Default: 30 s.
    pub length: Duration,
    /// The longest time for an answer, a connection or the first packet. Default: 10 s.
    pub timeout: Duration,
    /// The longest time between two packets; a viewer whose media is silent for longer has failed. Default: 4 s.
    pub silence: Duration,
    /// Between two receiver reports of a viewer. Default: 1 s.
    pub reports: Duration,
    /// Threads that receive. Default: 1.
    pub threads: usize,
}

impl Options {
    /// The default settings for an endpoint.
    #[must_use]
    pub fn new(url: Url) -> Self {
        Self {
            url,
            viewers: 10,
            rate: 50.0,
            length: Duration::from_secs(30),
            timeout: Duration::from_secs(10),
            silence: Duration::from_secs(4),
            reports: Duration::from_secs(1),
            threads: 1,
        }
    }

    /// The first setting that makes no sense, as the sentence to show for it.
    pub(crate) fn problem(&self) -> Option<String> {
        let problem = if !matches!(self.url.scheme(), "http" | "https") || self.url.host_str().is_none() {
            format!("{}: expected http://HOST/PATH", self.url)
        } else if self.viewers == 0 {
            "viewers must be 1 or more".to_owned()
        } else if !(self.rate > 0.0 && self.rate.is_finite()) {
            format!("the rate must be above 0, not {}", self.rate)
        } else if self.threads == 0 {
            "threads must be 1 or more".to_owned()
        } else if self.reports < Duration::from_millis(20) {
            "reports must be 20ms apart or more".to_owned()
        } else if self.length.is_zero() || self.timeout.is_zero() || self.silence.is_zero() {
            "the duration, the timeout and the silence must be above 0".to_owned()
        } else {
            return None;
        };
        Some(problem)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> Options {
        Options::new(Url::parse("http://h/live/cam/whep").unwrap())
    }

    #[test]
    fn defaults_are_sound() {
        assert_eq!(options().problem(), None);
    }

    #[test]
    fn each_nonsense_is_named() {
        let rtsp = Url::parse("rtsp://h/a").unwrap();
        let table: [(&str, Options); 7] = [
            ("rtsp://h/a", Options { url: rtsp, ..options() }),
            ("viewers", Options { viewers: 0, ..options() }),
            ("rate", Options { rate: f64::NAN, ..options() }),
            ("rate", Options { rate: 0.0, ..options() }),
            ("threads", Options { threads: 0, ..options() }),
            ("reports", Options { reports: Duration::ZERO, ..options() }),
            ("silence", Options { silence: Duration::ZERO, ..options() }),
        ];
        for (word, options) in table {
            let problem = options.problem().unwrap_or_default();
            assert!(problem.contains(word), "{word}: {problem:?}");
        }
    }
}
