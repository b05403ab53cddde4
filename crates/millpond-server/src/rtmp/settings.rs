//! Settings of RTMP.

use millpond_settings::{
    At, Host, Setting, Settings,
    value::{self, Form},
};
use std::net::SocketAddr;

/// Settings of RTMP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtmpSettings {
    /// Address of RTMP; `None` where it is off.
    pub address: Option<SocketAddr>,
    /// Address of RTMP over TLS; `None` where it is off.
    pub rtmps: Option<SocketAddr>,
}

impl Settings for RtmpSettings {
    const LIST: &'static [Setting<Self>] = LIST;

    fn defaults(_: &Host<'_>) -> Self {
        Self { address: None, rtmps: None }
    }
}

const LIST: &[Setting<RtmpSettings>] = &[
    Setting {
        name: "rtmp",
        form: Form::Address,
        default: "off",
        help: "Address of RTMP, for publishers and viewers, such as :1935",
        applied: At::Reload,
        apply: |rtmp, text| value::address(text).map(|v| rtmp.address = Some(v)),
        show: |rtmp| rtmp.address.map(|address| address.to_string()),
    },
    Setting {
        name: "rtmps",
        form: Form::Address,
        default: "off",
        help: "Address of RTMP over TLS, for publishers and viewers, such as :1936",
        applied: At::Reload,
        apply: |rtmp, text| value::address(text).map(|v| rtmp.rtmps = Some(v)),
        show: |rtmp| rtmp.rtmps.map(|address| address.to_string()),
    },
];
