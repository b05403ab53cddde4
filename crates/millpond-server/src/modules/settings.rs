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
    let (mut lines, mut bad) = (Vec::new(), Vec::new());
    let mut expected = String::new();
    for line in value::list(text) {
        match ModuleLine::parse(&line) {
            Ok(line) => lines.push(line),
            Err(error) => {
                expected = error.expected;
                bad.push(format!("{line:?}"));
            }
        }
    }
    if !bad.is_empty() {
        let are_none = if bad.len() == 1 { "is none" } else { "are none" };
        return Err(BadValue::new(format!("{expected} ({} {are_none})", bad.join(", "))));
    }
    if lines.len() > MOST {
        return Err(BadValue::new(format!("at most {MOST} modules")));
    }
    match lines.iter().enumerate().find(|(place, line)| lines[..*place].contains(line)) {
        Some((_, line)) => Err(BadValue::new(format!("each module once, and \"{line}\" stands here twice"))),
        None => Ok(lines),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bad_lines_are_named() {
        let named = |text: &str| lines(text).unwrap_err().expected;
        let one = named("cams/door tee to=live/x,cams/door");
        assert!(one.starts_with("PATH KIND") && one.ends_with("(\"cams/door\" is none)"), "{one}");
        let two = named("a,cams/door tee to=live/x,b c d");
        assert!(two.ends_with("(\"a\", \"b c d\" are none)"), "{two}");
    }
}
