//! Settings of modules.

use super::ModuleLine;
use millpond_settings::{
    At, Host, Setting, Settings,
    value::{self, BadValue, Form},
};
use millpond_stream::{PUSH, PUSH_URL, shown_option};

/// The modules of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleSettings {
    /// One line for each module. No two are equal.
    pub lines: Vec<ModuleLine>,
    /// One line for each destination that a stream is pushed to: modules of the kind `push`.
    pub pushes: Vec<ModuleLine>,
}

impl ModuleSettings {
    /// All modules that are wanted.
    pub(crate) fn all(&self) -> impl Iterator<Item = &ModuleLine> {
        self.lines.iter().chain(&self.pushes)
    }
}

/// Most modules of a configuration.
const MOST: usize = 1000;

impl Settings for ModuleSettings {
    const LIST: &'static [Setting<Self>] = LIST;

    fn defaults(_: &Host<'_>) -> Self {
        Self { lines: Vec::new(), pushes: Vec::new() }
    }
}

const LIST: &[Setting<ModuleSettings>] = &[
    Setting {
        name: "modules",
        form: Form::List,
        default: "none",
        help: "Modules of channels and live streams, each as \"PATH KIND NAME=VALUE ...\". `millpond module kinds` lists kinds and options",
        applied: At::Reload,
        apply: |modules, text| lines(text, ModuleLine::parse).map(|v| modules.lines = v),
        show: |modules| shown(&modules.lines, ToString::to_string),
    },
    Setting {
        name: "push",
        form: Form::List,
        default: "none",
        help: "Other servers that streams are pushed to, each as \"PATH URL\". \"live/* URL\" is all streams of publishers below live, and {name} \
               in the URL what the star stands for",
        applied: At::Reload,
        apply: |modules, text| lines(text, push).map(|v| modules.pushes = v),
        show: |modules| {
            let url = |line: &ModuleLine| line.shown_options().map(|(_, url)| url).collect::<String>();
            shown(&modules.pushes, |line| format!("{} {}", line.stream, url(line)))
        },
    },
];

fn shown(lines: &[ModuleLine], text: impl Fn(&ModuleLine) -> String) -> Option<String> {
    (!lines.is_empty()).then(|| value::joined(lines.iter().map(text)))
}

/// Parses `live/cam srt://host:9000`.
fn push(text: &str) -> Result<ModuleLine, BadValue> {
    let bad = || BadValue::new("PATH URL, such as \"live/cam srt://10.0.0.7:9000\"");
    let (path, url) = text.split_once(char::is_whitespace).ok_or_else(bad)?;
    let (path, url) = (path.trim_matches('/'), url.trim());
    if path.is_empty() || url.contains(char::is_whitespace) || !url.contains("://") {
        return Err(bad());
    }
    ModuleLine::new(path, PUSH.kind.name, [(PUSH_URL.to_owned(), url.to_owned())]).checked()
}

fn lines(text: &str, parse: fn(&str) -> Result<ModuleLine, BadValue>) -> Result<Vec<ModuleLine>, BadValue> {
    let (mut lines, mut bad) = (Vec::new(), Vec::new());
    let mut expected = String::new();
    for line in value::list(text) {
        match parse(&line) {
            Ok(line) => lines.push(line),
            Err(error) => {
                expected = error.expected;
                bad.push(format!("{:?}", shown_option(&line)));
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
        let named = |text: &str| lines(text, ModuleLine::parse).unwrap_err().expected;
        let one = named("cams/door tee to=live/x,cams/door");
        assert!(one.starts_with("PATH KIND") && one.ends_with("(\"cams/door\" is none)"), "{one}");
        let two = named("a,cams/door tee to=live/x,b c d");
        assert!(two.ends_with("(\"a\", \"b c d\" are none)"), "{two}");
    }

    #[test]
    fn pushes_are_modules_with_a_url() {
        let list =
            lines("live/cam srt://h:9000?streamid=#!::r=a\\,m=publish, /live/* udp://10.0.0.7:5000", push).unwrap();
        assert_eq!(list[0].options.get("url"), Some("srt://h:9000?streamid=#!::r=a,m=publish"));
        assert_eq!((&*list[0].kind, &*list[1].stream), ("push", "live/*"));
        let settings = ModuleSettings { lines: Vec::new(), pushes: list };
        let shown = LIST[1].show;
        assert_eq!(shown(&settings).as_deref(), Some("live/cam srt://h:9000,live/* udp://10.0.0.7:5000"));
        let bad = lines("live/cam, live/cam key", push).unwrap_err().expected;
        assert!(bad.starts_with("PATH URL") && bad.ends_with("(\"live/cam\", \"live/cam key\" are none)"), "{bad}");
    }
}
