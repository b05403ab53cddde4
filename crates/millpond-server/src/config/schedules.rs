//! Files of schedules: whether their entries can play.

use super::{Config, ConfigError};
use crate::{
    library::Places,
    schedule::{self, PathUse, PathUses},
};
use millpond_settings::Sources;

/// Returns the errors of all schedules. Their files are read.
pub(super) fn errors(config: &Config, sources: &Sources) -> Vec<ConfigError> {
    let lines = &config.schedule.lines;
    let of_both = lines.iter().filter(|line| config.failover.lines.iter().any(|failover| failover.to == line.to));
    let of_both = of_both.map(|line| {
        let why = format!("failover and schedule both have the stream {}: give one of them another path", line.to);
        sources.conflict("schedule", why)
    });
    // Without places the built-in sample is served.
    let uses = (!config.places.is_empty()).then(|| ConfiguredPaths::new(config));
    let of_file = |line: &schedule::ScheduleLine| {
        let (at, path) = (sources.of("schedule"), line.file.clone());
        let error = move |fault: schedule::Fault| ConfigError::File {
            at: at.clone(),
            key: "schedule",
            path: path.clone(),
            reason: fault.to_string(),
        };
        schedule::faults(line, uses.as_ref()).into_iter().map(error).collect::<Vec<_>>()
    };
    of_both.chain(lines.iter().flat_map(of_file)).collect()
}

/// The places and channels of a configuration.
struct ConfiguredPaths<'a> {
    config: &'a Config,
    places: Places,
}

impl<'a> ConfiguredPaths<'a> {
    fn new(config: &'a Config) -> Self {
        Self { config, places: Places::new(config.places.iter().map(|place| place.spec.name.as_str().into())) }
    }
}

impl PathUses for ConfiguredPaths<'_> {
    fn of(&self, path: &str) -> Option<PathUse> {
        let mut channels = self.config.rtsp.channels.iter();
        if channels.any(|channel| channel.is_list && channel.streams().iter().any(|stream| stream == path)) {
            return Some(PathUse::Stream);
        }
        let place = self.config.places.get(self.places.find(path)?.index)?;
        let is_channel = self.config.rtsp.channels.iter().any(|channel| channel.name == path);
        Some(match (place.spec.is_live(), is_channel) {
            (true, _) => PathUse::Stream,
            (false, true) => PathUse::Both,
            (false, false) => PathUse::Asset,
        })
    }
}
