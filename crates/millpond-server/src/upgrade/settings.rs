//! Settings of upgrades.

use millpond_settings::{
    At, Host, Setting, Settings,
    value::{self, Form, show_duration},
};
use std::time::Duration;

/// Settings of upgrades.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpgradeSettings {
    /// Time that connections of the old process have to end.
    pub drain: Duration,
}

/// Bounds of `drain`: a process that stays for days keeps its memory.
const DRAIN: (Duration, Duration) = (Duration::ZERO, Duration::from_secs(24 * 3600));

impl Settings for UpgradeSettings {
    const LIST: &'static [Setting<Self>] = LIST;

    fn defaults(_: &Host<'_>) -> Self {
        Self { drain: Duration::from_secs(600) }
    }
}

const LIST: &[Setting<UpgradeSettings>] = &[Setting {
    name: "drain",
    form: Form::Duration,
    default: "600s",
    help: "Time for connections and sessions to end by themselves after `millpond upgrade` has started a new process. \
           Then the old process closes them",
    applied: At::Reload,
    apply: |upgrade, text| value::duration_in(text, DRAIN.0, DRAIN.1).map(|v| upgrade.drain = v),
    show: |upgrade| Some(show_duration(upgrade.drain)),
}];
