//! Settings of the HTTP front end.

use crate::settings::{
    Host, Setting, Settings,
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
    /// Value of `Access-Control-Allow-Origin`; `None`: the header is not sent.
    pub cors_origin: Option<String>,
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
            cors_origin: Some("*".to_owned()),
        }
    }
}

const LIST: &[Setting<HttpSettings>] = &[
    Setting {
        name: "http",
        form: Form::Address,
        default: "0.0.0.0:8080",
        help: "Address of plain HTTP",
        apply: |http, text| value::address(text).map(|v| http.address = v),
        show: |http| Some(http.address.to_string()),
    },
    Setting {
        name: "https",
        form: Form::Address,
        default: "0.0.0.0:8443 with TLS on, else off",
        help: "Address of HTTPS",
        apply: |http, text| value::address(text).map(|v| http.https = Some(v)),
        show: |http| http.https.map(|address| address.to_string()),
    },
    Setting {
        name: "segment-duration",
        form: Form::Duration,
        default: "4s",
        help: "Target duration of media segments",
        apply: |http, text| value::duration_in(text, SEGMENT.0, SEGMENT.1).map(|v| http.segment_duration = v),
        show: |http| Some(show_duration(http.segment_duration)),
    },
    Setting {
        name: "cors-origin",
        form: Form::Text,
        default: "*",
        help: "Web origin whose pages may play; \"*\" allows all, \"off\" only this server's",
        apply: |http, text| cors_origin(text).map(|v| http.cors_origin = v),
        show: |http| http.cors_origin.clone(),
    },
];

/// An origin for a header field; none where the header is switched off.
fn cors_origin(text: &str) -> Result<Option<String>, BadValue> {
    match ::http::HeaderValue::from_str(text) {
        Ok(_) if matches!(text, "" | "off" | "none") => Ok(None),
        Ok(_) => Ok(Some(text.to_owned())),
        Err(_) => Err(BadValue::new("\"*\", an origin such as \"https://player.example\", or \"off\"")),
    }
}
