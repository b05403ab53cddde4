//! Settings of the log.

use super::{LogFormat, parse_filter};
use crate::settings::{
    Host, Setting, Settings,
    value::{self, BadValue, Form},
};

/// Settings of the log.
#[derive(Debug, Clone)]
pub struct LogSettings {
    /// Level filter.
    pub filter: String,
    /// Form of the lines.
    pub format: LogFormat,
    /// Whether each request is logged.
    pub access: bool,
}

const LOG_FORMATS: Form = Form::Choice(&["auto", "text", "json"]);

impl Settings for LogSettings {
    const LIST: &'static [Setting<Self>] = LIST;

    fn defaults(_: &Host<'_>) -> Self {
        Self { filter: "info".to_owned(), format: LogFormat::default(), access: true }
    }
}

const LIST: &[Setting<LogSettings>] = &[
    Setting {
        name: "log",
        form: Form::Text,
        default: "info",
        help: "Level of the log: error, warn, info, debug, trace, or a filter by target",
        apply: |log, text| log_filter(text).map(|v| log.filter = v),
        show: |log| Some(log.filter.clone()),
    },
    Setting {
        name: "log-format",
        form: LOG_FORMATS,
        default: "auto: text on a terminal, JSON elsewhere",
        help: "Form of the log's lines: auto, text or json",
        apply: |log, text| log_format(text).map(|v| log.format = v),
        show: |log| Some(log.format.name().to_owned()),
    },
    Setting {
        name: "access-log",
        form: Form::Switch,
        default: "true",
        help: "Log each request and each RTSP session",
        apply: |log, text| value::switch(text).map(|v| log.access = v),
        show: |log| Some(log.access.to_string()),
    },
];

fn log_format(text: &str) -> Result<LogFormat, BadValue> {
    [LogFormat::Auto, LogFormat::Text, LogFormat::Json]
        .into_iter()
        .find(|format| format.name() == text)
        .ok_or_else(|| LOG_FORMATS.into())
}

fn log_filter(text: &str) -> Result<String, BadValue> {
    parse_filter(text).map_err(|_| {
        BadValue::new("a level (error, warn, info, debug, trace) or filter such as \"millpond_store=debug,info\"")
    })?;
    Ok(text.to_owned())
}
