//! Settings of the admin address.

use crate::settings::{
    Host, Setting, Settings,
    value::{self, BadValue, Form},
};
use std::net::{Ipv4Addr, SocketAddr};

/// Settings of the admin address.
#[derive(Debug, Clone)]
pub struct AdminSettings {
    /// Address of metrics and health.
    pub address: SocketAddr,
    /// Names by which clients may call the admin address, besides its own.
    pub hosts: Vec<String>,
}

impl Settings for AdminSettings {
    const LIST: &'static [Setting<Self>] = LIST;

    fn defaults(_: &Host<'_>) -> Self {
        Self { address: SocketAddr::from((Ipv4Addr::LOCALHOST, 9090)), hosts: Vec::new() }
    }
}

const LIST: &[Setting<AdminSettings>] = &[
    Setting {
        name: "admin",
        form: Form::Address,
        default: "127.0.0.1:9090",
        help: "Address of metrics, health checks and cache control",
        apply: |admin, text| value::address(text).map(|v| admin.address = v),
        show: |admin| Some(admin.address.to_string()),
    },
    Setting {
        name: "admin-hosts",
        form: Form::List,
        default: "none: IP addresses and localhost; the loopback's alone where admin is on the loopback",
        help: "Host names that the admin address accepts besides its IP addresses; \"*\" accepts any",
        apply: |admin, text| host_names(text).map(|v| admin.hosts = v),
        show: |admin| Some(admin.hosts.join(",")),
    },
];

fn host_names(text: &str) -> Result<Vec<String>, BadValue> {
    let names = value::list(text);
    let is_name = |name: &String| name == "*" || url::Host::parse(name).is_ok();
    match names.iter().all(is_name) {
        true => Ok(names),
        false => Err(BadValue::new("host names without a port such as \"edge1.internal\", or \"*\"")),
    }
}
