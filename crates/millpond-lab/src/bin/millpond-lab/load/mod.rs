//! `millpond load`: plays from a server as many clients do, and measures it. Each kind of URL has a file.

mod http;
mod rtsp;
mod trace;
mod whep;

use super::{Outcome, runtime};
use clap::{Arg, ArgAction, ArgMatches, Command, parser::ValueSource, value_parser};
use millpond_lab::{Arrivals, simulate::Plot};
use millpond_settings::value;
use millpond_terminal::out;
use std::{fmt::Display, time::Duration};

/// Options that mean nothing to RTSP.
const HTTP_ONLY: &[&str] =
    &["pace", "buffer", "abr", "ranges", "trace", "block", "http2", "plain", "live", "timeout", "retries", "insecure"];
/// Options that mean nothing to HTTP.
const RTSP_ONLY: &[&str] = &[
    "rate",
    "watch",
    "watch-distribution",
    "zipf",
    "transport",
    "mute",
    "seeks",
    "pauses",
    "reports",
    "once",
    "silence",
];

pub(crate) fn command() -> Command {
    let command = Command::new("load").about("Loads any HLS, DASH or RTSP server with many simulated clients").arg(
        Arg::new("url").value_name("URL").required(true).num_args(1..).help(
            "URL of a manifest, another http URL (which is fetched unchanged), or rtsp URLs. {1..9} makes several \
             URLs: rtsp://h/{1..9}.mp4",
        ),
    );
    let command =
        command.args_conflicts_with_subcommands(true).subcommand_negates_reqs(true).subcommand(whep::command());
    [http_options(), rtsp_options()]
        .into_iter()
        .zip(["HTTP", "RTSP"])
        .fold(command.args(common_options()), |command, (args, heading)| {
            command.args(args.into_iter().map(|arg| arg.help_heading(heading)))
        })
}

/// An option with a default.
fn option(name: &'static str, value: &'static str, default: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).default_value(default).help(help)
}

/// An option without.
fn optional(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

fn common_options() -> Vec<Arg> {
    vec![
        option("clients", "NUMBER", "10", "Number of clients at the same time").value_parser(value_parser!(u32)),
        option("ramp-up", "DURATION", "0s", "Time within which the clients arrive"),
        option("arrivals", "HOW", "even", "Distribution of the arrivals").value_parser(["even", "poisson"]),
        optional(
            "duration",
            "DURATION",
            "Duration of the run. Clients that leave during it are replaced [default: the duration of the title]",
        ),
        option(
            "start-within",
            "FRACTION",
            "0",
            "First part of the title, from 0 to 1, in which clients start at \
                                                 random positions",
        )
        .value_parser(value_parser!(f64)),
        option(
            "mean-watch",
            "FRACTION",
            "1",
            "Mean part of the title, from 0 to 1, that clients watch before they \
                                               leave",
        )
        .value_parser(value_parser!(f64)),
        option("threads", "NUMBER", "1", "Number of generator threads").value_parser(value_parser!(usize)),
        optional("json", "FILE", "Writes the report as JSON; - for standard output"),
        optional("plot", "FILE", "Writes the distribution of times as SVG"),
    ]
}

fn http_options() -> Vec<Arg> {
    vec![
        option("pace", "HOW", "realtime", "Whether clients request at the pace of players, or as fast as possible")
            .value_parser(["realtime", "fast"]),
        option("buffer", "DURATION", "20s", "Media that a realtime player buffers"),
        option("abr", "HOW", "switching", "Which rendition is requested").value_parser([
            "lowest",
            "highest",
            "switching",
        ]),
        optional("ranges", "BYTES", "Requests random ranges of this size; for plain URLs")
            .value_parser(value_parser!(u64)),
        optional(
            "trace",
            "FILE",
            "Plays a trace (CSV, as `simulate` reads it) against the files URL/1, URL/2 ..., by range requests",
        )
        .conflicts_with_all(["ranges", "duration", "clients", "plot"]),
        option("block", "SIZE", "64KiB", "Size of one request of --trace"),
        flag("http2", "Uses HTTP/2 only"),
        flag("plain", "Fetches only the URL itself, even if it is a manifest"),
        flag("live", "Plays a live stream by Low-Latency HLS, and checks its playlists")
            .conflicts_with_all(["plain", "ranges", "trace"]),
        option("timeout", "DURATION", "30s", "Longest time of a request, from asking to the last byte"),
        option("retries", "NUMBER", "2", "Number of times that a failed request is made again at the same server")
            .value_parser(value_parser!(u32)),
        flag("insecure", "Accepts any certificate"),
    ]
}

fn rtsp_options() -> Vec<Arg> {
    vec![
        optional("rate", "NUMBER", "Number of new clients a second, instead of a constant number of clients")
            .value_parser(value_parser!(f64))
            .conflicts_with_all(["clients", "ramp-up"])
            .requires("duration"),
        optional("watch", "DURATION", "Time that a client watches [default: to the end of the title]"),
        option(
            "watch-distribution",
            "HOW",
            "fixed",
            "Whether --watch is the exact time of each client, or the mean \
                                                      of a distribution",
        )
        .value_parser(["fixed", "exponential"])
        .requires("watch"),
        option(
            "zipf",
            "EXPONENT",
            "0",
            "Exponent of Zipf's law, by which clients choose among several URLs; 0 \
                                         chooses evenly",
        )
        .value_parser(value_parser!(f64)),
        option("transport", "HOW", "udp", "Transport of the media").value_parser(["udp", "tcp"]),
        flag("mute", "Sends signalling only: clients leave before they play"),
        option("seeks", "NUMBER", "0", "Number of seeks to random positions, for each client and minute")
            .value_parser(value_parser!(f64)),
        option("pauses", "NUMBER", "0", "Number of pauses of some seconds, for each client and minute")
            .value_parser(value_parser!(f64)),
        optional("reports", "DURATION", "Longest interval of receiver reports, as for rate control [default: 5s]"),
        optional("silence", "DURATION", "Longest time without a packet before a session has failed [default: 4s]"),
        flag("once", "Does not replace clients that leave"),
    ]
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    if let Some(("whep", matches)) = matches.subcommand() {
        return whep::run(&Given(matches));
    }
    let given = Given(matches);
    let is_rtsp = |url: &&str| url.split_once("://").is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("rtsp"));
    let urls = given.urls();
    if urls.iter().any(is_rtsp) {
        given.refuse(HTTP_ONLY, "rtsp")?;
        return rtsp::run(&given);
    }
    given.refuse(RTSP_ONLY, "http")?;
    let [url] = urls[..] else {
        return Err(format!("{} URLs: of http URLs one is played at a time", urls.len()).into());
    };
    match given.text("trace") {
        "" => http::run(&given, url),
        file => trace::run(&given, url, file),
    }
}

