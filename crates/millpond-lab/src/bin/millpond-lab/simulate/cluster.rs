//! `millpond simulate cluster`: many nodes, with failures, joins and a flash crowd.

use super::{Done, lists, write_json};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use millpond_cluster::{AssignmentName, Bitrate};
use millpond_lab::simulate::cluster::{FleetOutcome, FleetSetting, run_fleet};
use millpond_settings::value;
use millpond_terminal::{out, say};
use std::{error::Error, time::Instant};

pub(super) fn command() -> Command {
    let option = |name: &'static str, value: &'static str, default: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).default_value(default).help(help)
    };
    let share = |name, default, help| option(name, "SHARE", default, help).value_parser(value_parser!(f64));
    Command::new("cluster")
        .about("Simulates viewers of a cluster with failures, joining nodes and a flash crowd")
        .long_about(
            "Simulates viewers of a cluster on a virtual clock, with the server's own code for assignment and \
             admission. Viewers arrive and leave for two and a half minutes. Then nodes are killed, others join, and \
             a crowd requests a cold asset. docs/measured/cluster.md explains each figure.",
        )
        .arg(option("nodes", "NUMBERS", "10,100,1000", "Numbers of nodes, each up to 10,000"))
        .arg(option("assignment", "NAMES", "sosd", "Rules that assign streams to nodes: sosd, rr"))
        .arg(
            option("managers", "NUMBER", "3", "Number of managers, the nodes that viewers ask first")
                .value_parser(value_parser!(u16)),
        )
        .arg(option("viewers", "NUMBER", "64", "Mean number of viewers of a node").value_parser(value_parser!(u16)))
        .arg(
            option("assets", "NUMBER", "2000", "Number of assets, each of half an hour")
                .value_parser(value_parser!(u32)),
        )
        .arg(share("skew", "0.9", "Exponent of Zipf's law for the popularity of assets"))
        .arg(option("rate", "KBITS", "4000", "Bandwidth of a stream in kbit/s").value_parser(value_parser!(u32)))
        .arg(option("capacity", "MBITS", "512", "Bandwidth of a node in Mbit/s").value_parser(value_parser!(u32)))
        .arg(
            Arg::new("mixed")
                .long("mixed")
                .action(ArgAction::SetTrue)
                .help("Gives every fourth node twice the bandwidth"),
        )
        .arg(option("cache", "SIZE", "256GiB", "Size of each node's slice cache"))
        .arg(option("published", "TIME", "5s", "Interval at which a node publishes its load"))
        .arg(share("changed", "0.01", "Share of the nodes that are killed; as many nodes join"))
        .arg(share("crowd", "0.1", "Size of the crowd, as a share of all viewers"))
        .arg(share("lying", "0", "Share of the nodes that always publish a load of 0"))
        .arg(option("seed", "NUMBER", "1", "Seed of random numbers").value_parser(value_parser!(u64)))
        .arg(Arg::new("json").long("json").value_name("FILE").help("Writes all figures as JSON; - for standard output"))
}

pub(super) fn run_command(matches: &ArgMatches) -> Done {
    let quiet = matches.get_one::<String>("json").is_some_and(|file| file == "-");
    // All arguments are read before a line is printed.
    let setting = setting(matches)?;
    let (nodes, assignments) = (lists::numbers(matches, "nodes", 1..=10_000)?, lists::assignments(matches)?);
    if !quiet {
        say!("{}", head())?;
    }
    let mut outcomes = Vec::new();
    for nodes in nodes {
        for assignment in assignments.clone() {
            let started = Instant::now();
            let setting = FleetSetting { nodes, assignment, ..setting.clone() };
            let outcome = run_fleet(&setting, |share| tell(nodes, assignment, share));
            out::progress("");
            if !quiet {
                say!("{} {:>7.1}s", row(&outcome), started.elapsed().as_secs_f64())?;
            }
            outcomes.push(outcome);
        }
    }
    write_json(matches, &serde_json::to_string_pretty(&outcomes)?)
}

fn setting(matches: &ArgMatches) -> Result<FleetSetting, Box<dyn Error>> {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str).unwrap_or_default();
    let number = |name: &str| matches.get_one::<u16>(name).copied().unwrap_or(1).max(1).into();
    let kilobits = |name: &str| u64::from(matches.get_one::<u32>(name).copied().unwrap_or(1).max(1)) * 1000;
    let share = |name: &str, most: f64| {
        let share = matches.get_one::<f64>(name).copied().unwrap_or_default();
        (0.0..=most).contains(&share).then_some(share).ok_or(format!("--{name} {share}: expected 0 to {most}"))
    };
    let published = value::duration(text("published")).map_err(|_| "--published: a time such as 5s")?;
    if published.is_zero() {
        return Err("--published: expected above 0".into());
    }
    Ok(FleetSetting {
        managers: number("managers"),
        viewers: number("viewers"),
        assets: matches.get_one::<u32>("assets").copied().unwrap_or(1).clamp(1, 1_000_000) as usize,
        skew: share("skew", 5.0)?,
        rate: Bitrate::from_bps(kilobits("rate")),
        capacity: Bitrate::from_bps(kilobits("capacity") * 1000),
        mixed: matches.get_flag("mixed"),
        cache: value::size(text("cache")).map_err(|_| "--cache: expected a size such as 256GiB")?,
        published,
        changed: share("changed", 0.5)?,
        crowd: share("crowd", 1.0)?,
        lying: share("lying", 1.0)?,
        seed: matches.get_one::<u64>("seed").copied().unwrap_or(1),
        ..FleetSetting::default()
    })
}

/// Shows the run that is under way, and its progress.
fn tell(nodes: usize, assignment: AssignmentName, share: f64) {
    out::progress(&format!("{nodes} nodes, {assignment}: {:.0} %", share * 100.0));
}

fn head() -> String {
    format!(
        "{:>6} {:>5} {:>8} {:>7} {:>9} {:>10} {:>7} {:>7} {:>6} {:>9} {:>7} {:>6} {:>6} {:>6} {:>6} {:>7} {:>9} {:>9} {:>9} {:>8}",
        "nodes",
        "rule",
        "streams",
        "refused",
        "most/mean",
        "most/bound",
        "first",
        "led",
        "origin",
        "origin GB",
        "crowd",
        "on",
        "left",
        "joined",
        "cut",
        "longest",
        "decisions",
        "of new",
        "view",
        "took"
    )
}

fn row(o: &FleetOutcome) -> String {
    format!(
        "{:>6} {:>5} {:>8} {:>7} {:>9.3} {:>10.3} {:>5.0} % {:>5.0} % {:>6.3} {:>9.1} {:>7.3} {:>6} {:>6.2} {:>6.2} {:>6} {:>6.1}s {:>7.0}/s {:>7.0}/s {:>9}",
        o.nodes,
        o.assignment,
        o.streams,
        o.refused,
        o.most_over_mean,
        o.most_over_bound,
        100.0 * o.first_share,
        100.0 * o.led_share,
        o.origin_ratio,
        o.origin_bytes as f64 / 1e9,
        o.crowd_origin_ratio,
        o.crowd_dispensers,
        o.moved_leaving,
        o.moved_joining,
        o.cut,
        o.longest_cut,
        o.decisions_per_second,
        o.first_decisions_per_second,
        o.view_bytes
    )
}
