//! Captions within the pictures of an adaptation set (ANSI/SCTE 214-1; DASH-IF IOP).

use crate::{
    language,
    manifest::captions::{CaptionListing, ListedCaptions},
    writing::xml::Writer,
};
use millpond_media::CaptionChannel;

const CEA_608: &str = "urn:scte:dash:cc:cea-608:2015";
const CEA_708: &str = "urn:scte:dash:cc:cea-708:2015";
/// Code of an unknown language (ISO 639-2).
const UNKNOWN: &str = "und";

/// Writes a descriptor for the channels of CEA-608, and one for the services of CEA-708.
pub(super) fn elements(w: &mut Writer, captions: &CaptionListing<'_>) {
    let (mut channels, mut services) = (Vec::new(), Vec::new());
    for captions in captions.listed() {
        match captions.channel {
            CaptionChannel::Cea608(number) => channels.push(format!("CC{number}={}", code(captions))),
            CaptionChannel::Cea708(number) => services.push(format!("{number}=lang:{}", code(captions))),
        }
    }
    for (scheme, values) in [(CEA_608, channels), (CEA_708, services)] {
        if !values.is_empty() {
            w.start("Accessibility").attribute("schemeIdUri", scheme).attribute("value", &values.join(";")).end();
        }
    }
}

/// Returns the ISO 639-2/B code of the language, as the schemes require.
fn code(captions: &ListedCaptions<'_>) -> String {
    captions.language.map_or_else(|| UNKNOWN.to_owned(), language::bibliographic)
}
