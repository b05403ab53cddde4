//! System resources of a run: descriptors, CPU time, socket buffers.

use nix::sys::{
    resource::{Resource, UsageWho, getrlimit, getrusage, setrlimit},
    time::TimeValLike as _,
};
use std::time::Duration;

/// Descriptors that are no client's: the runtime's, the log, libraries.
const OTHERS: u64 = 64;

/// Raises the limit of open files to its maximum, and returns it.
pub(crate) fn open_files() -> u64 {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return u64::MAX };
    if soft < hard && setrlimit(Resource::RLIMIT_NOFILE, hard, hard).is_ok() { hard } else { soft }
}

/// Returns the least number of descriptors that the clients need.
pub(crate) fn needed(clients: u32, each: u64) -> u64 {
    OTHERS + u64::from(clients) * each
}

/// Processor time of this process so far.
pub(crate) fn processor_time() -> Duration {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else { return Duration::ZERO };
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

/// Packets that this machine has thrown away so far because a socket had no room: counted for all its programs.
pub(crate) fn overflows() -> u64 {
    // Linux has it; other systems don't.
    std::fs::read_to_string("/proc/net/snmp").map_or(0, |text| receive_errors(&text))
}

/// `RcvbufErrors` of the line with UDP's values, by the line with their names.
fn receive_errors(snmp: &str) -> u64 {
    let mut lines = snmp.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else { return 0 };
    let place = names.split(' ').position(|name| name == "RcvbufErrors");
    place.and_then(|place| values.split(' ').nth(place)?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overflows_are_found_by_name() {
        let snmp = "Tcp: A B\nTcp: 1 2\nUdp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors\nUdp: 9 8 7 6 5\n";
        assert_eq!((receive_errors(snmp), receive_errors("Udp: x"), receive_errors("")), (5, 0, 0));
    }
}
