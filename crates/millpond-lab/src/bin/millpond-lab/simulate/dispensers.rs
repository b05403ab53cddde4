//! `millpond simulate dispensers`: the server of Srinilta and Choudhary, and the figures of its paper.

use super::{Done, lists, write_json};
use clap::{Arg, ArgMatches, Command, value_parser};
use millpond_cluster::{AssignmentName, Bitrate};
use millpond_lab::simulate::{
    Plot,
    cluster::{PaperOutcome, PaperSetting, serve},
};
use millpond_settings::value;
use millpond_terminal::{out, say};
use std::{error::Error, path::Path};

/// Shares of missed packets below which streams are carried: hardly any, and the paper's acceptable region (section 5).
const CARRIED: [f64; 2] = [0.01, 0.3];
/// Rate of a stream, in kbit/s, to which the numbers of `--streams` refer.
const KILOBITS: u64 = 1500;

pub(super) fn command() -> Command {
    let option = |name: &'static str, value: &'static str, default: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).default_value(default).help(help)
    };
    Command::new("dispensers")
        .about("Simulates dispensers with throttled storages, as Srinilta and Choudhary did")
        .long_about(
            "Simulates dispensers with throttled storages on a virtual clock, as Srinilta and Choudhary did. Compares \
             the rules round robin and same object, same dispenser, with and without interval caching and delayed \
             deadlines. Prints the shares of cached requests, missed packets and delayed deadlines, and how many \
             streams each combination carries. With lists of values, each combination is a run. \
             docs/measured/cluster.md has the model.",
        )
        .arg(option(
            "streams",
            "NUMBERS",
            "300,350,400,425,450,475,500,525,550,575,600,625,650,675,700,750,800,850,900,950,1000",
            "Numbers of streams at 1.5 Mbit/s. At a higher rate there are proportionally fewer",
        ))
        .arg(option("rate", "KBITS", "1500", "Bandwidths of a stream in kbit/s"))
        .arg(option("skew", "NUMBERS", "0.729,1.2", "Exponents of Zipf's law: low and high skew"))
        .arg(option("assignment", "NAMES", "rr,sosd", "Rules that assign streams to dispensers: rr, sosd"))
        .arg(option("cache", "SIZES", "0,20MiB", "Sizes of each dispenser's interval cache"))
        .arg(option("delay", "PERIODS", "0,0.5,1", "Delays of the deadlines after a missed deadline, in periods"))
        .arg(option("unit", "SIZES", "512KiB,256KiB", "Sizes of a striping unit"))
        .arg(option("ramp", "TIME", "60s", "Time within which all streams begin"))
        .arg(option("dispensers", "NUMBER", "4", "Number of dispensers").value_parser(value_parser!(u8).range(1..=9)))
        .arg(option("storages", "NUMBER", "11", "Number of storages").value_parser(value_parser!(u8).range(1..)))
        .arg(option(
            "storage-rate",
            "SIZE",
            "10MB",
            "Rate of each storage in bytes a second, between seeks of 5 to 25 \
                                                     ms",
        ))
        .arg(option("seed", "NUMBER", "1", "Seed of random numbers").value_parser(value_parser!(u64)))
        .arg(Arg::new("json").long("json").value_name("FILE").help("Writes all figures as JSON; - for standard output"))
        .arg(Arg::new("plot").long("plot").value_name("FOLDER").help(
            "Writes plots like the figures of the paper, as \
                                                                      SVG",
        ))
}

/// A run, and its results.
struct Run {
    setting: PaperSetting,
    rate: u64,
    unit: u64,
    skew: f64,
    assignment: String,
    cache: u64,
    delay: f64,
    streams: usize,
    cached_share: f64,
    missed_share: f64,
    delayed_share: f64,
    outcome: PaperOutcome,
}

impl Run {
    fn new(setting: PaperSetting) -> Self {
        let outcome = serve(&setting);
        Self {
            rate: setting.rate.bps(),
            unit: setting.unit,
            skew: setting.skew,
            assignment: setting.assignment.to_string(),
            cache: setting.cache,
            delay: setting.delay,
            streams: setting.streams,
            cached_share: outcome.cached_share(),
            missed_share: outcome.missed_share(),
            delayed_share: outcome.delayed_share(),
            outcome,
            setting,
        }
    }

    /// Its techniques, as a legend names them.
    fn techniques(&self) -> String {
        let cache = if self.cache == 0 { "no cache".to_owned() } else { value::show_size(self.cache) };
        let delay = if self.delay == 0.0 { "no delay".to_owned() } else { format!("delay {}", self.delay) };
        format!("{}, {cache}, {delay}", self.assignment)
    }

