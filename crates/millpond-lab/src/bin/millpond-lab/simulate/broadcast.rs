//! `millpond-lab simulate broadcast`: streams that a title costs by unicast, interval caching and periodic broadcast.

use super::{Done, lists, write_json};
use clap::{Arg, ArgMatches, Command, value_parser};
use millpond_lab::simulate::{Axis, BroadcastLoad, BroadcastRow, BroadcastSetting, MOST_PHASES, Plot, broadcast};
use millpond_settings::value;
use millpond_terminal::say;
use std::{path::Path, time::Duration};

pub(super) fn command() -> Command {
    let option = |name: &'static str, value: &'static str, default: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).default_value(default).help(help)
    };
    Command::new("broadcast")
        .about("Simulates periodic broadcast with patches, beside unicast and interval caching")
        .long_about(
            "Simulates viewers of one title that arrive at random. Prints the streams that the origin and the network \
             carry: by unicast, with interval caching, and with a channel that plays the title in phases. With lists \
             of values, each combination is a run. docs/measured/broadcast.md has the model.",
        )
        .arg(option("viewers", "NUMBERS", "1,10,50,100,200,500", "Mean numbers of viewers at a time"))
        .arg(option("phases", "NUMBERS", "4,12", "Numbers of phases"))
        .arg(option("title", "TIME", "2h", "Duration of the title"))
        .arg(option("window", "TIME", "10s", "Caching window of interval caching (rtsp-window)"))
        .arg(option("speed", "FACTOR", "2", "Speed of patches to viewers by unicast").value_parser(value_parser!(f64)))
        .arg(option("seed", "NUMBER", "1", "Seed of arrivals").value_parser(value_parser!(u64)))
        .arg(Arg::new("json").long("json").value_name("FILE").help("Writes all figures as JSON; - for standard output"))
        .arg(Arg::new("plot").long("plot").value_name("FOLDER").help("Writes a plot for each number of phases, as SVG"))
}

/// A run, and its results.
struct Run {
    viewers: usize,
    phases: usize,
    row: BroadcastRow,
}

pub(super) fn run_command(matches: &ArgMatches) -> Done {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str).unwrap_or_default();
    let time = |name: &str| {
        value::duration(text(name)).map_err(|error| format!("--{name} {}: expected {}", text(name), error.expected))
    };
    let (title, window) = (time("title")?, time("window")?);
    let speed = matches.get_one::<f64>("speed").copied().unwrap_or(2.0);
    if !(speed > 1.0 && speed.is_finite()) {
        return Err(format!("--speed {speed}: expected above 1").into());
    }
    let seed = matches.get_one::<u64>("seed").copied().unwrap_or(1);
    let viewers = lists::numbers(matches, "viewers", 1..=100_000)?;
    let phases = lists::numbers(matches, "phases", 1..=usize::from(MOST_PHASES))?;
    let quiet = text("json") == "-";
    if !quiet {
        say!("streams at the rate of the title: mean (peak)")?;
        say!(
            "phases viewers  {:>15} {:>15} {:>13} {:>15} {:>15}  held",
            "unicast",
            "intervals",
            "phases",
            "patches",
            "unicast patched"
        )?;
    }
    let mut runs = Vec::new();
    for &phases in &phases {
        for &viewers in &viewers {
            let setting =
                BroadcastSetting { phases: phases as u16, title, window, speed, viewers: viewers as u32, seed };
            let run = Run { viewers, phases, row: broadcast(&setting).ok_or("--title: expected above 0s")? };
            if !quiet {
                print(&run)?;
            }
            runs.push(run);
        }
    }
    if let Some(folder) = matches.get_one::<String>("plot") {
        for &phases in &phases {
            plot(Path::new(folder), phases, title, &runs)?;
        }
    }
    let all: Vec<_> = runs.iter().map(json).collect();
    write_json(matches, &serde_json::to_string_pretty(&all)?)
}

fn print(run: &Run) -> Done {
    let Run { viewers, phases, row } = run;
    let BroadcastRow { watching, intervals, patches, unicast, held, .. } = row;
    let both = |load: &BroadcastLoad| format!("{:.1} ({:.0})", load.mean, load.peak);
    say!(
        "{phases:>6} {viewers:>7}  {:>15} {:>15} {:>13.0} {:>15} {:>15}  {held:.0} s",
        both(watching),
        both(intervals),
        row.phases,
        both(patches),
        both(unicast)
    )?;
    Ok(())
}

fn json(run: &Run) -> serde_json::Value {
    serde_json::json!({ "viewers": run.viewers, "phases": run.phases, "streams": run.row })
}

/// Writes the plot of one number of phases.
fn plot(folder: &Path, phases: usize, title: Duration, runs: &[Run]) -> Done {
    let line = |name: &str, of: &dyn Fn(&BroadcastRow) -> f64| {
        let runs = runs.iter().filter(|run| run.phases == phases);
        (name.to_owned(), runs.map(|run| (run.viewers as f64, of(&run.row))).collect())
    };
    let lines = vec![
        line("unicast: origin, network", &|row| row.watching.mean),
        line("interval caching: origin", &|row| row.intervals.mean),
        line("phases: origin", &|row| row.phases),
        line("phases, multicast: network", &|row| row.phases + row.patches.mean),
        line("phases, unicast: network", &|row| row.unicast.mean),
    ];
    let title = format!("A title of {} in {phases} phases", value::show_duration(title));
    let (x, y) = ("viewers at a time".to_owned(), "streams".to_owned());
    let path = folder.join(format!("broadcast-{phases}.svg"));
    let svg = Plot { title, x, across: Axis::Numbers, y, lines }.svg();
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&path, svg))
        .map_err(|e| format!("{}: {e}", path.display()))?;
    say!("{}", path.display())?;
    Ok(())
}
