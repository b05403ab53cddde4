//! Maps of striped objects, as operators write them.

use crate::{PlaceError, PlaceSource, PlaceSpec};
use millpond_store::{MAP_SUFFIX, MapTarget, ObjectPath, OriginLocation};

/// Parses the location of a map, such as `/films/a.mp4.stripe` or `s3://films/a.mp4.stripe`.
///
/// # Errors
///
/// The text is no location of objects, or its name does not end in `.stripe`.
pub fn map_target(text: &str) -> Result<MapTarget, PlaceError> {
    let wrong = || PlaceError::MapName { name: text.to_owned() };
    let whole = text.strip_suffix(MAP_SUFFIX).ok_or_else(wrong)?;
    let (folder, name) = match whole.rsplit_once('/') {
        Some(("", name)) => ("/", name),
        Some((folder, name)) if !folder.ends_with(':') && !folder.ends_with(":/") => (folder, name),
        Some(_) => return Err(wrong()),
        None => (".", whole),
    };
    let is_local = !text.contains("://");
    let folder = if is_local && !folder.starts_with(['/', '.']) { format!("./{folder}") } else { folder.to_owned() };
    let path = ObjectPath::parse(name).map_err(|_| wrong())?;
    Ok(MapTarget::new(objects(PlaceSpec::parse(&folder)?.source)?, path))
}

fn objects(source: PlaceSource) -> Result<OriginLocation, PlaceError> {
    match source {
        PlaceSource::Objects(location) => Ok(location),
        PlaceSource::Live(live) => Err(PlaceError::Live { place: live.to_string() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_have_a_place_and_a_name() {
        for (text, place) in [
            ("/films/a.mp4.stripe", "/films/a.mp4.stripe"),
            ("a.mp4.stripe", "./a.mp4.stripe"),
            ("x/a.mp4.stripe", "./x/a.mp4.stripe"),
            ("s3://bucket/x/a.mp4.stripe", "s3://bucket/x/a.mp4.stripe"),
        ] {
            assert_eq!(map_target(text).unwrap().to_string(), place);
        }
        for text in ["a.mp4", "s3://a.mp4.stripe", ".stripe", "/films/.stripe", "rtsp://h/a.mp4.stripe"] {
            assert!(map_target(text).is_err(), "{text}");
        }
    }
}
