//! `millpond doctor`: defects and slow parts of this machine and its origins, with remedies.

use super::{Outcome, runtime, serve};
use clap::{Arg, ArgAction, ArgMatches, Command};
use millpond_server::{
    config,
    doctor::{self, Finding, Probe, Severity},
};
use millpond_settings::value;
use millpond_terminal::{out, say};
use serde_json::json;

pub(crate) fn command() -> Command {
    serve::settings(Command::new("doctor").about(
        "Examines this machine and the origins of a configuration: limits, ports, disks, the clock, reachability and \
         speed",
    ))
    .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Prints JSON"))
    .arg(
        Arg::new("object")
            .long("object")
            .value_name("PATH")
            .help("File to read from each origin, as its URL has it [default: the first media file in the listing]"),
    )
    .arg(
        Arg::new("read")
            .long("read")
            .value_name("SIZE")
            .default_value("4MiB")
            .help("Highest number of bytes to read from each origin"),
    )
    .after_help("The exit code is 0 without errors; warnings are no errors.")
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    millpond_settings::machine::raise_open_files();
    let loaded = config::load(&serve::inputs(matches))?;
    let text = |name: &str| matches.get_one::<String>(name).cloned();
    let read = text("read").unwrap_or_default();
    let bytes = value::size(&read).map_err(|bad| format!("--read {read}: expected {}", bad.expected))?;
    let probe = Probe { object: text("object"), bytes };
    let findings = runtime()?.block_on(doctor::examine(&loaded.config, &probe));
    let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    if matches.get_flag("json") {
        out::json(&json!({ "errors": errors, "warnings": warnings, "findings": findings }).to_string())?;
    } else {
        findings.iter().try_for_each(show)?;
    }
    let summary = format!("{errors} errors, {warnings} warnings");
    match errors {
        0 if matches.get_flag("json") => Ok(()),
        0 => say!("{summary}"),
        _ => Err(summary.into()),
    }
}

fn show(finding: &Finding) -> Outcome {
    let colour = match finding.severity {
        Severity::Fine => out::Colour::Green,
        Severity::Warning => out::Colour::Yellow,
        Severity::Error => out::Colour::Red,
    };
    let severity = format!("{:<7}", finding.severity);
    out::coloured(colour, &severity, &format!("  {:<8} {}", finding.area, finding.text))?;
    match &finding.advice {
        Some(advice) => say!("                   -> {advice}"),
        None => Ok(()),
    }
}
