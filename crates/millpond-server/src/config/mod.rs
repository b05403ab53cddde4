//! Configuration: the settings of all parts, composed.
//!
//! Each part declares its settings ([`millpond_settings`]). Flags, environment and file are read into a [`Config`] of defaults
//! ([`mod@file`]), and the parts complete it ([`check`]). A flag wins over the environment (`MILLPOND_` and the flag's name in
//! capitals), the environment over the file, the file over the default. All errors are found before any is reported.

pub mod check;
#[cfg(test)]
mod documentation;
pub(crate) mod edit;
mod exclusive;
pub mod file;
mod found;
mod own;
mod place;
mod schedules;
mod show;
#[cfg(test)]
mod tests;

use crate::library::Titles;
use millpond_access::{AccessSettings, ClientLimitSettings, PublishSettings};
use millpond_connections::{proxies::ProxySettings, tls::TlsSettings};
use millpond_logging::{LogSettings, traces::TraceSettings};
use millpond_package::KeyAddress;
use millpond_place::PlaceSpec;
use millpond_settings::{
    ConfigError, ConfigErrors, Declaration, Host, Settings, Source, Sources, machine,
    value::{self, BadValue, Form},
};
use millpond_store::OriginOptions;
use std::sync::Arc;

pub use crate::{
    admin::{AdminAddress, AdminSettings, AdminToken},
    announce::{AnnounceSettings, AnnouncedName},
    cluster::ClusterSettings,
    failover::FailoverSettings,
    hooks::{HookSecret, HookSettings},
    http::{HttpSettings, Lifetimes, ManifestSettings},
    intercept::InterceptSettings,
    limits::LimitSettings,
    live::{ChannelConfig, LiveSettings},
    modules::ModuleSettings,
    recordings::RecordSettings,
    reload::ReloadSettings,
    rtmp::RtmpSettings,
    rtsp::RtspSettings,
    schedule::ScheduleSettings,
    srt::SrtSettings,
    storage::StorageSettings,
    upgrade::UpgradeSettings,
    webrtc::WebRtcSettings,
};
pub use check::{Effective, Inputs, Loaded, load};
pub use edit::EditError;
pub use own::OwnSettings;
pub use place::{GivenKey, LadderConfig, PLACE_SETTINGS, PlaceOptions, PlaceSetting};
pub use show::show;

