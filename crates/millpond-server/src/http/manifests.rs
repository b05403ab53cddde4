//! Settings of manifests.

use millpond_package::{BadCaptionRule, BadTrackFilter, CaptionRule, TrackFilter};
use millpond_settings::{
    At, Host, Setting, Settings,
    value::{BadValue, Form},
};
use std::sync::Arc;

/// Settings of manifests. A place may have its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManifestSettings {
    /// Tracks that manifests of assets list. Viewers and tokens may narrow it, not widen it.
    pub filter: TrackFilter,
    /// Rule by which they announce captions within pictures.
    pub captions: Arc<CaptionRule>,
}

impl Settings for ManifestSettings {
    const LIST: &'static [Setting<Self>] = LIST;
    const OF_PLACES: bool = true;

    fn defaults(_: &Host<'_>) -> Self {
        Self::default()
    }
}

const LIST: &[Setting<ManifestSettings>] = &[
    Setting {
        name: "filter",
        form: Form::Text,
        default: "none: all tracks",
        help: "Tracks that the HLS and DASH manifests of stored titles list, such as \"max-height=720&audio=en,de\". The \
               filter of a URL narrows it further",
        applied: At::Reload,
        apply: |manifests, text| filter(text).map(|v| manifests.filter = v),
        show: |manifests| Some(manifests.filter.to_string()).filter(|text| !text.is_empty()),
    },
    Setting {
        name: "captions",
        form: Form::Text,
        default: "auto",
        help: "Captions within pictures (CEA-608, CEA-708) that HLS and DASH manifests announce, such as \"CC1=en,CC3=es\" \
               or \"SERVICE1=en\". auto announces those that are found: in transport stream files, in live streams, and in \
               pictures that the indexes of Matroska, FLV and AVI files read; off says that there are none",
        applied: At::Reload,
        apply: |manifests, text| captions(text).map(|v| manifests.captions = v),
        show: |manifests| Some(manifests.captions.to_string()),
    },
];

/// Reads a filter; `none` and an empty text keep all tracks.
fn filter(text: &str) -> Result<TrackFilter, BadValue> {
    if text == "none" {
        return Ok(TrackFilter::ALL);
    }
    let expected = |error: BadTrackFilter| format!("a filter such as \"max-height=720&audio=en,de\" ({error})");
    let filter = TrackFilter::parse_strictly(text.trim()).map_err(|error| BadValue::new(expected(error)))?;
    match filter.contradiction() {
        Some(reason) => Err(BadValue::new(format!("a filter that can leave something to play ({reason})"))),
        None => Ok(filter),
    }
}

/// Reads a rule of captions.
fn captions(text: &str) -> Result<Arc<CaptionRule>, BadValue> {
    let expected = |error: BadCaptionRule| format!("auto, off, or a list such as \"CC1=en,CC3=es\" ({error})");
    CaptionRule::parse(text.trim()).map(Arc::new).map_err(|error| BadValue::new(expected(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captions_are_shown_in_their_canonical_form() {
        let mut manifests = ManifestSettings::default();
        let [_, setting] = LIST else { panic!("other settings") };
        assert_eq!((setting.show)(&manifests).as_deref(), Some(setting.default));
        for (text, expected) in [("CC1=eng, CC3=spa", "CC1=en,CC3=es"), ("off", "off"), ("auto", "auto")] {
            assert!((setting.apply)(&mut manifests, text).is_ok());
            assert_eq!((setting.show)(&manifests).as_deref(), Some(expected));
        }
        let error = (setting.apply)(&mut manifests, "CC5=en").unwrap_err().expected;
        assert!(
            error.starts_with("auto, off, or a list such as \"CC1=en") && error.contains("found \"CC5\""),
            "{error}"
        );
    }

    #[test]
    fn a_filter_is_shown_in_its_canonical_form() {
        let mut manifests = ManifestSettings::default();
        let [setting, _] = LIST else { panic!("other settings") };
        assert_eq!((setting.show)(&manifests), None);
        assert!((setting.apply)(&mut manifests, "audio=eng&max-rate=3000000").is_ok());
        assert_eq!((setting.show)(&manifests).as_deref(), Some("max-rate=3M&audio=en"));
        let error = (setting.apply)(&mut manifests, "max_height=720").unwrap_err().expected;
        assert!(error.starts_with("a filter such as") && error.contains("parameter \"max_height\""), "{error}");
        let error = (setting.apply)(&mut manifests, "video=none&audio=none").unwrap_err().expected;
        assert!(error.ends_with("exclude all pictures and all sound: leave one of them out)"), "{error}");
        assert_eq!((setting.show)(&manifests).as_deref(), Some("max-rate=3M&audio=en"), "the filter before");
        assert!((setting.apply)(&mut manifests, "video=none&text=none").is_ok());
        for all in ["none", ""] {
            assert!((setting.apply)(&mut manifests, all).is_ok() && manifests.filter.is_empty());
        }
    }
}
