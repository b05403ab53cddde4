//! Settings of the admin address.

use super::gate::AdminToken;
use millpond_settings::{
    At, ConfigError, Host, Setting, Settings, Sources,
    value::{self, BadValue, Form},
};
use std::{
    fmt,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
};

/// Settings of the admin address.
#[derive(Debug, Clone)]
pub struct AdminSettings {
    /// Address of the API, metrics and health.
    pub address: AdminAddress,
    /// Names by which clients may call the admin address, besides its own.
    pub hosts: Vec<String>,
    /// Token that clients of the API must present; `None` admits everyone.
    pub token: Option<AdminToken>,
    /// File with that token.
    pub token_file: Option<PathBuf>,
}

/// Address of the API, metrics and health.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdminAddress {
    /// An address and port.
    Tcp(SocketAddr),
    /// A socket file.
    Unix(PathBuf),
}

impl AdminAddress {
    /// The address and port, where it has one.
    pub fn tcp(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(address) => Some(*address),
            Self::Unix(_) => None,
        }
    }
}

impl fmt::Display for AdminAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl Settings for AdminSettings {
    const LIST: &'static [Setting<Self>] = LIST;

    fn defaults(_: &Host<'_>) -> Self {
        let address = AdminAddress::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 8380)));
        Self { address, hosts: Vec::new(), token: None, token_file: None }
    }

    fn complete(&mut self, sources: &Sources) -> Vec<ConfigError> {
        if let Some(path) = &self.token_file {
            if self.token.is_some() {
                let why = "admin-token and admin-token-file can't be set both";
                return vec![sources.conflict("admin-token-file", why)];
            }
            match millpond_settings::files::read_text(path) {
                Ok(text) => self.token = Some(AdminToken::new(text.trim())),
                Err(error) => {
                    let (at, path, reason) = (sources.of("admin-token-file"), path.clone(), error.to_string());
                    return vec![ConfigError::File { at, key: "admin-token-file", path, reason }];
                }
            }
        }
        let name = if self.token_file.is_some() { "admin-token-file" } else { "admin-token" };
        match &self.token {
            // The value is in no error: it may be a part of the real one.
            Some(token) if !token.is_strong() => vec![sources.conflict(name, AdminToken::EXPECTED)],
            _ => Vec::new(),
        }
    }
}

const LIST: &[Setting<AdminSettings>] = &[
    Setting {
        name: "admin",
        form: Form::Address,
        default: "127.0.0.1:8380",
        help: "Address of the admin API, metrics and health checks; unix:PATH is a socket file",
        applied: At::Reload,
        apply: |admin, text| address(text).map(|v| admin.address = v),
        show: |admin| Some(admin.address.to_string()),
    },
    Setting {
        name: "admin-hosts",
        form: Form::List,
        default: "none: IP addresses and localhost; if admin is on the loopback, loopback addresses and localhost",
        help: "Host names that the admin address accepts besides its IP addresses; \"*\" accepts any",
        applied: At::Reload,
        apply: |admin, text| host_names(text).map(|v| admin.hosts = v),
        show: |admin| Some(admin.hosts.join(",")),
    },
    Setting {
        name: "admin-token",
        form: Form::Text,
        default: "none: everyone who reaches the admin address",
        help: "Token that clients of the admin API must present. Other users of the machine can read it on the \
               command line, but not in a file or the environment",
        applied: At::Reload,
        apply: |admin, text| {
            admin.token = Some(AdminToken::new(text));
            Ok(())
        },
        show: |admin| admin.token.as_ref().filter(|_| admin.token_file.is_none()).map(|_| "***".to_owned()),
    },
    Setting {
        name: "admin-token-file",
        form: Form::Path,
        default: "none",
        help: "File with the token that clients of the admin API must present",
        applied: At::Reload,
        apply: |admin, text| value::path(text).map(|v| admin.token_file = Some(v)),
        show: |admin| admin.token_file.as_ref().map(|path| path.display().to_string()),
    },
];

fn address(text: &str) -> Result<AdminAddress, BadValue> {
    match text.strip_prefix("unix:") {
        Some("") => Err(BadValue::new("an address such as \"127.0.0.1:8380\", or \"unix:/run/millpond/admin.sock\"")),
        Some(path) => Ok(AdminAddress::Unix(PathBuf::from(path))),
        None => value::address(text).map(AdminAddress::Tcp),
    }
}

fn host_names(text: &str) -> Result<Vec<String>, BadValue> {
    let names = value::list(text);
    let is_name = |name: &String| name == "*" || url::Host::parse(name).is_ok();
    match names.iter().all(is_name) {
        true => Ok(names),
        false => Err(BadValue::new("host names without a port such as \"edge1.internal\", or \"*\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_settings::machine::Machine;

    #[test]
    fn addresses_are_ports_or_socket_files() {
        for (text, shown) in [
            ("8380", Some("0.0.0.0:8380")),
            ("127.0.0.1:1", Some("127.0.0.1:1")),
            ("unix:/run/millpond/admin.sock", Some("unix:/run/millpond/admin.sock")),
            ("unix:", None),
            ("/run/admin.sock", None),
        ] {
            assert_eq!(address(text).ok().map(|address| address.to_string()).as_deref(), shown, "{text}");
        }
    }

    #[test]
    fn a_token_has_one_source_and_is_never_shown() {
        let host = Host { machine: Machine::detect(), variable: &|_| None };
        let faults = |token: Option<&str>, file: Option<&str>| {
            let mut settings = AdminSettings::defaults(&host);
            settings.token = token.map(AdminToken::new);
            settings.token_file = file.map(PathBuf::from);
            let faults = settings.complete(&Sources::default());
            (faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"), settings)
        };
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        std::fs::write(&file, "correct horse battery\n").unwrap();
        let file = file.to_str();
        assert_eq!(faults(None, None).0, "");
        assert!(faults(Some("short"), None).0.contains("16 characters"));
        assert!(!faults(Some("short"), None).0.contains("short"));
        assert!(faults(Some("0123456789abcdef"), file).0.contains("both"));
        assert!(faults(None, Some("/nowhere")).0.contains("/nowhere"));
        assert!(faults(None, file).0.contains("16 characters"), "blanks are none of a token");
        std::fs::write(file.unwrap(), "correct-horse-battery\n").unwrap();
        let (faults, settings) = faults(None, file);
        assert_eq!(faults, "");
        assert!(settings.token.as_ref().unwrap().is("correct-horse-battery"));
        assert!(!format!("{settings:?}").contains("correct"));
    }
}
