//! `millpond simulate`: the effect of another policy, mode or size of the cache on a workload.

mod broadcast;
mod cluster;
mod dispensers;
mod lists;
mod zones;

use super::Outcome as Done;
use clap::{Arg, ArgAction, ArgMatches, Command};
use millpond_lab::simulate::{
    Axis, LinkModel, Outcome, Plot, Setting, Workload, ZipfOptions, byte_miss_ratio, compare, head, mix, replay, run,
    sproxy, trace, zipf,
};
use millpond_settings::value;
use millpond_store::{policy::PolicyName, schedule::Mode};
use millpond_terminal::{out, say};
use std::{
    collections::BTreeMap,
    error::Error,
    path::{Path, PathBuf},
};

pub(crate) fn command() -> Command {
    let option = |name: &'static str, value: &'static str, default: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).default_value(default).help(help)
    };
    Command::new("simulate")
        .args_conflicts_with_subcommands(true)
        .subcommand(broadcast::command())
        .subcommand(cluster::command())
        .subcommand(dispensers::command())
        .subcommand(zones::command())
        .about("Simulates a workload with the cache's own policies and prefetch modes")
        .long_about(
            "Simulates a workload with the cache's own policies and prefetch modes, on a virtual clock and a modelled \
             link. Prints server traffic, hits, false prefetch and stalls. With lists of values, each combination is \
             a run. docs/handbook/simulator.md explains each figure.",
        )
        .arg(
            option("preset", "NAME", "sproxy", "A generated workload")
                .value_parser([
                    "sproxy", "zipf", "early", "crowd", "even", "segments", "live", "files", "scans", "loop", "news",
                    "mixed",
                ])
                .conflicts_with("trace"),
        )
        .arg(Arg::new("trace").long("trace").value_name("FILE").help("A workload from a file"))
        .arg(option("format", "FORM", "csv", "Format of the file").value_parser(["csv", "log", "oracle"]))
        .arg(option("shrink", "FACTOR", "1", "Divides all bytes").value_parser(clap::value_parser!(f64)))
        .arg(option("speed", "FACTOR", "1", "Divides all times").value_parser(clap::value_parser!(f64)))
        .arg(Arg::new("save").long("save").value_name("FILE").help("Writes the workload as CSV, and runs nothing"))
        .arg(option("cache", "SIZES", "64MiB,256MiB,1GiB,4GiB", "Sizes of the cache"))
        .arg(option("slice", "SIZES", "512KiB", "Sizes of a slice. The mode full caches whole objects instead"))
        .arg(option("mode", "MODES", "on-demand", Mode::HELP))
        .arg(option("policy", "NAMES", PolicyName::Stream.as_str(), "Eviction policies; \"all\" runs each policy"))
        .arg(option(
            "bandwidth",
            "RATES",
            "10MB",
            "Bandwidth of the link to the origin, in bytes a second. It may change over time, such as \
             10MB,1h:2MB,3h:10MB",
        ))
        .arg(option("delay", "TIME", "50ms", "Time from a request to the first byte of its reply"))
        .arg(option("seed", "NUMBER", "1", "Seed of generated workloads").value_parser(clap::value_parser!(u64)))
        .arg(
            Arg::new("compare")
                .long("compare")
                .action(ArgAction::SetTrue)
                .conflicts_with_all(["preset", "trace", "save", "plot"])
                .help(
                    "Compares all policies on ten workloads. Shows how much worse the default is than the best \
                       other policy",
                ),
        )
        .arg(Arg::new("json").long("json").value_name("FILE").help("Writes all figures as JSON; - for standard output"))
        .arg(Arg::new("plot").long("plot").value_name("FOLDER").help("Writes plots over the size of the cache, as SVG"))
}

