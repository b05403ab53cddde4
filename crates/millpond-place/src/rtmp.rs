//! Streams of RTMP servers, `rtmp` or `rtmps`.

use crate::{LiveKind, LiveReach, LiveSourceError, OptionGroup, PlaceKind, SourceSettings};
use millpond_stream::{Source, reception::RtmpSource};
use url::Url;

/// The kind of these places.
pub(crate) static KIND: LiveKind = LiveKind::new(
    PlaceKind { name: "rtmp", about: "an RTMP server", schemes: &["rtmp", "rtmps"], options: &[OptionGroup::Live] },
    LiveReach::Connects(&[("rtmp", 1935), ("rtmps", 443)]),
    source,
    stream,
);

fn source(urls: &[Url], settings: &SourceSettings) -> Result<Source, LiveSourceError> {
    let mut source = RtmpSource::new(urls.first().map_or("", Url::as_str))?;
    source.timeout = settings.timeout;
    Ok(Source::Rtmp(source))
}

/// The streams of a server lie below its URL.
fn stream(source: &Source, name: &str) -> Option<Source> {
    Some(match source {
        Source::Rtmp(source) if !name.is_empty() => Source::Rtmp(source.join(name)),
        source => source.clone(),
    })
}
