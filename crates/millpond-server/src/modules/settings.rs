//! Settings of modules.

use super::ModuleLine;
use millpond_settings::{
    At, Host, Setting, Settings,
    value::{self, BadValue, Form},
};

/// The modules of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleSettings {
    /// One line for each module. No two are equal.
    pub lines: Vec<ModuleLine>,
}

/// Most modules of a configuration.
const MOST: usize = 1000;

impl Settings for ModuleSettings {
    const LIST: &'static [Setting<Self>] = LIST;

    fn defaults(_: &Host<'_>) -> Self {
        Self { lines: Vec::new() }
    }
}

const LIST: &[Setting<ModuleSettings>] = &[Setting {
    name: "modules",
    form: Form::List,
    default: "none",
    help: "Modules of channels and live streams, each as \"PATH KIND NAME=VALUE ...\". `millpond module kinds` lists kinds and options",
    applied: At::Reload,
    apply: |modules, text| lines(text).map(|v| modules.lines = v),
    show: |modules| {
        let lines: Vec<_> = modules.lines.iter().map(ToString::to_string).collect();
        (!lines.is_empty()).then(|| lines.join(","))
    },
}];

fn lines(text: &str) -> Result<Vec<ModuleLine>, BadValue> {
    let lines = value::list(text);
    let lines: Vec<_> = lines.iter().map(|line| ModuleLine::parse(line)).collect::<Result<_, _>>()?;
    if lines.len() > MOST {
        return Err(BadValue::new(format!("at most {MOST} modules")));
    }
    match lines.iter().enumerate().find(|(place, line)| lines[..*place].contains(line)) {
        Some((_, line)) => Err(BadValue::new(format!("each module once, and \"{line}\" stands here twice"))),
        None => Ok(lines),
    }
}