pub(crate) fn run_command(matches: &ArgMatches) -> Done {
    match matches.subcommand() {
        Some(("broadcast", matches)) => return broadcast::run_command(matches),
        Some(("cluster", matches)) => return cluster::run_command(matches),
        Some(("dispensers", matches)) => return dispensers::run_command(matches),
        Some(("zones", matches)) => return zones::run_command(matches),
        _ => {}
    }
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str).unwrap_or_default();
    let factor = |name: &str| {
        let factor = matches.get_one::<f64>(name).copied().unwrap_or(1.0);
        (factor > 0.0 && factor.is_finite()).then_some(factor).ok_or(format!("--{name} {factor}: expected above 0"))
    };
    if matches.get_flag("compare") {
        return compare_all(matches);
    }
    let workload = workload(matches)?.scaled(factor("shrink")?, factor("speed")?);
    if let Some(file) = matches.get_one::<String>("save") {
        return Ok(std::fs::write(file, trace::to_csv(&workload)).map_err(|e| format!("{file}: {e}"))?);
    }
    // All arguments are read before a line is printed.
    let link = link(text("bandwidth"), text("delay"))?;
    let combinations = combinations(matches)?;
    let quiet = text("json") == "-";
    let totals = workload.totals();
    if !quiet {
        say!(
            "{}: {} visits of {} objects, {:.3} GB read, {:.3} GB of objects, {:.0} % of visits to one",
            workload.name,
            totals.visits,
            totals.objects,
            totals.bytes as f64 / 1e9,
            totals.unique_bytes as f64 / 1e9,
            100.0 * totals.most as f64 / totals.visits.max(1) as f64
        )?;
    }
    let plain = workload.visits.iter().all(|visit| visit.rate.is_infinite());
    let started = std::time::Instant::now();
    let mut outcomes = Vec::new();
    let all = combinations.len();
    for (number, (slice, mode, policy, cache)) in combinations.into_iter().enumerate() {
        let label = format!("{mode} {policy} {}", value::show_size(cache));
        let progress = |share: f64| tell((number + 1, all), &label, share);
        let whole = mode == Mode::Full;
        outcomes.push(match plain && matches!(mode, Mode::OnDemand | Mode::Full) {
            true => replay(&workload, cache, (!whole).then_some(slice), policy, progress),
            false => run(&workload, &Setting { cache, slice, mode, policy, link: link.clone() }, progress),
        });
    }
    out::progress("");
    let elapsed = started.elapsed().as_secs_f64();
    let bounds = bounds(&workload, &outcomes);
    if !quiet {
        table(&outcomes, &bounds)?;
        let asks: u64 = outcomes.iter().map(|outcome| outcome.asks).sum();
        say!("{asks} requests in {elapsed:.2} s: {:.2} million a second", asks as f64 / elapsed / 1e6)?;
    }
    write_json(matches, &serde_json::to_string_pretty(&outcomes)?)?;
    if let Some(folder) = matches.get_one::<String>("plot") {
        plots(Path::new(folder), &workload.name, &outcomes, &bounds)?;
    }
    Ok(())
}

/// The table of `--compare`, a line as soon as it is known.
fn compare_all(matches: &ArgMatches) -> Done {
    let quiet = matches.get_one::<String>("json").is_some_and(|file| file == "-");
    let seed = matches.get_one::<u64>("seed").copied().unwrap_or(1);
    let mut told = if quiet { Ok(()) } else { say!("{}", head()) };
    let rows = compare(1.0, seed, |row| {
        if !quiet && told.is_ok() {
            told = say!("{row}");
        }
    });
    told?;
    write_json(matches, &serde_json::to_string_pretty(&rows)?)
}

/// Writes the file of `--json`.
fn write_json(matches: &ArgMatches, json: &str) -> Done {
    match matches.get_one::<String>("json").map(String::as_str) {
        Some("-") => out::json(json)?,
        Some(file) => std::fs::write(file, json).map_err(|e| format!("{file}: {e}"))?,
        None => {}
    }
    Ok(())
}

