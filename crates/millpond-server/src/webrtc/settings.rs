//! Settings of WebRTC.

use millpond_settings::{
    At, Host, Setting, Settings,
    value::{self, BadValue, Form},
};
use std::net::{IpAddr, SocketAddr};

/// Settings of WebRTC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebRtcSettings {
    /// Address of the UDP port; `None` where WebRTC is off.
    pub address: Option<SocketAddr>,
    /// Address of the TCP port; `None` where peers have UDP alone.
    pub tcp: Option<SocketAddr>,
    /// Addresses of the ports that answers tell before those of the machine.
    pub hosts: Vec<IpAddr>,
    /// Whether viewers get sound as Opus that their player does not take as it is.
    pub opus: bool,
}

impl Settings for WebRtcSettings {
    const LIST: &'static [Setting<Self>] = LIST;

    fn defaults(_: &Host<'_>) -> Self {
        Self { address: None, tcp: None, hosts: Vec::new(), opus: true }
    }
}

const LIST: &[Setting<WebRtcSettings>] = &[
    Setting {
        name: "webrtc",
        form: Form::Address,
        default: "off",
        help: "Address of WebRTC, such as :8189: one UDP port for all viewers",
        applied: At::Restart(|new, old| new.address = old.address),
        apply: |webrtc, text| value::address(text).map(|v| webrtc.address = Some(v)),
        show: |webrtc| webrtc.address.map(|address| address.to_string()),
    },
    Setting {
        name: "webrtc-tcp",
        form: Form::Address,
        default: "off",
        help: "Address of a TCP port for viewers and publishers by WebRTC that UDP does not reach, such as :8189; it needs webrtc",
        applied: At::Restart(|new, old| new.tcp = old.tcp),
        apply: |webrtc, text| value::address(text).map(|v| webrtc.tcp = Some(v)),
        show: |webrtc| webrtc.tcp.map(|address| address.to_string()),
    },
    Setting {
        name: "webrtc-hosts",
        form: Form::List,
        default: "none",
        help: "IP addresses by which viewers reach the WebRTC port, where a router translates addresses. Viewers are told the machine's own \
               addresses too",
        applied: At::Restart(|new, old| new.hosts.clone_from(&old.hosts)),
        apply: |webrtc, text| hosts(text).map(|v| webrtc.hosts = v),
        show: |webrtc| {
            let hosts: Vec<String> = webrtc.hosts.iter().map(ToString::to_string).collect();
            (!hosts.is_empty()).then(|| hosts.join(", "))
        },
    },
    Setting {
        name: "webrtc-opus",
        form: Form::Switch,
        default: "true",
        help: "Transcodes AAC and PCM to Opus for viewers by WebRTC, once for all viewers of a stream. Without it they get no such sound",
        applied: At::Restart(|new, old| new.opus = old.opus),
        apply: |webrtc, text| value::switch(text).map(|v| webrtc.opus = v),
        show: |webrtc| Some(webrtc.opus.to_string()),
    },
];

fn hosts(text: &str) -> Result<Vec<IpAddr>, BadValue> {
    let host = |text: &String| {
        text.parse().map_err(|_| BadValue::new(format!("IP addresses, such as 203.0.113.7; found {text:?}")))
    };
    value::list(text).iter().map(host).collect()
}
