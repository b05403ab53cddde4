//! Settings of the announcement on the local network.

use super::name::AnnouncedName;
use millpond_settings::{At, Host, Setting, Settings, value::Form};

/// The name by which devices of the local network find the page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnnounceSettings {
    /// The page's name; `None` announces nothing.
    pub name: Option<AnnouncedName>,
}

impl Settings for AnnounceSettings {
    const LIST: &'static [Setting<Self>] = LIST;

    fn defaults(_: &Host<'_>) -> Self {
        Self::default()
    }
}

const LIST: &[Setting<AnnounceSettings>] = &[Setting {
    name: "mdns-name",
    form: Form::Text,
    default: "none: nothing is announced",
    help: "Name by which devices of the local network find the page (multicast DNS). `Films` is also http://films.local:8080/",
    applied: At::Reload,
    apply: |announce, text| AnnouncedName::new(text).map(|name| announce.name = Some(name)),
    show: |announce| announce.name.as_ref().map(|name| name.as_str().to_owned()),
}];
