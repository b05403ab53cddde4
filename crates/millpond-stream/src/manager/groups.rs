//! The multicast groups of an engine's channels.

use super::{Group, Options};
use crate::{live::Program, transmission::Transmitter};
use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

/// Groups by the numbers of their channels: each has one address. A lock: taken for a look-up when a group is opened.
#[derive(Debug, Default)]
pub(super) struct OpenGroups(Mutex<HashMap<usize, Weak<Group>>>);

impl OpenGroups {
    fn lock(&self) -> MutexGuard<'_, HashMap<usize, Weak<Group>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the group of a channel: the group in use, else a new one. `sender` returns the number and sending thread of a new
    /// group. `None` where there is no multicast, or the channel's address is still used by an earlier run of it.
    pub(super) fn find(
        &self,
        program: &Program,
        options: &Options,
        sender: impl FnOnce() -> (u64, Transmitter),
    ) -> Option<Arc<Group>> {
        let addresses = options.groups?;
        let number = options.channels.iter().position(|name| name == program.path())?;
        let mut groups = self.lock();
        groups.retain(|_, group| group.strong_count() > 0);
        let known = groups.get(&number).and_then(Weak::upgrade).filter(|group| !group.is_over());
        if let Some(known) = known {
            return Some(known).filter(|known| known.is_of(program));
        }
        let address = IpAddr::V4(addresses.address(number)?);
        let ports = |track| addresses.ports(track);
        let new = Arc::new(Group::new(sender(), program, (address, addresses.ttl()), ports)?);
        groups.insert(number, Arc::downgrade(&new));
        Some(new)
    }

    /// Gives channels their numbers, where `before` had theirs.
    pub(super) fn renumber(&self, before: &[String], new: Vec<String>) -> Vec<String> {
        let groups = self.lock();
        let is_free = |number: usize| groups.get(&number).is_none_or(|group| group.strong_count() == 0);
        with_numbers(before, new, is_free)
    }
}

/// Gives channels their numbers, which are those of their multicast groups. Channels of `before` keep their groups. Other
/// channels get the group of a removed channel that has no receivers any more (`is_free`), or the next group. A number without a
/// channel has an empty name.
fn with_numbers(before: &[String], new: Vec<String>, is_free: impl Fn(usize) -> bool) -> Vec<String> {
    let stays = |name: &String| if new.contains(name) { name.clone() } else { String::new() };
    let mut numbers: Vec<_> = before.iter().map(stays).collect();
    let mut next = 0;
    for name in new.into_iter().filter(|name| !before.contains(name)) {
        while next < numbers.len() && !(numbers[next].is_empty() && is_free(next)) {
            next += 1;
        }
        match numbers.get_mut(next) {
            Some(number) => *number = name,
            None => numbers.push(name),
        }
    }
    while numbers.last().is_some_and(String::is_empty) {
        numbers.pop();
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_that_stay_keep_their_numbers() {
        let names = |text: &str| text.split(' ').map(|name| name.trim_matches('-').to_owned()).collect::<Vec<_>>();
        for (before, new, used, expected) in [
            ("a b c", "c a", 9, "a - c"),
            ("a b c", "d c a", 9, "a d c"),
            ("a b c", "d c a", 1, "a - c d"),
            ("a b c", "a", 9, "a"),
            ("a - c", "a c d e", 9, "a d c e"),
        ] {
            assert_eq!(with_numbers(&names(before), names(new), |n| n != used), names(expected), "{before}: {new}");
        }
    }
}
