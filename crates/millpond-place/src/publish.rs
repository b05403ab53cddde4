//! Live streams that publishers push: `publish:`.

use crate::{LiveKind, LiveReach, OptionGroup, PlaceKind};
use millpond_stream::Source;

/// A place whose streams are pushed, as operators write it.
pub(crate) const PUBLISH: &str = "publish:";

/// The kind of these places.
pub(crate) static KIND: LiveKind = LiveKind::new(
    PlaceKind { name: "publish", about: "for pushed streams", schemes: &["publish"], options: &[OptionGroup::Live] },
    LiveReach::Pushed,
    |_, _| Ok(Source::Published),
    // Each stream has a name.
    |source, name| (!name.is_empty()).then(|| source.clone()),
);