    fn json(&self) -> serde_json::Value {
        let PaperOutcome { requests, cached, packets, missed, delayed, balance } = self.outcome;
        serde_json::json!({
            "rate": self.rate, "unit": self.unit, "skew": self.skew, "assignment": self.assignment, "cache": self.cache,
            "delay": self.delay, "streams": self.streams, "cached-share": self.cached_share,
            "missed-share": self.missed_share, "delayed-share": self.delayed_share, "requests": requests,
            "cached": cached, "packets": packets, "missed": missed, "delayed": delayed, "balance": balance,
        })
    }

    /// The conditions that plots and gains keep apart.
    fn workload(&self) -> (u64, u64, String) {
        (self.rate, self.unit, self.skew.to_string())
    }
}

pub(super) fn run_command(matches: &ArgMatches) -> Done {
    let quiet = matches.get_one::<String>("json").is_some_and(|file| file == "-");
    let settings = settings(matches)?;
    let all = settings.len();
    if !quiet {
        say!(
            "{:>6} {:>7} {:>5} {:>7} {:<28} {:>8} {:>8} {:>9}",
            "kbit/s",
            "unit",
            "skew",
            "streams",
            "techniques",
            "cached",
            "missed",
            "delayed"
        )?;
    }
    let mut runs: Vec<Run> = Vec::new();
    for (number, setting) in settings.into_iter().enumerate() {
        out::progress(&format!("run {} of {all}", number + 1));
        let run = Run::new(setting);
        if !quiet {
            out::progress("");
            say!(
                "{:>6} {:>7} {:>5} {:>7} {:<28} {:>6.2} % {:>6.2} % {:>7.2} %",
                run.rate / 1000,
                value::show_size(run.unit),
                run.skew,
                run.streams,
                run.techniques(),
                100.0 * run.cached_share,
                100.0 * run.missed_share,
                100.0 * run.delayed_share
            )?;
        }
        runs.push(run);
    }
    out::progress("");
    if !quiet {
        gains(&runs)?;
    }
    let all: Vec<_> = runs.iter().map(Run::json).collect();
    write_json(matches, &serde_json::to_string_pretty(&all)?)?;
    if let Some(folder) = matches.get_one::<String>("plot") {
        plots(Path::new(folder), &runs)?;
    }
    Ok(())
}

/// Each combination of the lists.
fn settings(matches: &ArgMatches) -> Result<Vec<PaperSetting>, Box<dyn Error>> {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str).unwrap_or_default();
    let size = |text: &str| value::size(text).ok();
    let ratio = |text: &str| text.parse::<f64>().ok().filter(|number| (0.0..=10.0).contains(number));
    let ramp = value::duration(text("ramp")).map_err(|_| "--ramp: a time such as 60s")?;
    let number = |name: &str| matches.get_one::<u8>(name).copied().unwrap_or(1).into();
    let base = PaperSetting {
        ramp,
        dispensers: number("dispensers"),
        storages: number("storages"),
        storage_rate: size(text("storage-rate"))
            .filter(|rate| *rate > 0)
            .ok_or("--storage-rate: a size such as 10MB")? as f64,
        seed: matches.get_one::<u64>("seed").copied().unwrap_or(1),
        ..PaperSetting::default()
    };
    let rates = lists::numbers(matches, "rate", 100..=100_000)?;
    let units = lists::of(matches, "unit", "64KiB to 1MiB, a power of two", |text| {
        size(text).filter(|unit| (64 << 10..=1 << 20).contains(unit) && unit.is_power_of_two())
    })?;
    let skews = lists::of(matches, "skew", "0 to 10", ratio)?;
    let rules = lists::assignments(matches)?;
    let caches = lists::of(matches, "cache", "a size such as 20MiB", size)?;
    let delays = lists::of(matches, "delay", "0 to 10", ratio)?;
    let streams = lists::numbers(matches, "streams", 1..=100_000)?;
    let mut all = Vec::new();
    for (rate, unit, skew) in product(&rates, &units, &skews) {
        for (cache, delay, assignment) in product(&caches, &delays, &rules) {
            let rate = Bitrate::from_bps(rate as u64 * 1000);
            let fewer = |streams: &usize| (*streams as u64 * KILOBITS * 1000 / rate.bps()).max(1) as usize;
            let setting =
                |streams| PaperSetting { streams, rate, unit, skew, cache, delay, assignment, ..base.clone() };
            all.extend(streams.iter().map(fewer).map(setting));
        }
    }
    Ok(all)
}

