//! `millpond simulate zones`: a cluster over regions, with zones and without.

use super::{Done, write_json};
use clap::{Arg, ArgMatches, Command, value_parser};
use millpond_cluster::Bitrate;
use millpond_lab::simulate::cluster::{RegionsOutcome, RegionsSetting, run_regions};
use millpond_settings::value;
use millpond_terminal::{out, say};
use std::{error::Error, time::Instant};

pub(super) fn command() -> Command {
    let option = |name: &'static str, value: &'static str, default: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).default_value(default).help(help)
    };
    let number = |name, default, help| option(name, "NUMBER", default, help).value_parser(value_parser!(u32));
    Command::new("zones")
        .about("Simulates viewers of a cluster over regions, with zones and without, and the loss of a region")
        .long_about(
            "Simulates viewers of a cluster over regions on a virtual clock, with the server's own code for \
             assignment and homes. The last region is lost at half time. The run is made twice: each region is a \
             zone, and there are no zones.",
        )
        .arg(number("regions", "3", "Number of regions, 2 to 100").value_parser(value_parser!(u32).range(2..=100)))
        .arg(
            number("nodes", "300", "Number of nodes in all regions, up to 10,000")
                .value_parser(value_parser!(u32).range(2..=10_000)),
        )
        .arg(
            number("assets", "1000000", "Number of assets, each of half an hour")
                .value_parser(value_parser!(u32).range(1..=10_000_000)),
        )
        .arg(number("viewers", "64", "Mean number of viewers of a node"))
        .arg(
            option("skew", "SHARE", "0.9", "Exponent of Zipf's law for the popularity of assets")
                .value_parser(value_parser!(f64)),
        )
        .arg(number("rate", "4000", "Bandwidth of a stream in kbit/s"))
        .arg(number("capacity", "512", "Bandwidth of a node in Mbit/s"))
        .arg(option("cache", "SIZE", "256GiB", "Size of each node's slice cache"))
        .arg(option("lasts", "TIME", "10m", "Time that is simulated"))
        .arg(option("seed", "NUMBER", "1", "Seed of random numbers").value_parser(value_parser!(u64)))
        .arg(Arg::new("json").long("json").value_name("FILE").help("Writes all figures as JSON; - for standard output"))
}

pub(super) fn run_command(matches: &ArgMatches) -> Done {
    let quiet = matches.get_one::<String>("json").is_some_and(|file| file == "-");
    let setting = setting(matches)?;
    let mut outcomes = Vec::new();
    for zoned in [true, false] {
        let started = Instant::now();
        let label = if zoned { "with zones" } else { "without zones" };
        let tell = |share: f64| out::progress(&format!("{label}: {:.0} %", share * 100.0));
        outcomes.push((run_regions(&RegionsSetting { zoned, ..setting.clone() }, tell), started.elapsed()));
        out::progress("");
    }
    if !quiet {
        say!("{:<48} {:>14} {:>14}", "", "with zones", "without zones")?;
        let shown: Vec<_> = outcomes.iter().map(|(outcome, _)| rows(outcome)).collect();
        for ((name, with), (_, without)) in shown[0].iter().zip(&shown[1]) {
            say!("{name:<48} {with:>14} {without:>14}")?;
        }
        let took = |at: usize| format!("{:.1} s", outcomes[at].1.as_secs_f64());
        say!("{:<48} {:>14} {:>14}", "the run took", took(0), took(1))?;
    }
    let outcomes: Vec<_> = outcomes.into_iter().map(|(outcome, _)| outcome).collect();
    write_json(matches, &serde_json::to_string_pretty(&outcomes)?)
}

fn setting(matches: &ArgMatches) -> Result<RegionsSetting, Box<dyn Error>> {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str).unwrap_or_default();
    let number = |name: &str| matches.get_one::<u32>(name).copied().unwrap_or(1).max(1);
    let skew = matches.get_one::<f64>("skew").copied().unwrap_or_default();
    if !(0.0..=5.0).contains(&skew) {
        return Err(format!("--skew {skew}: expected 0 to 5").into());
    }
    let lasts = value::duration(text("lasts")).map_err(|_| "--lasts: expected a time such as 10m")?;
    if lasts.is_zero() {
        return Err("--lasts: expected above 0".into());
    }
    let (regions, nodes) = (number("regions") as usize, number("nodes") as usize);
    if nodes < regions {
        return Err(format!("--nodes {nodes}: expected at least one node for each of {regions} regions").into());
    }
    Ok(RegionsSetting {
        regions,
        nodes,
        assets: number("assets") as usize,
        viewers: number("viewers") as usize,
        skew,
        rate: Bitrate::from_bps(u64::from(number("rate")) * 1000),
        capacity: Bitrate::from_mbps(number("capacity").into()),
        cache: value::size(text("cache")).map_err(|_| "--cache: expected a size such as 256GiB")?,
        lasts,
        seed: matches.get_one::<u64>("seed").copied().unwrap_or(1),
        ..RegionsSetting::default()
    })
}

/// The figures of a run, by name.
fn rows(o: &RegionsOutcome) -> Vec<(String, String)> {
    let gigabytes = |bytes: u64| format!("{:.1} GB", bytes as f64 / 1e9);
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let pairs = o.between.iter().enumerate().flat_map(|(from, row)| {
        let to = row.iter().enumerate().filter(move |(to, _)| *to != from);
        to.map(move |(to, bytes)| (format!("slices from region {} to {}", from + 1, to + 1), gigabytes(*bytes)))
    });
    // Of many regions the sum is enough.
    let pairs: Vec<_> = pairs.filter(|_| o.between.len() <= 4).collect();
    let row = |name: &str, value: String| (name.to_owned(), value);
    let before = vec![
        row("streams", o.streams.to_string()),
        row("streams that were refused", o.refused.to_string()),
        row("sent to viewers", gigabytes(o.viewer_bytes)),
        row("of that by nodes of other regions", percent(o.abroad_share())),
        row("sent by the origin", gigabytes(o.origin_bytes)),
        row("that over the bytes that were read", format!("{:.3}", o.origin_ratio)),
        row("slices between regions", gigabytes(o.crossed())),
    ];
    let after = vec![
        row("reads answered by the viewer's node", percent(o.node_share)),
        row("by the nodes of its region", percent(o.region_share)),
        row("by all nodes", percent(o.cluster_share)),
        row("streams that were cut by the loss", o.cut.to_string()),
        row("assets whose first dispenser moved", percent(o.moved_assets)),
        row("ranges whose home moved", percent(o.moved_homes)),
        row("largest load over the mean", format!("{:.3}", o.most_over_mean)),
        row("the same after the loss", format!("{:.3}", o.most_over_mean_after)),
        row("decisions a second", format!("{:.0}", o.decisions_per_second)),
        row("of assets not requested before", format!("{:.0}", o.first_decisions_per_second)),
    ];
    before.into_iter().chain(pairs).chain(after).collect()
}
