//! Settings of the HTTP front end.

use millpond_settings::{
    At, ConfigError, Host, Setting, Settings, Sources,
    value::{self, BadValue, Form, show_duration},
};
use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

/// Settings of the HTTP front end.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    /// Address of plain HTTP.
    pub address: SocketAddr,
    /// Address of HTTPS, where TLS is on.
    pub https: Option<SocketAddr>,
    /// Target duration of media segments.
    pub segment_duration: Duration,
    /// Use of thumbnails.
    pub thumbnails: Thumbnails,
    /// Folders that a search of the page reads for each place, at most.
    pub search_folders: usize,
}

/// Use of thumbnails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thumbnails {
    /// There are none.
    Off,
    /// They are made for clients that ask for them.
    On,
    /// Manifests list them too.
    Listed,
}

impl Thumbnails {
    const NAMES: [&'static str; 3] = ["off", "on", "listed"];

    fn named(text: &str) -> Result<Self, BadValue> {
        let place = Self::NAMES.iter().position(|name| *name == text);
        let known = place.and_then(|place| [Self::Off, Self::On, Self::Listed].get(place).copied());
        known.ok_or_else(|| BadValue::from(Form::Choice(&Self::NAMES)))
    }
}

/// Bounds of `segment-duration`: below them requests outnumber what they carry, above them players' buffers.
const SEGMENT: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(60));

impl Settings for HttpSettings {
    const LIST: &'static [Setting<Self>] = LIST;

    fn defaults(_: &Host<'_>) -> Self {
        Self {
            address: SocketAddr::from((Ipv4Addr::UNSPECIFIED, 8080)),
            https: None,
            segment_duration: Duration::from_secs(4),
            thumbnails: if cfg!(feature = "pictures") { Thumbnails::On } else { Thumbnails::Off },
            search_folders: 10_000,
        }
    }

    fn complete(&mut self, sources: &Sources) -> Vec<ConfigError> {
        let is_refused = self.thumbnails != Thumbnails::Off && !cfg!(feature = "pictures");
        is_refused.then(|| sources.absent("thumbnails", "pictures")).into_iter().collect()
    }
}

const LIST: &[Setting<HttpSettings>] = &[
    Setting {
        name: "http",
        form: Form::Address,
        default: "0.0.0.0:8080",
        help: "Address of plain HTTP",
        applied: At::Reload,
        apply: |http, text| value::address(text).map(|v| http.address = v),
        show: |http| Some(http.address.to_string()),
    },
    Setting {
        name: "https",
        form: Form::Address,
        default: "0.0.0.0:8443 with TLS on, else off",
        help: "Address of HTTPS",
        applied: At::Reload,
        apply: |http, text| value::address(text).map(|v| http.https = Some(v)),
        show: |http| http.https.map(|address| address.to_string()),
    },
    Setting {
        name: "segment-duration",
        form: Form::Duration,
        default: "4s",
        help: "Target duration of media segments",
        applied: At::Restart(|new, old| new.segment_duration = old.segment_duration),
        apply: |http, text| value::duration_in(text, SEGMENT.0, SEGMENT.1).map(|v| http.segment_duration = v),
        show: |http| Some(show_duration(http.segment_duration)),
    },
    Setting {
        name: "thumbnails",
        form: Form::Choice(&Thumbnails::NAMES),
        default: "on",
        help: "JPEG thumbnails of H.264 video: \"on\" makes them on request; \"listed\" also lists them in HLS and \
               DASH",
        applied: At::Restart(|new, old| new.thumbnails = old.thumbnails),
        apply: |http, text| Thumbnails::named(text).map(|v| http.thumbnails = v),
        show: |http| Thumbnails::NAMES.get(http.thumbnails as usize).map(|name| (*name).to_owned()),
    },
    Setting {
        name: "search-folders",
        form: Form::Count,
        default: "10000",
        help: "Highest number of folders that the page's search reads in each place. With 0 the search finds live \
               streams only",
        applied: At::Reload,
        apply: |http, text| value::count(text, 0).map(|v| http.search_folders = v),
        show: |http| Some(http.search_folders.to_string()),
    },
];
