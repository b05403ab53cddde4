//! SRT listeners that send a transport stream: `srt`.

use crate::{LiveKind, LiveReach, LiveSourceError, OptionGroup, PlaceKind, SourceSettings, transport::programme};
use millpond_stream::{Source, reception::SrtSource};
use url::Url;

/// The kind of these places.
pub(crate) static KIND: LiveKind = LiveKind::new(
    PlaceKind { name: "srt", about: "an SRT listener", schemes: &["srt"], options: &[OptionGroup::Live] },
    LiveReach::Calls,
    source,
    stream,
);

fn source(urls: &[Url], settings: &SourceSettings) -> Result<Source, LiveSourceError> {
    let mut source = SrtSource::new(urls.first().map_or("", Url::as_str))?;
    source.timeout = settings.timeout;
    Ok(Source::Srt(source))
}

/// The programmes of a transport stream have their numbers as names.
fn stream(source: &Source, name: &str) -> Option<Source> {
    Some(match source {
        Source::Srt(source) if !name.is_empty() => Source::Srt(source.programme(programme(name)?)),
        source => source.clone(),
    })
}
