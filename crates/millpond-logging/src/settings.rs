//! Settings of the log and of the access log.

use super::{LogFormat, filter};
use millpond_settings::{
    At, Host, Setting, Settings,
    value::{self, BadValue, Form},
};
use std::path::PathBuf;

/// Settings of the log and of the access log.
#[derive(Debug, Clone)]
pub struct LogSettings {
    /// Level filter.
    pub filter: String,
    /// Form of the lines.
    pub format: LogFormat,
    /// Destination of the lines of requests and sessions.
    pub access: AccessLog,
    /// Form of the lines of requests and sessions.
    pub access_format: AccessFormat,
}

/// Destination of the lines of requests and sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessLog {
    /// There are none.
    Off,
    /// Standard error, where the log is.
    Stderr,
    /// Standard output.
    Stdout,
    /// A file, which may be renamed.
    File(PathBuf),
}

impl AccessLog {
    /// Tells whether requests and sessions have lines.
    pub fn is_on(&self) -> bool {
        *self != Self::Off
    }
}

/// Form of the lines of requests and sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AccessFormat {
    /// Lines of the log on standard error, JSON elsewhere.
    #[default]
    Auto,
    /// One JSON object a line, with all fields.
    Json,
    /// Common Log Format.
    Common,
    /// Common Log Format with referrer and user agent.
    Combined,
}

impl AccessFormat {
    const ALL: [Self; 4] = [Self::Auto, Self::Json, Self::Common, Self::Combined];

    /// Returns the name in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Json => "json",
            Self::Common => "clf",
            Self::Combined => "combined",
        }
    }
}

const LOG_FORMATS: Form = Form::Choice(&["auto", "text", "json"]);
const ACCESS_FORMATS: Form = Form::Choice(&["auto", "json", "clf", "combined"]);

impl Settings for LogSettings {
    const LIST: &'static [Setting<Self>] = LIST;

    fn defaults(_: &Host<'_>) -> Self {
        Self {
            filter: "info".to_owned(),
            format: LogFormat::default(),
            access: AccessLog::Stderr,
            access_format: AccessFormat::default(),
        }
    }
}

const LIST: &[Setting<LogSettings>] = &[
    Setting {
        name: "log",
        form: Form::Text,
        default: "info",
        help: "Level of the log: error, warn, info, debug, trace, or a filter by target",
        applied: At::Reload,
        apply: |log, text| log_filter(text).map(|v| log.filter = v),
        show: |log| Some(log.filter.clone()),
    },
    Setting {
        name: "log-format",
        form: LOG_FORMATS,
        default: "auto: text on a terminal, JSON elsewhere",
        help: "Form of the log's lines: auto, text or json",
        applied: At::Restart(|new, old| new.format = old.format),
        apply: |log, text| log_format(text).map(|v| log.format = v),
        show: |log| Some(log.format.name().to_owned()),
    },
    Setting {
        name: "access-log",
        form: Form::Output,
        default: "stderr",
        help: "Output of the access log, which has a line for each request and each session: off, stderr, - for \
               standard output, or a file",
        applied: At::Restart(|new, old| new.access.clone_from(&old.access)),
        apply: |log, text| access_log(text).map(|v| log.access = v),
        show: |log| {
            Some(match &log.access {
                AccessLog::Off => "off".to_owned(),
                AccessLog::Stderr => "stderr".to_owned(),
                AccessLog::Stdout => "-".to_owned(),
                AccessLog::File(path) => path.display().to_string(),
            })
        },
    },
    Setting {
        name: "access-log-format",
        form: ACCESS_FORMATS,
        default: "auto: lines of the log on stderr, JSON elsewhere",
        help: "Form of the access log's lines: auto, json, clf (Common Log Format) or combined (with referrer and agent)",
        applied: At::Restart(|new, old| new.access_format = old.access_format),
        apply: |log, text| access_format(text).map(|v| log.access_format = v),
        show: |log| Some(log.access_format.name().to_owned()),
    },
];

fn log_format(text: &str) -> Result<LogFormat, BadValue> {
    [LogFormat::Auto, LogFormat::Text, LogFormat::Json]
        .into_iter()
        .find(|format| format.name() == text)
        .ok_or_else(|| LOG_FORMATS.into())
}

fn access_format(text: &str) -> Result<AccessFormat, BadValue> {
    AccessFormat::ALL.into_iter().find(|format| format.name() == text).ok_or_else(|| ACCESS_FORMATS.into())
}

/// A file has a slash or a dot in its path, so that a mistyped word makes none.
fn access_log(text: &str) -> Result<AccessLog, BadValue> {
    match (text, value::switch(text)) {
        ("stderr", _) | (_, Ok(true)) => Ok(AccessLog::Stderr),
        (_, Ok(false)) => Ok(AccessLog::Off),
        ("-", _) => Ok(AccessLog::Stdout),
        (path, _) if path.contains(['/', '.']) => Ok(AccessLog::File(PathBuf::from(path))),
        _ => Err(Form::Output.into()),
    }
}

fn log_filter(text: &str) -> Result<String, BadValue> {
    filter::check(text).map_err(BadValue::from)?;
    // The library's parser has the last word.
    filter::parse_filter(text).map_err(|_| BadValue::new("a filter such as \"millpond_store=debug,info\""))?;
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_of_the_access_log() {
        for (text, is) in [
            ("true", AccessLog::Stderr),
            ("stderr", AccessLog::Stderr),
            ("off", AccessLog::Off),
            ("false", AccessLog::Off),
            ("-", AccessLog::Stdout),
            ("/var/log/a", AccessLog::File("/var/log/a".into())),
            ("access.log", AccessLog::File("access.log".into())),
        ] {
            assert_eq!(access_log(text).unwrap(), is, "{text}");
        }
        assert!(access_log("fals").unwrap_err().expected.contains("off, stderr, -"));
    }
}
