//! Streams of WHEP endpoints, `whep+http` or `whep+https`.

use crate::{LiveKind, LiveReach, LiveSourceError, OptionGroup, PlaceKind, SourceSettings};
use millpond_stream::{Source, reception::WhepSource};
use url::Url;

/// The kind of these places.
pub(crate) static KIND: LiveKind = LiveKind::new(
    PlaceKind {
        name: "whep",
        about: "a stream of a WHEP endpoint",
        schemes: &["whep+http", "whep+https"],
        options: &[OptionGroup::Live],
    },
    LiveReach::Connects(&[("whep+http", 80), ("whep+https", 443)]),
    source,
    // An endpoint has one stream.
    |source, name| name.is_empty().then(|| source.clone()),
);

fn source(urls: &[Url], settings: &SourceSettings) -> Result<Source, LiveSourceError> {
    let mut source = WhepSource::new(urls.first().map_or("", Url::as_str))?;
    source.timeout = settings.timeout;
    Ok(Source::Whep(source))
}
