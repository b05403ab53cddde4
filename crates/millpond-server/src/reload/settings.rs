//! Settings of reloads.

use millpond_settings::{
    At, Host, Setting, Settings,
    value::{self, Form},
};

/// Settings of reloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReloadSettings {
    /// Whether the configuration file is loaded again when it changes.
    pub watch: bool,
}

impl Settings for ReloadSettings {
    const LIST: &'static [Setting<Self>] = LIST;

    fn defaults(_: &Host<'_>) -> Self {
        Self { watch: false }
    }
}

const LIST: &[Setting<ReloadSettings>] = &[Setting {
    name: "config-watch",
    form: Form::Switch,
    default: "false",
    help: "Reload the configuration file when it changes. SIGHUP and `millpond reload` reload it in any case",
    applied: At::Reload,
    apply: |reload, text| value::switch(text).map(|v| reload.watch = v),
    show: |reload| Some(reload.watch.to_string()),
}];
