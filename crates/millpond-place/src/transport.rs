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
)
.with_urls(MOST_LEGS);

/// Most addresses whose packets are merged.
const MOST_LEGS: usize = 2;

fn source(urls: &[Url], settings: &SourceSettings) -> Result<Source, LiveSourceError> {
    let mut source = TransportSource::merged(&urls.iter().map(Url::as_str).collect::<Vec<_>>())?;
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
pub(crate) fn programme(name: &str) -> Option<u16> {
    let number = name.parse().ok().filter(|number: &u16| *number > 0)?;
    (number.to_string() == name).then_some(number)
}
