//! Namespaces at the ends of a link.

use crate::link::Link;
use std::io;
use std::process::Command;
use std::str::FromStr;
use thiserror::Error;

/// Name of the device inside a namespace.
const DEVICE: &str = "link";

/// One end of a link: a network namespace and its addresses. As text: `NAME=ADDRESS/LENGTH`, and further addresses after commas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// Name of the namespace.
    pub namespace: String,
    /// Addresses with lengths of their prefixes, such as `10.1.0.1/24` or `fd00::1/64`.
    pub addresses: Vec<String>,
}

/// Why an end can't be made.
#[derive(Debug, Error)]
pub enum EndsError {
    /// The text of an end is not of its form.
    #[error("{0:?} is not NAMESPACE=ADDRESS/LENGTH")]
    Text(String),
    /// The program `ip` can't run.
    #[error("ip can't run: {0}")]
    Run(#[from] io::Error),
    /// The program `ip` refuses a command.
    #[error("ip {command}: {answer}")]
    Refused {
        /// The arguments.
        command: String,
        /// The text on standard error.
        answer: String,
    },
}

impl FromStr for End {
    type Err = EndsError;

    fn from_str(text: &str) -> Result<Self, EndsError> {
        let wrong = || EndsError::Text(text.to_owned());
        let (namespace, addresses) = text.split_once('=').ok_or_else(wrong)?;
        let addresses: Vec<_> = addresses.split(',').map(str::to_owned).collect();
        let is_fine = !namespace.is_empty() && addresses.iter().all(|address| address.contains('/'));
        if is_fine { Ok(Self { namespace: namespace.to_owned(), addresses }) } else { Err(wrong()) }
    }
}

/// The namespaces at both ends of a link. They are removed when dropped.
#[derive(Debug, Default)]
pub struct Ends {
    made: Vec<String>,
}

impl Ends {
    /// Makes a namespace for each end and moves the link's devices into them, where both are called `link` and are the way to all
    /// other addresses. Needs root and the program `ip`.
    ///
    /// # Errors
    /// See [`EndsError`]. A namespace that exists already is an error.
    pub fn make(link: &Link, ends: &[End; 2]) -> Result<Self, EndsError> {
        let mut all = Self::default();
        for (device, end) in link.names().into_iter().zip(ends) {
            all.make_one(device, end)?;
        }
        Ok(all)
    }

    fn make_one(&mut self, device: &str, end: &End) -> Result<(), EndsError> {
        let namespace = end.namespace.as_str();
        ip(&["netns", "add", namespace])?;
        self.made.push(namespace.to_owned());
        ip(&["link", "set", "dev", device, "netns", namespace, "name", DEVICE])?;
        // Without an IPv6 address of its own the kernel sends nothing by itself, which would take part in random loss.
        // A kernel without IPv6 refuses it. A move to a namespace would reset it.
        let _ = ip(&["-n", namespace, "link", "set", "dev", DEVICE, "addrgenmode", "none"]);
        ip(&["-n", namespace, "link", "set", "dev", "lo", "up"])?;
        ip(&["-n", namespace, "link", "set", "dev", DEVICE, "up"])?;
        for address in &end.addresses {
            let mut command = vec!["-n", namespace, "addr", "add", address.as_str(), "dev", DEVICE];
            if address.contains(':') {
                command.push("nodad");
            }
            ip(&command)?;
            let family = if address.contains(':') { "-6" } else { "-4" };
            ip(&["-n", namespace, family, "route", "replace", "default", "dev", DEVICE])?;
        }
        Ok(())
    }

    /// The packets that each end's device dropped because the link did not read them in time. Ask before the link ends.
    ///
    /// # Errors
    /// See [`EndsError`].
    pub fn unread(&self) -> Result<Vec<u64>, EndsError> {
        let file = format!("/sys/class/net/{DEVICE}/statistics/tx_dropped");
        let count = |namespace| Ok(ip(&["netns", "exec", namespace, "cat", &file])?.trim().parse().unwrap_or(0));
        self.made.iter().map(|namespace| count(namespace.as_str())).collect()
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        for namespace in &self.made {
            let _ = ip(&["netns", "del", namespace]);
        }
    }
}

fn ip(arguments: &[&str]) -> Result<String, EndsError> {
    let output = Command::new("ip").args(arguments).output()?;
    if !output.status.success() {
        let answer = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(EndsError::Refused { command: arguments.join(" "), answer });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_a_name_and_addresses() {
        let end: End = "site=10.1.0.1/24,fd00::1/64".parse().unwrap();
        assert_eq!((end.namespace.as_str(), end.addresses.len()), ("site", 2));
        for text in ["site", "site=", "=10.1.0.1/24", "site=10.1.0.1"] {
            assert!(text.parse::<End>().is_err(), "{text}");
        }
    }
}
