//! Settings of trusted proxies.

use millpond_settings::{
    At, Host, Network, Setting, Settings,
    value::{BadValue, Form},
};

/// The way in which a proxy tells the address of its client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForwardedBy {
    /// `X-Forwarded-For` and `X-Forwarded-Proto`.
    #[default]
    XForwardedFor,
    /// `Forwarded` (RFC 7239).
    Forwarded,
    /// A header of the PROXY protocol, version 1 or 2, at the beginning of each connection.
    ProxyProtocol,
}

impl ForwardedBy {
    const NAMES: [&'static str; 3] = ["x-forwarded-for", "forwarded", "proxy-protocol"];

    fn named(text: &str) -> Result<Self, BadValue> {
        let [old, standard, protocol] = Self::NAMES;
        match text {
            _ if text == old => Ok(Self::XForwardedFor),
            _ if text == standard => Ok(Self::Forwarded),
            _ if text == protocol => Ok(Self::ProxyProtocol),
            _ => Err(Form::Choice(&Self::NAMES).into()),
        }
    }

    const fn name(self) -> &'static str {
        let [old, standard, protocol] = Self::NAMES;
        match self {
            Self::XForwardedFor => old,
            Self::Forwarded => standard,
            Self::ProxyProtocol => protocol,
        }
    }
}

/// Settings of trusted proxies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxySettings {
    /// Networks of the proxies; empty: there are none.
    pub networks: Vec<Network>,
    /// How they tell the address of their client.
    pub by: ForwardedBy,
}

impl Settings for ProxySettings {
    const LIST: &'static [Setting<Self>] = LIST;

    fn defaults(_: &Host<'_>) -> Self {
        Self::default()
    }
}

const LIST: &[Setting<ProxySettings>] = &[
    Setting {
        name: "trusted-proxies",
        form: Form::List,
        default: "none",
        help: "Networks of trusted proxies, such as 10.0.0.0/24. Access rules, limits and the log use the client \
               addresses that these proxies report, and ignore addresses that other clients report",
        applied: At::Reload,
        apply: |proxies, text| Network::list(text).map(|v| proxies.networks = v),
        show: |proxies| Network::show(&proxies.networks),
    },
    Setting {
        name: "forwarded-by",
        form: Form::Choice(&ForwardedBy::NAMES),
        default: "x-forwarded-for",
        help: "How trusted proxies report the address of a client: in an HTTP header field, or by the PROXY protocol \
               (version 1 or 2). The latter precedes each HTTP, RTSP and RTMP connection",
        applied: At::Reload,
        apply: |proxies, text| ForwardedBy::named(text).map(|v| proxies.by = v),
        show: |proxies| Some(proxies.by.name().to_owned()),
    },
];