/// Composes the configuration of parts, each of which has a heading and its settings.
macro_rules! compose {
    ($($heading:literal $field:ident: $part:ty,)*) => {
        /// Everything an operator decides, resolved.
        #[derive(Debug, Clone)]
        pub struct Config {
            /// Places of media. Empty: the built-in sample is served.
            pub places: Vec<PlaceConfig>,
            $(#[doc = $heading] pub $field: $part,)*
        }

        impl Config {
            /// The configuration without any setting.
            fn new(host: &Host<'_>) -> Self {
                Self { places: Vec::new(), $($field: <$part>::defaults(host),)* }
            }

            /// Declarations of all settings but the places, in the order of the documentation.
            pub fn settings() -> Vec<Declaration> {
                let mut all = Vec::new();
                $(all.extend(<$part>::LIST.iter().map(|setting| setting.declaration($heading)));)*
                all
            }

            /// Sets a setting; `None` where no part has one of that name.
            fn apply(&mut self, name: &str, text: &str) -> Option<Result<(), BadValue>> {
                $(if let Some(setting) = <$part>::find(name) {
                    return Some((setting.apply)(&mut self.$field, text));
                })*
                None
            }

            /// The live value of a setting as text.
            fn value(&self, name: &str) -> Option<String> {
                $(if let Some(setting) = <$part>::find(name) {
                    return (setting.show)(&self.$field);
                })*
                None
            }

            /// Takes the values of all settings that need a restart from the configuration that the server runs with.
            pub(crate) fn keep_fixed(&mut self, running: &Self) {
                $(self.$field.keep_fixed(&running.$field);)*
            }

            /// Lets each part complete its settings; returns all conflicts.
            fn complete(&mut self, sources: &Sources) -> Vec<ConfigError> {
                let mut errors = Vec::new();
                $(errors.extend(self.$field.complete(sources));)*
                errors
            }
        }
    };
}

compose! {
    "HTTP" http: HttpSettings,
    "Lifetimes of replies" lifetimes: Lifetimes,
    "Manifests" manifests: ManifestSettings,
    "Access" access: AccessSettings,
    "Limits of clients and tokens" client_limits: ClientLimitSettings,
    "Trusted proxies" proxies: ProxySettings,
    "Admin API" admin: AdminSettings,
    "Announcement on the local network" announce: AnnounceSettings,
    "RTSP" rtsp: RtspSettings,
    "RTMP" rtmp: RtmpSettings,
    "WebRTC" webrtc: WebRtcSettings,
    "SRT" srt: SrtSettings,
    "Interception" intercept: InterceptSettings,
    "Live sources" live: LiveSettings,
    "Publishing" publish: PublishSettings,
    "Modules" modules: ModuleSettings,
    "Failover" failover: FailoverSettings,
    "Schedules" schedule: ScheduleSettings,
    "Recordings" record: RecordSettings,
    "Events and hooks" hooks: HookSettings,
    "Storage and cache" storage: StorageSettings,
    "Log" log: LogSettings,
    "Traces" traces: TraceSettings,
    "TLS" tls: TlsSettings,
    "Cluster" cluster: ClusterSettings,
    "Connections and threads" limits: LimitSettings,
    "Reload" reload: ReloadSettings,
    "Upgrade" upgrade: UpgradeSettings,
}

impl Config {
    /// Whether slices of a place are cached on the disk.
    pub(crate) fn has_remote(&self) -> bool {
        self.places.iter().any(|place| place.spec.is_remote() || place.spec.has_titles() || place.is_striped())
    }

    /// The setting of a name; underscores stand for dashes.
    fn find(name: &str) -> Option<Declaration> {
        let name = name.replace('_', "-");
        Self::settings().into_iter().find(|setting| setting.name == name)
    }
}

/// Inputs of flags, environment and file besides the values of settings.
#[derive(Debug, Clone, Default)]
pub struct Given {
    /// Places, the last source's.
    pub places: Vec<PlaceOptions>,
    /// Where each setting that was given got its value.
    pub sources: Sources,
}

/// One place with its options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceConfig {
    /// Name and location.
    pub spec: PlaceSpec,
    /// How to talk to it.
    pub options: OriginOptions,
    /// The rule by which files of a folder are one title.
    pub titles: Titles,
    /// Address of the keys of its encrypted files, for HLS.
    pub key_address: Option<Arc<KeyAddress>>,
    /// Lifetimes of replies.
    pub lifetimes: Lifetimes,
    /// Settings of its manifests.
    pub manifests: ManifestSettings,
    /// Whether the place has a filter of its own; the server's filter holds otherwise.
    pub has_own_filter: bool,
    /// Who may play.
    pub access: AccessSettings,
    /// Settings of its live sources.
    pub live: LiveSettings,
    /// Ladders of its live streams.
    pub ladders: Vec<LadderConfig>,
    /// Where it stands.
    pub at: Stated,
}

/// Position of a place in the configuration, for messages. All are equal: a place that has moved in the file has not changed.
#[derive(Debug, Clone, Default)]
pub struct Stated(pub Source);

impl PartialEq for Stated {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Stated {}

impl PlaceConfig {
    /// Whether its objects may lie in units on several stores.
    pub(crate) fn is_striped(&self) -> bool {
        !self.options.striping.stores.is_empty()
    }

    /// Names the place in an error: `place "films": `, or nothing for one without a name.
    pub(crate) fn in_errors(&self) -> String {
        if self.spec.name.is_empty() { String::new() } else { format!("place {:?}: ", self.spec.name) }
    }
}
