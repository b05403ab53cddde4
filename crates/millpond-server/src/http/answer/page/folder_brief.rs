//! Pictures of folders on their cards.

use super::{
    super::Front,
    description,
    seen::{SeenPlace, sees},
};
use crate::library::PlacePath;
use millpond_access::Sight;
use millpond_library::uri::encode;
use serde_json::json;

/// Returns the picture of a folder. `sights` has what the client may see of each place: a card of a closed folder asks for no
/// password.
pub(super) async fn brief(front: &Front, folder: &str, sights: &[Option<Sight>]) -> String {
    let artwork = picture(front, folder, &SeenPlace::all(front, sights)).await;
    json!({ "path": format!("{folder}/"), "artwork": artwork }).to_string()
}

/// Returns the URL of the picture: an image file, else an image of the first title.
async fn picture(front: &Front, folder: &str, seen: &[SeenPlace]) -> Option<String> {
    let PlacePath { name: place, inside, .. } = front.place(folder)?;
    if front.sources.is_live(place) || !sees(seen, folder) {
        return None;
    }
    let prefix = &seen.iter().find(|seen| seen.name == *place)?.prefix;
    let found = front.catalogue.picture(place, prefix, inside).await;
    if let Some(image) = found.image.filter(|image| sees(seen, image)) {
        return Some(format!("/{}", encode(&image)));
    }
    let first = found.first.filter(|first| sees(seen, first))?;
    description::image(front, &first).await
}
