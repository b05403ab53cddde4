//! `ContentProtection` of encrypted tracks (ISO/IEC 23009-1 5.8.4.1, ISO/IEC 23001-7 11.2; DASH-IF IOP part 6).

use crate::{manifest::track_listing::TrackListing, writing::xml::Writer};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use millpond_media::{Scheme, Uuid};

/// Scheme of encrypted ISO base media files.
const MP4_PROTECTION: &str = "urn:mpeg:dash:mp4protection:2011";

/// SystemID of the common header.
const COMMON: Uuid = Uuid(*b"\x10\x77\xef\xec\xc0\xb2\x4d\x02\xac\xe3\x3c\x1e\x52\xe2\xfb\x4b");

/// Scheme and key identifier that all representations of one adaptation set share.
pub(super) type Key = (Scheme, Uuid);

pub(super) fn key(track: &TrackListing<'_>) -> Option<Key> {
    track.protection().map(|protection| (protection.scheme, protection.parameters.key_id))
}

/// Declares the name space of `cenc:default_KID` and `cenc:pssh`, where the MPD uses it.
pub(super) fn name_space(w: &mut Writer, tracks: &[TrackListing<'_>]) {
    if tracks.iter().any(|track| track.protection().is_some()) {
        w.attribute("xmlns:cenc", "urn:mpeg:cenc:2013");
    }
}

/// Writes one element for the scheme and the key, and one for each header of a protection system.
pub(super) fn elements(w: &mut Writer, track: &TrackListing<'_>) {
    let Some(protection) = track.protection() else { return };
    w.start("ContentProtection").attribute("schemeIdUri", MP4_PROTECTION).attribute("value", protection.scheme.name());
    // A track that is clear except for groups of samples has no default key.
    if protection.parameters.is_protected {
        w.attribute("cenc:default_KID", &protection.parameters.key_id.to_string());
    }
    w.end();
    for header in track.headers {
        system(w, header.system, &header.whole);
    }
    if track.headers.is_empty() && protection.parameters.is_protected {
        system(w, COMMON, &common_header(protection.parameters.key_id));
    }
}

fn system(w: &mut Writer, system: Uuid, header: &[u8]) {
    w.start("ContentProtection").attribute("schemeIdUri", &format!("urn:uuid:{system}"));
    w.start("cenc:pssh").end_with(&STANDARD.encode(header)).end();
}

/// Returns the header that states a key for any system (W3C, "cenc" Initialization Data Format 4). Some players look
/// first for a system's element, which files without a header lack.
fn common_header(key: Uuid) -> Vec<u8> {
    [&b"\0\0\0\x34pssh\x01\0\0\0"[..], &COMMON.0, &[0, 0, 0, 1], &key.0, &[0; 4]].concat()
}
