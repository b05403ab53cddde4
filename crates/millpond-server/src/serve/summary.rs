//! Live places of a server, for the first words to its operator.

use super::Server;
use crate::config::{Config, PlaceConfig};

/// A place with live streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveSummary {
    /// Name of the place; empty where it has none.
    pub name: String,
    /// Address of the source, without secrets.
    pub source: String,
    /// Names of its ladders inside the place, in the order of the configuration.
    pub ladders: Vec<String>,
    /// Clients that may push streams; `None` where streams are fetched.
    pub publishing: Option<Publishing>,
}

/// Clients that may push streams into a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Publishing {
    /// Clients of this machine.
    ThisMachine,
    /// All clients.
    Open,
    /// Users of `publish-users`.
    Users,
    /// Clients that the server of `auth-url` admits.
    External,
}

impl Publishing {
    fn of(config: &Config, place: &PlaceConfig) -> Self {
        match &config.publish {
            _ if place.access.external.url.is_some() => Self::External,
            publish if publish.users.is_some() => Self::Users,
            publish if publish.is_open => Self::Open,
            _ => Self::ThisMachine,
        }
    }
}

impl Server {
    /// Returns the places with live streams.
    pub fn live_places(&self) -> Vec<LiveSummary> {
        let config = &self.loaded.config;
        let of = |place: &PlaceConfig| LiveSummary {
            name: place.spec.name.clone(),
            source: place.spec.source.to_string(),
            ladders: place.ladders.iter().map(|ladder| ladder.name.clone()).collect(),
            publishing: place.spec.is_pushed().then(|| Publishing::of(config, place)),
        };
        config.places.iter().filter(|place| place.spec.is_live()).map(of).collect()
    }
}
