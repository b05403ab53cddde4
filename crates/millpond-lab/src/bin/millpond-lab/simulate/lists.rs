//! Lists of values, of which each combination is a run.

use clap::ArgMatches;
use millpond_cluster::AssignmentName;
use millpond_settings::value;
use std::{error::Error, ops::RangeInclusive};

/// The values of a list, each read by `read`.
pub(super) fn of<T>(
    matches: &ArgMatches,
    name: &str,
    expected: &str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, Box<dyn Error>> {
    let text = matches.get_one::<String>(name).map(String::as_str).unwrap_or_default();
    let one = |text: &String| read(text).ok_or_else(|| format!("--{name} {text}: expected {expected}"));
    Ok(value::list(text).iter().map(one).collect::<Result<_, _>>()?)
}

/// The whole numbers of a list.
pub(super) fn numbers(
    matches: &ArgMatches,
    name: &str,
    range: RangeInclusive<usize>,
) -> Result<Vec<usize>, Box<dyn Error>> {
    let expected = format!("{} to {}", range.start(), range.end());
    of(matches, name, &expected, |text| text.parse().ok().filter(|number| range.contains(number)))
}

/// The rules of `--assignment`.
pub(super) fn assignments(matches: &ArgMatches) -> Result<Vec<AssignmentName>, Box<dyn Error>> {
    of(matches, "assignment", "sosd or rr", |text| text.parse().ok())
}
