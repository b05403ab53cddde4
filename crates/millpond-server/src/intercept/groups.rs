//! Groups of servers that have the same content.

use millpond_settings::{
    Network,
    value::{self, BadValue},
};
use std::{collections::HashSet, net::IpAddr};

/// Groups of servers that have the same content. No server is in two of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerGroups(Vec<Vec<IpAddr>>);

impl ServerGroups {
    /// Parses groups with commas between them, and their addresses with spaces.
    ///
    /// # Errors
    /// A part is no address, a group has a single server or two versions of IP, or a server is named twice.
    pub(super) fn parse(text: &str) -> Result<Self, BadValue> {
        let group = |text: &String| text.split_ascii_whitespace().map(|address| address.parse().ok()).collect();
        let groups: Option<Vec<Vec<IpAddr>>> = value::list(text).iter().map(group).collect();
        let mut names = HashSet::new();
        let is_group = |group: &Vec<IpAddr>| {
            group.len() > 1
                && group.iter().all(|server| server.is_ipv4() == group[0].is_ipv4() && names.insert(*server))
        };
        groups.filter(|groups| groups.iter().all(is_group)).map(Self).ok_or_else(|| {
            BadValue::new(
                "groups of addresses of one version of IP, such as \"10.2.0.2 10.2.0.3\", each address in one group",
            )
        })
    }

    /// Returns the text of the groups; `None` where there are none.
    pub(super) fn show(&self) -> Option<String> {
        let group = |group: &Vec<IpAddr>| group.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(" ");
        (!self.0.is_empty()).then(|| self.0.iter().map(group).collect::<Vec<_>>().join(","))
    }

    /// Returns a server that is in no network.
    pub(super) fn outside(&self, networks: &[Network]) -> Option<IpAddr> {
        let is_outside = |server: &&IpAddr| !networks.iter().any(|network| network.contains(**server));
        self.0.iter().flatten().find(is_outside).copied()
    }

    /// Returns the servers of a server's group; the server alone where it is in none.
    #[cfg_attr(not(feature = "intercept"), expect(dead_code, reason = "nothing is intercepted"))]
    pub(super) fn of(&self, server: IpAddr) -> SameServers<'_> {
        let group = self.0.iter().find(|group| group.contains(&server)).and_then(|group| group.split_first());
        let (first, others) = group.map_or((server, &[][..]), |(first, others)| (*first, others));
        SameServers { first, others }
    }
}

/// Servers that have the same content, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SameServers<'a> {
    /// The first one, which stands for all.
    pub(super) first: IpAddr,
    pub(super) others: &'a [IpAddr],
}

#[cfg_attr(not(feature = "intercept"), expect(dead_code, reason = "nothing is intercepted"))]
impl SameServers<'_> {
    /// Returns all servers.
    pub(super) fn iter(self) -> impl Iterator<Item = IpAddr> {
        std::iter::once(self.first).chain(self.others.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_read_and_checked() {
        let groups = ServerGroups::parse("10.2.0.2 10.2.0.3, fd00::1  fd00::2").unwrap();
        assert_eq!(groups.show().as_deref(), Some("10.2.0.2 10.2.0.3,fd00::1 fd00::2"));
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let of = |server: &str| groups.of(address(server)).iter().collect::<Vec<_>>();
        assert_eq!(of("10.2.0.3"), [address("10.2.0.2"), address("10.2.0.3")]);
        assert_eq!(of("10.2.0.9"), [address("10.2.0.9")]);
        let networks = |texts: &[&str]| texts.iter().map(|text| Network::parse(text).unwrap()).collect::<Vec<_>>();
        assert_eq!(groups.outside(&networks(&["10.2.0.0/24", "fd00::/64"])), None);
        assert_eq!(groups.outside(&networks(&["10.2.0.0/24"])), Some(address("fd00::1")));
        for text in
            ["10.2.0.2", "10.2.0.2 10.2.0.2", "10.2.0.2 fd00::1", "10.2.0.2 b", "10.0.0.1 10.0.0.2,10.0.0.2 10.0.0.3"]
        {
            assert!(ServerGroups::parse(text).is_err(), "{text}");
        }
        assert_eq!(ServerGroups::default().show(), None);
    }
}
