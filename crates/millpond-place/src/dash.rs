//! Live DASH streams of web servers, `dash+http` or `dash+https`.

use crate::{LiveKind, LiveReach, LiveSourceError, OptionGroup, PlaceKind, SourceSettings, hls::pulled};
use millpond_stream::{Source, reception::PulledProtocol};
use url::Url;

/// The kind of these places.
pub(crate) static KIND: LiveKind = LiveKind::new(
    PlaceKind {
        name: "dash",
        about: "a live DASH stream",
        schemes: &["dash+http", "dash+https"],
        options: &[OptionGroup::Live, OptionGroup::Pulled, OptionGroup::WebServer],
    },
    LiveReach::Connects(&[("dash+http", 80), ("dash+https", 443)]),
    source,
    // A manifest is one stream.
    |source, name| name.is_empty().then(|| source.clone()),
);

fn source(urls: &[Url], settings: &SourceSettings) -> Result<Source, LiveSourceError> {
    pulled(PulledProtocol::Dash, urls, settings)
}