fn workload(matches: &ArgMatches) -> Result<Workload, Box<dyn Error>> {
    let seed = matches.get_one::<u64>("seed").copied().unwrap_or(1);
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str).unwrap_or_default();
    if let Some(file) = matches.get_one::<String>("trace") {
        let bytes = std::fs::read(file).map_err(|e| format!("{file}: {e}"))?;
        let read = match text("format") {
            "oracle" => trace::oracle(&bytes),
            "log" => trace::log(&String::from_utf8_lossy(&bytes)),
            _ => trace::csv(&String::from_utf8_lossy(&bytes)),
        };
        return Ok(read.map_err(|e| format!("{file}: {e}"))?);
    }
    let usual = ZipfOptions::default();
    Ok(match text("preset") {
        "zipf" => zipf("zipf", ZipfOptions { watched: 1.0, middle: 0.0, ..usual }, seed),
        "early" => zipf("early", usual, seed),
        "crowd" => zipf("crowd", ZipfOptions { crowd: 0.3, ..usual }, seed),
        "even" => zipf("even", ZipfOptions { skew: 0.4, ..usual }, seed),
        name => mix(name, 1.0, seed).unwrap_or_else(|| sproxy(seed)),
    })
}

/// The link of `--bandwidth` and `--delay`.
fn link(bandwidth: &str, delay: &str) -> Result<LinkModel, Box<dyn Error>> {
    let delay = value::duration(delay).map_err(|_| "--delay: a time such as 50ms")?.as_secs_f64();
    let step = |text: String| {
        let (from, rate) = text.split_once(':').unwrap_or(("0s", &text));
        let wrong = || format!("--bandwidth {text}: expected bytes a second such as 10MB, or 1h:2MB");
        let from = value::duration(from).map_err(|_| wrong())?.as_secs_f64();
        let rate = value::size(rate).ok().filter(|rate| *rate > 0).ok_or_else(wrong)?;
        Ok::<_, String>((from, rate as f64))
    };
    let steps: Vec<_> = value::list(bandwidth).into_iter().map(step).collect::<Result<_, _>>()?;
    LinkModel::varying(&steps, delay).ok_or_else(|| format!("--bandwidth {bandwidth}: times must rise").into())
}

type Combination = (u32, Mode, PolicyName, u64);

/// Each slice, mode, policy and size of the lists.
fn combinations(matches: &ArgMatches) -> Result<Vec<Combination>, Box<dyn Error>> {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str).unwrap_or_default();
    let sizes = |name: &str| -> Result<Vec<u64>, Box<dyn Error>> {
        let size =
            |text: String| value::size(&text).map_err(|_| format!("--{name} {text}: expected a size such as 256MiB"));
        Ok(value::list(text(name)).into_iter().map(size).collect::<Result<_, _>>()?)
    };
    let slice = |size: u64| match u32::try_from(size) {
        Ok(bytes) if bytes > 0 => Ok(bytes),
        _ => Err(format!("--slice {size}: expected 1 byte to 4 GiB")),
    };
    let slices: Vec<u32> = sizes("slice")?.into_iter().map(slice).collect::<Result<_, _>>()?;
    let modes: Vec<Mode> = value::list(text("mode")).iter().map(|mode| mode.parse()).collect::<Result<_, _>>()?;
    let named = |name: &String| {
        let known = name.parse::<PolicyName>();
        known.map_err(|_| format!("--policy {name}: expected some of {}, or all", PolicyName::NAMES.join(", ")))
    };
    let policies: Vec<PolicyName> = match text("policy") {
        "all" => PolicyName::ALL.to_vec(),
        names => value::list(names).iter().map(named).collect::<Result<_, _>>()?,
    };
    let mut all = Vec::new();
    for (index, slice) in slices.iter().enumerate() {
        // Without slices their size makes no difference.
        for mode in modes.iter().filter(|mode| index == 0 || **mode != Mode::Full) {
            for policy in &policies {
                all.extend(sizes("cache")?.into_iter().map(|cache| (*slice, *mode, *policy, cache)));
            }
        }
    }
    Ok(all)
}

/// Shows the run that is under way, and its progress.
fn tell((number, all): (usize, usize), label: &str, share: f64) {
    out::progress(&format!("run {number} of {all}, {label}: {:.0} %", share * 100.0));
}

