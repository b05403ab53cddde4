//! Which server of a group a connection is passed on to: by health, by the client's other connections, then by load.

use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Time for which a port that could not be reached is the last choice. Then one connection tries it again.
const AVOIDED: Duration = Duration::from_secs(10);
/// Most ports that are remembered as not reachable.
const MOST: usize = 1024;

/// The open connections and the failures of the servers of groups. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Spread {
    /// A lock: taken when a connection of a group begins and ends.
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// Open connections of servers.
    open: HashMap<IpAddr, usize>,
    /// Times before which ports that could not be reached are avoided.
    avoided: HashMap<SocketAddr, Instant>,
    /// Open connections of clients with servers. Protocols with several connections need one server for all of them.
    clients: HashMap<(IpAddr, IpAddr), usize>,
}

/// A connection of a client with a server, counted until it is dropped.
#[derive(Debug)]
pub(super) struct Passage {
    spread: Spread,
    client: IpAddr,
    server: IpAddr,
}

impl Spread {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the servers of a group in the order in which a client's connection to a port should try them. Where all else is
    /// equal its own destination comes first.
    pub(super) fn order(
        &self,
        group: impl Iterator<Item = IpAddr>,
        destination: SocketAddr,
        client: IpAddr,
        now: Instant,
    ) -> Vec<SocketAddr> {
        let mut state = self.lock();
        let port = |server: IpAddr| SocketAddr::new(server, destination.port());
        let rank = |server: &IpAddr| {
            let until = state.avoided.get(&port(*server));
            let is_new = !state.clients.contains_key(&(client, *server));
            let open = state.open.get(server).copied().unwrap_or(0);
            (until.is_some_and(|until| *until > now), is_new, open, *server != destination.ip())
        };
        let mut servers: Vec<_> = group.collect();
        servers.sort_by_cached_key(rank);
        // Other connections avoid it until this one has tried it.
        if let Some(until) = servers.first().and_then(|first| state.avoided.get_mut(&port(*first))) {
            *until = now + AVOIDED;
        }
        servers.into_iter().map(|server| SocketAddr::new(server, destination.port())).collect()
    }

    /// Notes that a server's port could not be reached. Returns whether all ports of that server could be reached before.
    pub(super) fn failed(&self, server: SocketAddr, now: Instant) -> bool {
        let mut state = self.lock();
        let is_first = !state.avoided.keys().any(|port| port.ip() == server.ip());
        if state.avoided.len() >= MOST {
            state.avoided.clear();
        }
        state.avoided.insert(server, now + AVOIDED);
        is_first
    }

    /// Notes that a server's port was reached.
    pub(super) fn reached(&self, server: SocketAddr) {
        self.lock().avoided.remove(&server);
    }

    /// Counts a connection of a client with a server.
    pub(super) fn passes(&self, client: IpAddr, server: IpAddr) -> Passage {
        let mut state = self.lock();
        *state.open.entry(server).or_default() += 1;
        *state.clients.entry((client, server)).or_default() += 1;
        drop(state);
        Passage { spread: self.clone(), client, server }
    }
}

impl Drop for Passage {
    fn drop(&mut self) {
        let mut state = self.spread.lock();
        leave(&mut state.open, self.server);
        leave(&mut state.clients, (self.client, self.server));
    }
}

/// Counts one less, and forgets a key without connections.
fn leave<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, usize>, key: K) {
    if let Some(count) = counts.get_mut(&key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 2, 0, last])
    }

    fn order(spread: &Spread, destination: u8, client: u8, now: Instant) -> Vec<IpAddr> {
        let destination = SocketAddr::new(address(destination), 80);
        let group = [2, 3, 4].map(address);
        spread.order(group.into_iter(), destination, address(client), now).iter().map(SocketAddr::ip).collect()
    }

    #[test]
    fn connections_go_to_the_server_with_the_fewest() {
        let (spread, now) = (Spread::default(), Instant::now());
        assert_eq!(order(&spread, 3, 101, now)[0], address(3), "its own destination, where all are equal");
        let passages: Vec<_> = (0..6)
            .map(|number| {
                let server = order(&spread, 2, 101 + number, now)[0];
                (server, spread.passes(address(101 + number), server))
            })
            .collect();
        let servers: Vec<_> = passages.iter().map(|(server, _)| *server).collect();
        assert_eq!(servers, [2, 3, 4, 2, 3, 4].map(address));
        drop(passages);
        let state = spread.lock();
        assert!(state.open.is_empty() && state.clients.is_empty(), "nothing stays");
    }

    #[test]
    fn a_client_keeps_its_server_while_it_has_a_connection() {
        let (spread, now) = (Spread::default(), Instant::now());
        let first = spread.passes(address(101), address(4));
        let _others = [102, 103].map(|client| spread.passes(address(client), address(4)));
        assert_eq!(order(&spread, 2, 101, now)[0], address(4));
        drop(first);
        assert_eq!(order(&spread, 2, 101, now)[0], address(2));
    }

    #[test]
    fn a_port_that_failed_is_the_last_choice_for_a_while() {
        let (spread, now) = (Spread::default(), Instant::now());
        let dead = SocketAddr::new(address(2), 80);
        assert!(spread.failed(dead, now) && !spread.failed(dead, now), "it is told once");
        assert_eq!(order(&spread, 2, 101, now), [3, 4, 2].map(address));
        let rtsp = SocketAddr::new(address(2), 554);
        assert_eq!(spread.order([2, 3].map(address).into_iter(), rtsp, address(101), now)[0], rtsp, "another port");
        let later = now + AVOIDED;
        assert_eq!(order(&spread, 2, 101, later)[0], address(2), "one connection tries it again");
        assert_eq!(order(&spread, 2, 102, later)[0], address(3), "and no other one");
        spread.reached(dead);
        assert_eq!(order(&spread, 2, 102, later)[0], address(2));
        assert!(spread.failed(dead, later), "it is told again");
        for port in 0..3 * MOST as u16 {
            spread.failed(SocketAddr::new(address(3), port), later);
        }
        assert!(spread.lock().avoided.len() <= MOST);
    }
}