fn product<A: Copy, B: Copy, C: Copy>(one: &[A], two: &[B], three: &[C]) -> Vec<(A, B, C)> {
    let pairs = one.iter().flat_map(|a| two.iter().map(move |b| (*a, *b)));
    pairs.flat_map(|(a, b)| three.iter().map(move |c| (a, b, *c))).collect()
}

/// The runs of each group, in the order in which groups were found first.
fn grouped<'a, K: PartialEq>(runs: impl Iterator<Item = &'a Run>, key: impl Fn(&Run) -> K) -> Vec<(K, Vec<&'a Run>)> {
    let mut groups: Vec<(K, Vec<&Run>)> = Vec::new();
    for run in runs {
        let key = key(run);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, group)) => group.push(run),
            None => groups.push((key, vec![run])),
        }
    }
    groups
}

/// Prints how many streams each combination carries.
fn gains(runs: &[Run]) -> Done {
    say!("")?;
    let [few, region] = CARRIED.map(|limit| 100.0 * limit);
    say!("streams carried with less than {few:.0} %, and with less than {region:.0} % of packets missed:")?;
    for ((rate, unit, skew), group) in grouped(runs.iter(), Run::workload) {
        let mut none = None;
        for (techniques, group) in grouped(group.into_iter(), Run::techniques) {
            let most = CARRIED.map(|limit| {
                let fits = group.iter().take_while(|run| run.missed_share < limit);
                fits.map(|run| run.streams).max().unwrap_or(0)
            });
            let is_plain =
                |run: &&Run| run.setting.assignment == AssignmentName::RoundRobin && run.cache == 0 && run.delay == 0.0;
            if group.first().is_some_and(is_plain) {
                none = Some(most);
            }
            let gain = |at: usize| match none.map(|none| none[at]).filter(|none| *none > 0) {
                Some(none) => format!("{:+.0} %", 100.0 * (most[at] as f64 / none as f64 - 1.0)),
                None => String::new(),
            };
            say!(
                "{:>6} {:>7} {:>5} {techniques:<28} {:>5} {:>6} {:>7} {:>6}",
                rate / 1000,
                value::show_size(unit),
                skew,
                most[0],
                gain(0),
                most[1],
                gain(1)
            )?;
        }
    }
    Ok(())
}

/// Plots of the kinds of the paper's figures 5 to 8.
fn plots(folder: &Path, runs: &[Run]) -> Done {
    std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let write = |name: String,
                 title: String,
                 y: &str,
                 runs: Vec<&Run>,
                 label: &dyn Fn(&Run) -> String,
                 value: &dyn Fn(&Run) -> f64|
     -> Done {
        let points =
            |group: Vec<&Run>| group.iter().map(|run| (run.streams as f64, 100.0 * value(run))).collect::<Vec<_>>();
        let lines: Vec<_> =
            grouped(runs.into_iter(), label).into_iter().map(|(label, group)| (label, points(group))).collect();
        if lines.is_empty() {
            return Ok(());
        }
        let plot = Plot { title, x: "streams".into(), y: y.into(), lines, ..Plot::default() };
        let path = folder.join(format!("{name}.svg"));
        Ok(std::fs::write(&path, plot.svg()).map_err(|e| format!("{}: {e}", path.display()))?)
    };
    for ((rate, unit), group) in grouped(runs.iter(), |run| (run.rate, run.unit)) {
        let of = format!("{} kbit/s, units of {}", rate / 1000, value::show_size(unit));
        let file = |kind: &str| format!("{kind}-{}k-{}", rate / 1000, value::show_size(unit));
        let skewed = |run: &Run| format!("{}, skew {}", run.techniques(), run.skew);
        let chosen =
            |choose: &dyn Fn(&Run) -> bool| group.iter().copied().filter(|run| choose(run)).collect::<Vec<_>>();
        let cached = chosen(&|run| run.cache > 0 && run.delay == 0.0);
        write(file("cached"), format!("Cached requests, {of}"), "cached (%)", cached, &skewed, &|run| {
            run.cached_share
        })?;
        let delayed = chosen(&|run| run.cache > 0 && run.delay > 0.0);
        write(file("delayed"), format!("Delayed deadlines, {of}"), "delayed (%)", delayed, &skewed, &|run| {
            run.delayed_share
        })?;
        for (skew, group) in grouped(group.iter().copied(), |run| run.skew.to_string()) {
            let title = format!("Missed packets, skew {skew}, {of}");
            write(file(&format!("missed-skew-{skew}")), title, "missed (%)", group, &Run::techniques, &|run| {
                run.missed_share
            })?;
        }
    }
    Ok(())
}
