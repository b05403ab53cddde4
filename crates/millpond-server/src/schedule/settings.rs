//! Settings of schedules.

use super::ScheduleLine;
use millpond_settings::{
    At, Host, Setting, Settings,
    value::{self, BadValue, Form},
};

/// Streams that play assets and other streams at given times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScheduleSettings {
    /// A line for each stream, each stream once.
    pub lines: Vec<ScheduleLine>,
}

/// Most streams.
const MOST: usize = 1000;

impl Settings for ScheduleSettings {
    const LIST: &'static [Setting<Self>] = LIST;

    fn defaults(_: &Host<'_>) -> Self {
        Self::default()
    }
}

const LIST: &[Setting<ScheduleSettings>] = &[Setting {
    name: "schedule",
    form: Form::List,
    default: "none",
    help: "Streams that play assets and other streams at given times, each as \"PATH=FILE\". The path is in a place of publishers, and the \
           file has the entries",
    applied: At::Reload,
    apply: |schedule, text| lines(text).map(|v| schedule.lines = v),
    show: |schedule| {
        (!schedule.lines.is_empty()).then(|| value::joined(schedule.lines.iter().map(ToString::to_string)))
    },
}];

fn lines(text: &str) -> Result<Vec<ScheduleLine>, BadValue> {
    let lines: Vec<_> = value::list(text).iter().map(|line| ScheduleLine::parse(line)).collect::<Result<_, _>>()?;
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
    fn each_stream_has_one_file() {
        let shown: Vec<_> = lines("/live/a = a.toml,live/b=b.toml").unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["live/a=a.toml", "live/b=b.toml"]);
        for (text, words) in [
            ("live/a", "a path and a file"),
            ("live/a=", "a path and a file"),
            ("live/a=a.toml,live/a=b.toml", "each stream once, and live/a stands here twice"),
        ] {
            assert!(lines(text).unwrap_err().expected.starts_with(words), "{text}");
        }
    }
}
