//! Limits of the machine: open files, memory, buffers of UDP.

use super::Finding;
use crate::config::Config;
use millpond_settings::{
    machine::{Machine, connections_within},
    value::show_size,
};
use std::fs;

/// Receive buffer that sockets of live sources ask for, in bytes.
const RECEIVE_BUFFER: u64 = 4 << 20;

pub(super) fn findings(config: &Config) -> Vec<Finding> {
    let machine = Machine::detect();
    let mut findings = vec![
        open_files(machine.open_files, config.limits.max_connections),
        memory(config.storage.memory, machine.memory),
    ];
    if config.places.iter().any(|place| place.spec.is_live()) {
        let path = "/proc/sys/net/core/rmem_max";
        let allowed = fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok());
        findings.extend(allowed.map(receive_buffer));
    }
    findings
}

fn open_files(allowed: u64, connections: usize) -> Finding {
    let fit = connections_within(allowed);
    if fit >= connections {
        return Finding::fine("limits", format!("{allowed} files may be open; {connections} connections fit"));
    }
    Finding::warning(
        "limits",
        format!("{allowed} files may be open, so {fit} connections of all protocols; max-connections is {connections}"),
        "raise the limit (LimitNOFILE= in the unit, ulimit -Hn in a shell), or lower max-connections",
    )
}

fn memory(configured: u64, machine: u64) -> Finding {
    let (shown, all) = (show_size(configured), show_size(machine));
    if configured <= machine / 4 * 3 {
        return Finding::fine("limits", format!("memory is {shown} of {all}"));
    }
    Finding::warning(
        "limits",
        format!("memory is {shown}, and the machine or its control group has {all}"),
        "lower memory: connections, indexes under way and the kernel's own cache need the rest",
    )
}

fn receive_buffer(allowed: u64) -> Finding {
    if allowed >= RECEIVE_BUFFER {
        return Finding::fine("limits", format!("receive buffers may have {}", show_size(allowed)));
    }
    Finding::warning(
        "limits",
        format!("receive buffers of UDP may have {allowed} bytes: packets of live sources can be lost in bursts"),
        "run sysctl -w net.core.rmem_max=4194304, and set it in /etc/sysctl.d too",
    )
}

#[cfg(test)]
mod tests {
    use super::super::Severity::{Fine, Warning};
    use super::*;

    #[test]
    fn limits_are_compared_with_what_is_configured() {
        assert_eq!(open_files(524_288, 20_000).severity, Fine);
        assert_eq!(open_files(20_000, 20_000).severity, Warning);
        assert_eq!(memory(1 << 30, 4 << 30).severity, Fine);
        assert_eq!(memory(4 << 30, 4 << 30).severity, Warning);
        assert_eq!(receive_buffer(212_992).severity, Warning);
        assert_eq!(receive_buffer(8 << 20).severity, Fine);
    }
}
