//! One side's half of ICE, in either role.

use crate::{Ended, controlling_agent::ControllingAgent, lite_agent::LiteAgent};
use std::{net::SocketAddr, time::Instant};

/// The server's half of ICE.
#[derive(Debug)]
pub(crate) enum Agent {
    /// The peer has called.
    Lite(LiteAgent),
    /// The server has called.
    Controlling(ControllingAgent),
}

impl Agent {
    /// Address that media is sent to.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Lite(agent) => agent.address(),
            Self::Controlling(agent) => agent.address(),
        }
    }

    /// Whether an address has shown that it is the peer's.
    pub(crate) fn knows(&self, address: SocketAddr) -> bool {
        match self {
            Self::Lite(agent) => agent.knows(address),
            Self::Controlling(agent) => agent.knows(address),
        }
    }

    /// Takes a message of STUN, and gives what it has to send to `send`.
    pub(crate) fn receive(
        &mut self,
        message: (SocketAddr, &[u8]),
        is_connected: bool,
        now: Instant,
        send: impl FnMut(SocketAddr, Vec<u8>),
    ) {
        match self {
            Self::Lite(agent) => agent.receive(message, is_connected, now, send),
            Self::Controlling(agent) => agent.receive(message, now, send),
        }
    }

    /// Takes the time.
    ///
    /// # Errors
    /// The peer has left.
    pub(crate) fn tick(&mut self, now: Instant, send: impl FnMut(SocketAddr, Vec<u8>)) -> Result<(), Ended> {
        let is_over = now >= self.end();
        match self {
            Self::Lite(agent) if is_over => return Err(Ended::Silent(agent.silence(now))),
            Self::Controlling(agent) if is_over => return Err(Ended::Unanswered(agent.silence(now))),
            Self::Lite(_) => {}
            Self::Controlling(agent) => agent.tick(now, send),
        }
        Ok(())
    }

    /// Time at which the peer has left, unless it is heard before.
    fn end(&self) -> Instant {
        match self {
            Self::Lite(agent) => agent.end(),
            Self::Controlling(agent) => agent.end(),
        }
    }

    /// Time of the next [`tick`](Self::tick).
    pub(crate) fn next(&self) -> Instant {
        let check = match self {
            Self::Lite(_) => None,
            Self::Controlling(agent) => agent.next(),
        };
        check.map_or(self.end(), |check| check.min(self.end()))
    }
}
