//! Live HLS streams of web servers, `hls+http` or `hls+https`.

use crate::{LiveKind, LiveReach, LiveSourceError, OptionGroup, PlaceKind, SourceSettings};
use millpond_stream::{
    Source,
    reception::{PulledProtocol, PulledSource},
};
use url::Url;

/// The kind of these places.
pub(crate) static KIND: LiveKind = LiveKind::new(
    PlaceKind {
        name: "hls",
        about: "a live HLS stream",
        schemes: &["hls+http", "hls+https"],
        options: &[OptionGroup::Live, OptionGroup::Pulled, OptionGroup::WebServer],
    },
    LiveReach::Connects(&[("hls+http", 80), ("hls+https", 443)]),
    source,
    // A playlist is one stream.
    |source, name| name.is_empty().then(|| source.clone()),
);

fn source(urls: &[Url], settings: &SourceSettings) -> Result<Source, LiveSourceError> {
    pulled(PulledProtocol::Hls, urls, settings)
}

/// Makes the source of a protocol.
pub(crate) fn pulled(
    protocol: PulledProtocol,
    urls: &[Url],
    settings: &SourceSettings,
) -> Result<Source, LiveSourceError> {
    let mut source = PulledSource::new(protocol, urls.first().map_or("", Url::as_str))?;
    source.timeout = settings.timeout;
    source.most_bandwidth = settings.most_bandwidth;
    source.hosts = settings.hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
    Ok(Source::Pulled(source))
}
