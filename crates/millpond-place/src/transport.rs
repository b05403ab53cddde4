//! Addresses that an MPEG transport stream arrives at, `udp` or `rtp`.

use crate::{LiveKind, LiveReach, LiveSourceError, OptionGroup, PlaceKind, SourceSettings};
use millpond_stream::{Source, reception::TransportSource};
use url::Url;

/// The kind of these places.
pub(crate) static KIND: LiveKind = LiveKind::new(
    PlaceKind {
        name: "transport",
        about: "a transport stream",
        schemes: &["udp", "rtp"],
        options: &[OptionGroup::Live],
    },
    LiveReach::Packets,
    source,
    stream,
);

fn source(urls: &[Url], settings: &SourceSettings) -> Result<Source, LiveSourceError> {
    let mut source = TransportSource::new(urls.first().map_or("", Url::as_str))?;
    source.timeout = settings.timeout;
    Ok(Source::Transport(source))
}

/// The programmes of a transport stream have their numbers as names.
fn stream(source: &Source, name: &str) -> Option<Source> {
    Some(match source {
        Source::Transport(source) if !name.is_empty() => Source::Transport(source.programme(programme(name)?)),
        source => source.clone(),
    })
}

/// The number of a programme, from 1, as it is written without zeros before it.
fn programme(name: &str) -> Option<u16> {
    let number = name.parse().ok().filter(|number: &u16| *number > 0)?;
    (number.to_string() == name).then_some(number)
}
