//! Findings of an examination.

use serde::Serialize;
use std::fmt;

/// Weight of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Nothing to do.
    Fine,
    /// Works, but worse than it could.
    Warning,
    /// Does not work.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Fine => "ok",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// One finding of an examination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Its weight.
    pub severity: Severity,
    /// The area that it is about, such as `ports`, or the name of a place.
    pub area: String,
    /// The finding, in one sentence.
    pub text: String,
    /// The remedy, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

impl Finding {
    pub(super) fn fine(area: &str, text: String) -> Self {
        Self { severity: Severity::Fine, area: area.to_owned(), text, advice: None }
    }

    pub(super) fn warning(area: &str, text: String, advice: &str) -> Self {
        Self { severity: Severity::Warning, area: area.to_owned(), text, advice: Some(advice.to_owned()) }
    }

    pub(super) fn error(area: &str, text: String, advice: &str) -> Self {
        Self { severity: Severity::Error, area: area.to_owned(), text, advice: Some(advice.to_owned()) }
    }
}
