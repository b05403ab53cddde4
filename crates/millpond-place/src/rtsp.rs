//! RTSP servers, `rtsp` or `rtsps`: one, or several with the same streams.

use crate::{LiveKind, LiveReach, LiveSourceError, OptionGroup, PlaceKind, SourceSettings};
use millpond_rtp::client::ClientError;
use millpond_stream::{
    Source,
    reception::{Alternatives, RtspSource},
};
use url::Url;

/// The kind of these places.
pub(crate) static KIND: LiveKind = LiveKind::new(
    PlaceKind {
        name: "rtsp",
        about: "an RTSP server",
        schemes: &["rtsp", "rtsps"],
        options: &[OptionGroup::Live, OptionGroup::RtspServer],
    },
    LiveReach::Connects(&[("rtsp", 554), ("rtsps", 322)]),
    source,
    stream,
)
.with_urls(16);

fn source(urls: &[Url], settings: &SourceSettings) -> Result<Source, LiveSourceError> {
    let source = |url: &str| {
        let mut source = RtspSource::new(url)?;
        source.transport = settings.transport;
        source.retransmission = settings.retransmission;
        source.timeout = settings.timeout;
        Ok(source)
    };
    let (first, others) = urls.split_first().map_or(("", urls), |(first, others)| (first.as_str(), others));
    let others = others.iter().map(|url| source(url.as_str())).collect::<Result<_, ClientError>>()?;
    Ok(Source::Rtsp(Alternatives::new(source(first)?, others)))
}

/// The streams of a server lie below its URL.
fn stream(source: &Source, name: &str) -> Option<Source> {
    Some(match source {
        Source::Rtsp(source) if !name.is_empty() => Source::Rtsp(source.join(name)),
        source => source.clone(),
    })
}
