//! Keys of encrypted tracks: `EXT-X-KEY` and `EXT-X-SESSION-KEY` (RFC 8216 4.3.2.4, 4.3.4.5; `SAMPLE-AES-CTR` of
//! draft-pantos-hls-rfc8216bis 4.4.4.4).

use crate::{
    PackageError,
    presentation::{
        Presentation,
        track::{MediaKind, PresentedTrack},
    },
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use millpond_media::{Protection, Scheme, SystemHeader, Uuid};
use std::collections::HashSet;

const WIDEVINE: Uuid = Uuid(*b"\xed\xef\x8b\xa9\x79\xd6\x4a\xce\xa3\xc8\x27\xdc\xd5\x1d\x21\xed");
const PLAYREADY: Uuid = Uuid(*b"\x9a\x04\xf0\x79\x98\x40\x42\x86\xab\x92\xe6\x5b\xe0\x88\x5f\x95");

/// Appends the `EXT-X-KEY` tags of a track; none for a clear one.
pub(super) fn of_track(out: &mut String, presentation: &Presentation, track: &PresentedTrack) {
    for attributes in tags(presentation, track) {
        out.push_str("#EXT-X-KEY:");
        out.push_str(&attributes);
        out.push('\n');
    }
}

/// Appends the `EXT-X-SESSION-KEY` tags of the `listed` tracks, without duplicates.
///
/// # Errors
/// [`PackageError::Encrypted`] where players could not learn the key of a track.
pub(super) fn of_session<'a>(
    out: &mut String,
    presentation: &Presentation,
    listed: impl Iterator<Item = &'a PresentedTrack>,
) -> Result<(), PackageError> {
    let mut seen = HashSet::new();
    for track in listed.filter(|track| track.kind != MediaKind::Text) {
        check(presentation, track)?;
        for attributes in tags(presentation, track) {
            if !seen.contains(&attributes) {
                out.push_str("#EXT-X-SESSION-KEY:");
                out.push_str(&attributes);
                out.push('\n');
                seen.insert(attributes);
            }
        }
    }
    Ok(())
}

fn check(presentation: &Presentation, track: &PresentedTrack) -> Result<(), PackageError> {
    let Some(protection) = track.protection() else { return Ok(()) };
    let (scheme, key) = (protection.scheme.name(), protection.parameters.key_id);
    let error = |found: String, expected| {
        Err(PackageError::Encrypted { output: "HLS", track: track.name.clone(), found, expected })
    };
    if method(protection.scheme).is_none() {
        return error(format!("scheme {scheme}"), "cenc or cbcs, the schemes that HLS supports (DASH supports all)");
    }
    if protection.changes_key() {
        return error(format!("{scheme} with keys that change"), "one key for the whole track (DASH supports several)");
    }
    if tags(presentation, track).is_empty() {
        let found = format!("{scheme} with key {key}, and no address of the key");
        return error(
            found,
            "an address in the place's option key-uri, or a header (pssh) of Widevine or PlayReady in the file",
        );
    }
    Ok(())
}

const fn method(scheme: Scheme) -> Option<&'static str> {
    match scheme {
        Scheme::Cenc => Some("SAMPLE-AES-CTR"),
        Scheme::Cbcs => Some("SAMPLE-AES"),
        Scheme::Cens | Scheme::Cbc1 => None,
    }
}

/// Returns the attributes of the key tags of a track: one tag for the configured address, and one for each system that
/// has a header.
fn tags(presentation: &Presentation, track: &PresentedTrack) -> Vec<String> {
    let Some((protection, media)) = track.protection().zip(track.media()) else { return Vec::new() };
    let Some(method) = method(protection.scheme) else { return Vec::new() };
    let key = key(protection);
    let tag = |uri: &str, format: Option<&str>| {
        let format = format.map_or_else(String::new, |f| format!(",KEYFORMAT=\"{f}\",KEYFORMATVERSIONS=\"1\""));
        format!("METHOD={method},URI=\"{uri}\",KEYID=0x{}{format}", key.digits())
    };
    let configured = presentation.key_address.iter().map(|address| tag(&address.of(key), address.format()));
    let systems = media.movie.system_headers.iter().filter_map(|header| {
        let (format, uri) = system(header)?;
        Some(tag(&uri, Some(&format)))
    });
    configured.chain(systems).collect()
}

/// Returns the key of the track, or that of its first group where the track itself is clear.
fn key(protection: &Protection) -> Uuid {
    let all = std::iter::once(&protection.parameters).chain(&protection.groups);
    all.filter(|parameters| parameters.is_protected).map(|parameters| parameters.key_id).next().unwrap_or(Uuid([0; 16]))
}

/// Returns key format and address of a protection system whose header is the address.
fn system(header: &SystemHeader) -> Option<(String, String)> {
    match header.system {
        WIDEVINE => {
            let uri = format!("data:text/plain;base64,{}", STANDARD.encode(&header.whole));
            Some((format!("urn:uuid:{WIDEVINE}"), uri))
        }
        PLAYREADY => {
            let uri = format!("data:text/plain;charset=UTF-16;base64,{}", STANDARD.encode(header.data()));
            Some(("com.microsoft.playready".to_owned(), uri))
        }
        _ => None,
    }
}
