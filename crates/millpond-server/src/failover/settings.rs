//! Settings of failovers.

use super::FailoverLine;
use millpond_settings::{
    At, Host, Setting, Settings,
    value::{self, BadValue, Form, show_duration},
};
use std::time::Duration;

/// Streams that take the frames of the first of their inputs that is alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailoverSettings {
    /// A line for each stream, each stream once.
    pub lines: Vec<FailoverLine>,
    /// Time for which a preferred input must be alive before it plays again.
    pub back: Duration,
}

/// Most streams.
const MOST: usize = 1000;
/// Longest time until a preferred input plays again.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

impl Settings for FailoverSettings {
    const LIST: &'static [Setting<Self>] = LIST;

    fn defaults(_: &Host<'_>) -> Self {
        Self { lines: Vec::new(), back: Duration::from_secs(10) }
    }
}

const LIST: &[Setting<FailoverSettings>] = &[
    Setting {
        name: "failover",
        form: Form::List,
        default: "none",
        help: "Streams that take the frames of the first input that is alive, each as \"PATH=INPUT INPUT ...\". The path is in a place of \
               publishers. Inputs are live streams and channels; an asset at the end is a slate",
        applied: At::Reload,
        apply: |failover, text| lines(text).map(|v| failover.lines = v),
        show: |failover| {
            (!failover.lines.is_empty()).then(|| value::joined(failover.lines.iter().map(ToString::to_string)))
        },
    },
    Setting {
        name: "failover-back",
        form: Form::Duration,
        default: "10s",
        help: "Time for which a preferred input of a failover must be alive before it plays again",
        applied: At::Reload,
        apply: |failover, text| value::duration_in(text, Duration::ZERO, LONGEST).map(|v| failover.back = v),
        show: |failover| Some(show_duration(failover.back)),
    },
];

fn lines(text: &str) -> Result<Vec<FailoverLine>, BadValue> {
    let lines: Vec<_> = value::list(text).iter().map(|line| FailoverLine::parse(line)).collect::<Result<_, _>>()?;
    if lines.len() > MOST {
        return Err(BadValue::new(format!("at most {MOST} streams")));
    }
    match lines.iter().enumerate().find(|(place, line)| lines[..*place].iter().any(|other| other.to == line.to)) {
        Some((_, line)) => Err(BadValue::new(format!("each stream once, and {} stands here twice", line.to))),
        None => Ok(lines),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stream_has_one_line() {
        let shown: Vec<_> = lines("a/x=b/1 b/2, a/y=b/1 b/2").unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["a/x=b/1 b/2", "a/y=b/1 b/2"]);
        assert_eq!(lines("a/x=b/1 b/2,a/x=c d").unwrap_err().expected, "each stream once, and a/x stands here twice");
    }
}