/// Belady's bound for each size of slice and cache that was run.
fn bounds(workload: &Workload, outcomes: &[Outcome]) -> BTreeMap<(u64, u64), f64> {
    let mut bounds = BTreeMap::new();
    for outcome in outcomes {
        let slice = u32::try_from(outcome.slice_bytes).ok().filter(|slice| *slice > 0);
        let key = (outcome.slice_bytes, outcome.cache_bytes);
        bounds.entry(key).or_insert_with(|| byte_miss_ratio(workload, slice, outcome.cache_bytes));
    }
    bounds
}

fn table(outcomes: &[Outcome], bounds: &BTreeMap<(u64, u64), f64>) -> Done {
    say!(
        "{:>10} {:>9} {:<10} {:<10} {:>10} {:>7} {:>7} {:>7} {:>10} {:>9} {:>7} {:>8}",
        "cache",
        "slice",
        "mode",
        "policy",
        "server GB",
        "hits",
        "missed",
        "Belady",
        "false GB",
        "startup",
        "stalls",
        "stalled"
    )?;
    for o in outcomes {
        let slice = if o.slice_bytes == 0 { "-".to_owned() } else { value::show_size(o.slice_bytes) };
        let bound = bounds.get(&(o.slice_bytes, o.cache_bytes)).copied().unwrap_or(0.0);
        say!(
            "{:>10} {:>9} {:<10} {:<10} {:>10.3} {:>7.4} {:>7.4} {:>7.4} {:>10.3} {:>9} {:>7} {:>8}",
            value::show_size(o.cache_bytes),
            slice,
            o.mode,
            o.policy,
            o.server_bytes as f64 / 1e9,
            o.hits as f64 / o.asks.max(1) as f64,
            o.byte_miss_ratio(),
            bound,
            o.false_prefetch_bytes as f64 / 1e9,
            out::span(o.startup_seconds),
            o.stalls,
            out::span(o.stall_seconds)
        )?;
    }
    Ok(())
}

fn plots(folder: &Path, name: &str, outcomes: &[Outcome], bounds: &BTreeMap<(u64, u64), f64>) -> Done {
    std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let lines = |value: &dyn Fn(&Outcome) -> f64| {
        let mut lines: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
        for outcome in outcomes {
            let slice = if outcome.slice_bytes == 0 {
                String::new()
            } else {
                format!(", {}", value::show_size(outcome.slice_bytes))
            };
            let label = format!("{}{slice}, {}", outcome.mode, outcome.policy);
            let point = (outcome.cache_bytes as f64, value(outcome));
            match lines.iter_mut().find(|(known, _)| *known == label) {
                Some((_, points)) => points.push(point),
                None => lines.push((label, vec![point])),
            }
        }
        lines
    };
    let write = |file: &str, title: &str, y: &str, lines: Vec<(String, Vec<(f64, f64)>)>| -> Done {
        let title = format!("{title}, workload {name}");
        let plot = Plot { title, x: "cache".into(), across: Axis::Sizes, y: y.into(), lines };
        let path: PathBuf = folder.join(file);
        std::fs::write(&path, plot.svg()).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(())
    };
    write("server-traffic.svg", "Server traffic", "server traffic (GB)", lines(&|o| o.server_bytes as f64 / 1e9))?;
    write(
        "false-prefetch.svg",
        "False prefetch",
        "false prefetch (GB)",
        lines(&|o| o.false_prefetch_bytes as f64 / 1e9),
    )?;
    let mut missed = lines(&Outcome::byte_miss_ratio);
    let of = |slice: u64| {
        bounds.iter().filter(move |((of, _), _)| *of == slice).map(|((_, cache), ratio)| (*cache as f64, *ratio))
    };
    for slice in bounds.keys().map(|(slice, _)| *slice).collect::<std::collections::BTreeSet<_>>() {
        let label =
            if slice == 0 { "Belady, whole".to_owned() } else { format!("Belady, {}", value::show_size(slice)) };
        missed.push((label, of(slice).collect()));
    }
    write("byte-miss-ratio.svg", "Byte miss ratio", "byte miss ratio", missed)
}
