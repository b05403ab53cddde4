//! `millpond load`: plays from a server as many players do, and measures it.

use super::{Outcome, runtime};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use millpond_lab::{
    Abr, Arrivals, HttpVersion, LoadOptions, Pace, RunLength, Target, replay, run_until, simulate::trace,
};
use millpond_server::config::value;
use std::{io::Write as _, time::Duration};

pub(crate) fn command() -> Command {
    let arg = |name: &'static str, value: &'static str, default: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).default_value(default).help(help)
    };
    Command::new("load")
        .about("Plays the request sequence of many players from an HLS or DASH manifest, against any server")
        .arg(Arg::new("url").value_name("URL").required(true).help("A manifest; another URL is fetched as it is"))
        .arg(arg("clients", "NUMBER", "10", "Players").value_parser(value_parser!(u32)))
        .arg(arg("ramp-up", "DURATION", "0s", "Time over which the players arrive"))
        .arg(arg("arrivals", "HOW", "even", "How they arrive in that time").value_parser(["even", "poisson"]))
        .arg(
            Arg::new("duration")
                .long("duration")
                .value_name("DURATION")
                .help("Length of the run [default: the title once]"),
        )
        .arg(arg("pace", "HOW", "realtime", "As players do, or as fast as it goes").value_parser(["realtime", "fast"]))
        .arg(arg("buffer", "DURATION", "20s", "Media a realtime player holds ahead"))
        .arg(arg("abr", "HOW", "switching", "Which rendition is asked for").value_parser([
            "lowest",
            "highest",
            "switching",
        ]))
        .arg(
            arg("start-within", "FRACTION", "0", "Players start at random places in this part of the title")
                .value_parser(value_parser!(f64)),
        )
        .arg(
            arg("mean-watch", "FRACTION", "1", "Mean part of the title that players watch before they leave")
                .value_parser(value_parser!(f64)),
        )
        .arg(
            Arg::new("ranges")
                .long("ranges")
                .value_name("BYTES")
                .value_parser(value_parser!(u64))
                .help("Plain URLs: random ranges of this size"),
        )
        .arg(
            Arg::new("trace")
                .long("trace")
                .value_name("FILE")
                .help("Plays a trace as `simulate` reads it (CSV) against the files URL/1, URL/2 ..., by plain ranges")
                .conflicts_with_all(["ranges", "duration", "clients"]),
        )
        .arg(arg("block", "SIZE", "64KiB", "With --trace: bytes of one request"))
        .arg(arg("threads", "NUMBER", "1", "Threads of the generator").value_parser(value_parser!(usize)))
        .arg(Arg::new("http2").long("http2").action(ArgAction::SetTrue).help("Speaks HTTP/2 only"))
        .arg(
            Arg::new("plain")
                .long("plain")
                .action(ArgAction::SetTrue)
                .help("Fetches the URL as it is, also a manifest"),
        )
        .arg(Arg::new("insecure").long("insecure").action(ArgAction::SetTrue).help("Accepts any certificate"))
        .arg(Arg::new("json").long("json").value_name("FILE").help("Writes the report as JSON; - for standard output"))
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    if let Some(file) = matches.get_one::<String>("trace") {
        return play_trace(matches, file);
    }
    let options = options(matches)?;
    let progress = |progress: &millpond_lab::Progress| {
        eprint!("\r{progress}\x1b[K");
        let _ = std::io::stderr().flush();
    };
    let stop = async {
        let _ = tokio::signal::ctrl_c().await;
    };
    let report = runtime()?.block_on(run_until(options, progress, stop))?;
    eprintln!();
    match matches.get_one::<String>("json").map(String::as_str) {
        Some("-") => println!("{}", serde_json::to_string_pretty(&report)?),
        Some(file) => {
            std::fs::write(file, serde_json::to_string_pretty(&report)?).map_err(|e| format!("{file}: {e}"))?;
            println!("{report}");
        }
        None => println!("{report}"),
    }
    if report.error_count() > 0 { Err(format!("{} requests failed", report.error_count()).into()) } else { Ok(()) }
}

fn play_trace(matches: &ArgMatches, file: &str) -> Outcome {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str).unwrap_or_default();
    let url = text("url").parse().map_err(|e| format!("{}: {e}", text("url")))?;
    let block = value::size(text("block")).map_err(|_| "--block: a size such as 64KiB")?;
    let bytes = std::fs::read_to_string(file).map_err(|e| format!("{file}: {e}"))?;
    let workload = trace::csv(&bytes).map_err(|e| format!("{file}: {e}"))?;
    let all = workload.visits.len();
    let progress = |seconds: f64, visits: usize| {
        eprint!("\r{seconds:.0} s, {visits} of {all} visits\x1b[K");
        let _ = std::io::stderr().flush();
    };
    let report = runtime()?.block_on(replay(&workload, &url, block, progress))?;
    eprintln!();
    match matches.get_one::<String>("json").map(String::as_str) {
        Some("-") => println!("{}", serde_json::to_string_pretty(&report)?),
        Some(file) => {
            std::fs::write(file, serde_json::to_string_pretty(&report)?).map_err(|e| format!("{file}: {e}"))?;
            println!("{report}");
        }
        None => println!("{report}"),
    }
    match report.failure {
        Some(why) => Err(format!("{} visits failed: {why}", report.failed).into()),
        None => Ok(()),
    }
}

fn options(matches: &ArgMatches) -> Result<LoadOptions, Box<dyn std::error::Error>> {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str).unwrap_or_default();
    let duration = |name: &str| -> Result<Duration, String> {
        value::duration(text(name))
            .map_err(|_| format!("--{name} {}: expected {}", text(name), value::Form::Duration.expected()))
    };
    let url = text("url").parse().map_err(|e| format!("{}: {e}", text("url")))?;
    let mut options = LoadOptions::new(url);
    options.clients = matches.get_one("clients").copied().unwrap_or(options.clients);
    options.ramp_up = duration("ramp-up")?;
    options.arrivals = if text("arrivals") == "poisson" { Arrivals::Poisson } else { Arrivals::Even };
    if !text("duration").is_empty() {
        options.length = RunLength::For(duration("duration")?);
    }
    options.pace = if text("pace") == "fast" { Pace::Fast } else { Pace::Realtime { buffer: duration("buffer")? } };
    options.abr = match text("abr") {
        "lowest" => Abr::Lowest,
        "highest" => Abr::Highest,
        _ => Abr::Switching,
    };
    options.start_within = matches.get_one("start-within").copied().unwrap_or(0.0);
    options.mean_watch = matches.get_one("mean-watch").copied().unwrap_or(1.0);
    options.random_ranges = matches.get_one("ranges").copied();
    options.threads = matches.get_one("threads").copied().unwrap_or(1);
    options.http = if matches.get_flag("http2") { HttpVersion::Http2 } else { HttpVersion::Http1 };
    options.target = if matches.get_flag("plain") { Target::Plain } else { Target::Detect };
    options.insecure = matches.get_flag("insecure");
    Ok(options)
}