/// Arguments of the command line.
struct Given<'a>(&'a ArgMatches);

impl Given<'_> {
    fn urls(&self) -> Vec<&str> {
        self.0.get_many::<String>("url").unwrap_or_default().map(String::as_str).collect()
    }

    /// Empty where it is not given.
    fn text(&self, name: &str) -> &str {
        self.0.get_one::<String>(name).map(String::as_str).unwrap_or_default()
    }

    fn duration(&self, name: &str) -> Result<Duration, String> {
        let text = self.text(name);
        value::duration(text).map_err(|_| format!("--{name} {text}: expected {}", value::Form::Duration.expected()))
    }

    /// None where it is not given.
    fn optional_duration(&self, name: &str) -> Result<Option<Duration>, String> {
        if self.text(name).is_empty() { Ok(None) } else { self.duration(name).map(Some) }
    }

    fn number<N: Copy + Send + Sync + 'static>(&self, name: &str) -> Option<N> {
        self.0.get_one(name).copied()
    }

    fn flag(&self, name: &str) -> bool {
        self.0.get_flag(name)
    }

    fn arrivals(&self) -> Arrivals {
        if self.text("arrivals") == "poisson" { Arrivals::Poisson } else { Arrivals::Even }
    }

    /// Options that don't fit the kind of URL are an error, not passed over.
    fn refuse(&self, options: &[&str], scheme: &str) -> Result<(), String> {
        match options.iter().find(|name| self.0.value_source(name) == Some(ValueSource::CommandLine)) {
            Some(name) => Err(format!("--{name} means nothing to {scheme} URLs")),
            None => Ok(()),
        }
    }

    /// Shows a report, and writes its JSON where that was asked for.
    fn publish(&self, report: impl Display, json: serde_json::Result<String>) -> Outcome {
        out::progress("");
        let json = json?;
        match self.text("json") {
            "-" => out::json(&json),
            "" => out::lines(&report.to_string()),
            file => {
                std::fs::write(file, json).map_err(|e| format!("{file}: {e}"))?;
                out::lines(&report.to_string())
            }
        }
    }
}

/// Writes a picture to the file of `--plot`, where there is one.
fn draw(given: &Given<'_>, plot: impl FnOnce() -> Plot) -> Outcome {
    match given.text("plot") {
        "" => Ok(()),
        file => Ok(std::fs::write(file, plot().svg()).map_err(|e| format!("{file}: {e}"))?),
    }
}

/// Shows the progress, in place of the line before.
fn show(progress: impl Display) {
    out::progress(&progress.to_string());
}

/// Ready at Ctrl-C.
async fn interrupted() {
    let _ = tokio::signal::ctrl_c().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(line: &str) -> String {
        let words = ["load"].into_iter().chain(line.split(' '));
        match command().try_get_matches_from(words) {
            Ok(matches) => run(&matches).expect_err(line).to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn options_that_do_not_fit_are_refused() {
        for (line, expected) in [
            ("rtsp://h/a --abr lowest", "--abr means nothing to rtsp URLs"),
            ("rtsp://h/a --trace f.csv", "--trace means nothing to rtsp URLs"),
            ("http://h/a --mute", "--mute means nothing to http URLs"),
            ("http://h/a --trace f.csv --plot a.svg", "cannot be used with"),
            ("http://h/a http://h/b", "2 URLs: of http URLs one is played at a time"),
            ("rtsp://h/a http://h/b", "http://h/b: expected rtsp://HOST/PATH"),
            ("rtsp://h/a --rate 5", "--duration"),
            ("rtsp://h/a --rate 5 --clients 3 --duration 1s", "cannot be used with"),
            ("rtsp://h/{a..b}", "expected numbers in braces"),
            ("rtsp://h/a --mute --transport tcp", "use UDP"),
            ("rtsp://h/a --watch soon", "--watch soon: expected"),
            ("whep rtsp://h/a", "expected a URL of http, https"),
            ("whep http://h/a/whep --viewers 0", "viewers must be 1 or more"),
            ("whep http://h/a/whep --reports soon", "--reports soon: expected"),
            ("whep http://h/a/whep --abr lowest", "--abr"),
            ("whep", "<URL>"),
        ] {
            let problem = problem(line);
            assert!(problem.contains(expected), "{line}: {problem}");
        }
    }
}
