//! MPEG transport streams that web servers send without an end, `ts+http` or `ts+https`.

use crate::{LiveKind, LiveReach, LiveSourceError, OptionGroup, PlaceKind, SourceSettings, transport::programme};
use millpond_stream::{Source, reception::WebTransportSource};
use url::Url;

/// The kind of these places.
pub(crate) static KIND: LiveKind = LiveKind::new(
    PlaceKind {
        name: "web-transport",
        about: "a transport stream of a web server",
        schemes: &["ts+http", "ts+https"],
        options: &[OptionGroup::Live, OptionGroup::WebServer],
    },
    LiveReach::Connects(&[("ts+http", 80), ("ts+https", 443)]),
    source,
    stream,
);

fn source(urls: &[Url], settings: &SourceSettings) -> Result<Source, LiveSourceError> {
    let mut source = WebTransportSource::new(urls.first().map_or("", Url::as_str))?;
    source.timeout = settings.timeout;
    source.hosts = settings.hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
    Ok(Source::WebTransport(source))
}

/// The programmes of a transport stream have their numbers as names. Each one is requested on its own.
fn stream(source: &Source, name: &str) -> Option<Source> {
    Some(match source {
        Source::WebTransport(source) if !name.is_empty() => Source::WebTransport(source.programme(programme(name)?)),
        source => source.clone(),
    })
}
