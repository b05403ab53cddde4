//! Settings of interception.

use super::groups::ServerGroups;
use millpond_settings::{
    At, ConfigError, Host, Network, Setting, Settings, Sources,
    value::{self, BadValue, Form, show_duration},
};
use std::{net::SocketAddr, time::Duration};

/// Bounds of `intercept-memory`.
const MEMORY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(24 * 3600));

/// Settings of interception.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterceptSettings {
    /// Address of the listener; `None` where nothing is intercepted.
    pub address: Option<SocketAddr>,
    /// Networks of the servers whose connections are taken.
    pub networks: Vec<Network>,
    /// Groups of servers in those networks that have the same content.
    pub groups: ServerGroups,
    /// Port of RTSP on those servers.
    pub rtsp_port: u16,
    /// Whether servers see the client's address on connections that are passed on.
    pub keeps_client: bool,
    /// Mark of outgoing connections (socket(7), `SO_MARK`); `None` sets none.
    pub mark: Option<u32>,
    /// Longest silence of a connection that is passed on.
    pub idle: Duration,
    /// Highest number of connections of one client.
    pub per_client: usize,
    /// Whether clients of RTSP share the live streams of servers.
    pub shares_rtsp: bool,
    /// Time for which a server without RTSP, and a path that it doesn't have, is remembered.
    pub memory: Duration,
}

impl Settings for InterceptSettings {
    const LIST: &'static [Setting<Self>] = LIST;

    fn defaults(host: &Host<'_>) -> Self {
        Self {
            address: None,
            networks: Vec::new(),
            groups: ServerGroups::default(),
            rtsp_port: 554,
            keeps_client: true,
            mark: None,
            idle: Duration::from_secs(300),
            per_client: (host.machine.default_connections() / 2).max(1),
            shares_rtsp: false,
            memory: Duration::from_secs(60),
        }
    }

    fn complete(&mut self, sources: &Sources) -> Vec<ConfigError> {
        if self.address.is_some() && !cfg!(feature = "intercept") {
            return vec![sources.absent("intercept", "intercept")];
        }
        if self.address.is_none() {
            return Vec::new();
        }
        if self.networks.is_empty() {
            let reason = "intercept needs intercept-networks: the networks of the servers, such as \"10.2.0.0/16\"";
            return vec![sources.conflict("intercept", reason)];
        }
        let outside = self.groups.outside(&self.networks);
        let reason = outside.map(|server| format!("{server} is in none of intercept-networks"));
        reason.map(|reason| sources.conflict("intercept-groups", reason)).into_iter().collect()
    }
}

const LIST: &[Setting<InterceptSettings>] = &[
    Setting {
        name: "intercept",
        form: Form::Address,
        default: "off",
        help: "Address to which firewall rules (TPROXY) divert connections to other servers, such as 0.0.0.0:8081, or \
               [::]:8081 for IPv6 too. It needs CAP_NET_ADMIN",
        applied: At::Restart(|new, old| new.address = old.address),
        apply: |intercept, text| value::address(text).map(|v| intercept.address = Some(v)),
        show: |intercept| intercept.address.map(|address| address.to_string()),
    },
    Setting {
        name: "intercept-networks",
        form: Form::List,
        default: "none",
        help: "Networks of the servers whose connections are intercepted, such as 10.2.0.0/16 or 2001:db8::/32. \
               Connections to other servers are closed",
        applied: At::Restart(|new, old| new.networks.clone_from(&old.networks)),
        apply: |intercept, text| networks(text).map(|v| intercept.networks = v),
        show: |intercept| {
            let networks: Vec<_> = intercept.networks.iter().map(Network::to_string).collect();
            (!networks.is_empty()).then(|| networks.join(","))
        },
    },
    Setting {
        name: "intercept-groups",
        form: Form::List,
        default: "none",
        help: "Groups of servers that have the same content, such as \"10.2.0.2 10.2.0.3\". A connection to one of them goes \
               to the one with the fewest connections, and past those that can't be reached",
        applied: At::Restart(|new, old| new.groups.clone_from(&old.groups)),
        apply: |intercept, text| ServerGroups::parse(text).map(|v| intercept.groups = v),
        show: |intercept| intercept.groups.show(),
    },
    Setting {
        name: "intercept-rtsp-port",
        form: Form::Count,
        default: "554",
        help: "RTSP port of the servers whose connections are intercepted",
        applied: At::Restart(|new, old| new.rtsp_port = old.rtsp_port),
        apply: |intercept, text| port(text).map(|v| intercept.rtsp_port = v),
        show: |intercept| Some(intercept.rtsp_port.to_string()),
    },
    Setting {
        name: "intercept-keep-client",
        form: Form::Switch,
        default: "true",
        help: "Servers see the client's address on connections that are passed on. RTP over UDP needs this",
        applied: At::Restart(|new, old| new.keeps_client = old.keeps_client),
        apply: |intercept, text| value::switch(text).map(|v| intercept.keeps_client = v),
        show: |intercept| Some(intercept.keeps_client.to_string()),
    },
    Setting {
        name: "intercept-mark",
        form: Form::Count,
        default: "0: none",
        help: "Mark (SO_MARK) of the connections that Millpond opens to intercepted servers and RTSP sources. \
               Firewall rules use the mark to leave these connections alone",
        applied: At::Restart(|new, old| new.mark = old.mark),
        apply: |intercept, text| mark(text).map(|v| intercept.mark = v),
        show: |intercept| Some(intercept.mark.unwrap_or_default().to_string()),
    },
    Setting {
        name: "intercept-idle-timeout",
        form: Form::Duration,
        default: "300s",
        help: "Close a connection that is passed on after this time without a byte in either direction",
        applied: At::Restart(|new, old| new.idle = old.idle),
        apply: |intercept, text| value::timeout(text).map(|v| intercept.idle = v),
        show: |intercept| Some(show_duration(intercept.idle)),
    },
    Setting {
        name: "intercept-per-client",
        form: Form::Count,
        default: "half of the default of max-connections",
        help: "Highest number of intercepted connections of one client address (IPv6: of one /64 network)",
        applied: At::Restart(|new, old| new.per_client = old.per_client),
        apply: |intercept, text| value::count(text, 1).map(|v| intercept.per_client = v),
        show: |intercept| Some(intercept.per_client.to_string()),
    },
    Setting {
        name: "intercept-share-rtsp",
        form: Form::Switch,
        default: "false",
        help: "RTSP clients of one live stream share one session with its server. They get media on their RTSP \
               connection, not by UDP",
        applied: At::Restart(|new, old| new.shares_rtsp = old.shares_rtsp),
        apply: |intercept, text| value::switch(text).map(|v| intercept.shares_rtsp = v),
        show: |intercept| Some(intercept.shares_rtsp.to_string()),
    },
    Setting {
        name: "intercept-memory",
        form: Form::Duration,
        default: "60s",
        help: "Time for which Millpond does not ask a server again that has no RTSP, or that refuses the path by RTSP",
        applied: At::Restart(|new, old| new.memory = old.memory),
        apply: |intercept, text| value::duration_in(text, MEMORY.0, MEMORY.1).map(|v| intercept.memory = v),
        show: |intercept| Some(show_duration(intercept.memory)),
    },
];

fn networks(text: &str) -> Result<Vec<Network>, BadValue> {
    let networks: Option<Vec<_>> = value::list(text).iter().map(|text| Network::parse(text)).collect();
    networks.ok_or_else(|| {
        BadValue::new("networks such as \"10.2.0.0/16\" or \"2001:db8::/32\", without bits behind the prefix")
    })
}

fn port(text: &str) -> Result<u16, BadValue> {
    let port = text.parse().ok().filter(|port: &u16| *port > 0);
    port.ok_or_else(|| BadValue::new("a port from 1 to 65535 such as 554"))
}

fn mark(text: &str) -> Result<Option<u32>, BadValue> {
    let mark = text.strip_prefix("0x").map_or_else(|| text.parse().ok(), |hex| u32::from_str_radix(hex, 16).ok());
    let mark: u32 = mark.ok_or_else(|| BadValue::new("a number of 32 bits such as 2 or \"0x2\""))?;
    Ok((mark > 0).then_some(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_checked() {
        assert_eq!((port("554"), mark("0x10"), mark("0")), (Ok(554), Ok(Some(16)), Ok(None)));
        assert!(port("0").is_err() && port("70000").is_err() && mark("x").is_err() && mark("4294967296").is_err());
        assert_eq!(networks("10.2.0.0/16, ::1").unwrap().len(), 2);
        assert!(networks("10.2.0.1/16").is_err());
    }
}
