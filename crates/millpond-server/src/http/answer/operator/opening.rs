//! The beginnings of titles, which an operator can keep in the cache.

use super::{super::Front, streams};
use crate::{
    http::render::AnswerError,
    library::{LibraryError, PlacePath},
};
use millpond_media::Work;
use millpond_package::ObjectIndex;
use millpond_store::Object;
use std::{ops::Range, sync::Arc, time::Duration};

/// Longest part of an object behind its media that is taken for its index.
const INDEX: u64 = 64 << 20;

/// Returns the bytes of each object of an asset that hold its index and its first media, up to the time `first`.
///
/// # Errors
/// A path without an asset, and those of the library.
pub(crate) async fn opening_at(
    front: &Front,
    path: &str,
    first: Duration,
) -> Result<Vec<(Arc<Object>, Vec<Range<u64>>)>, AnswerError> {
    let PlacePath { name: place, inside, .. } = front.place(path).ok_or_else(|| front.without_place(path))?;
    streams::refuse(front, path).await?;
    let asset = front.library.open(place, inside.trim_matches('/')).await?;
    let job = {
        let asset = asset.clone();
        move || {
            let opening = asset.presentation.opening(first.as_secs_f64());
            let ends: Vec<_> =
                (0..asset.objects.len()).map(|index| asset.presentation.media_end(number(index))).collect();
            (opening, ends)
        }
    };
    let (opening, ends) = front
        .library
        .pool()
        .run(&Work::unlimited(), job)
        .await
        .map_err(|error| LibraryError::Refused { asset: path.to_owned(), error })?;
    let each = asset.objects.iter().zip(ends).enumerate().map(|(index, (object, end))| {
        let len = object.meta().len;
        let of_object = opening.iter().filter(|range| range.object == number(index));
        let mut ranges: Vec<_> = of_object.map(|range| range.range.start..range.range.end.min(len)).collect();
        let rest = end.map(|end| end..len).filter(|rest| !rest.is_empty() && rest.end - rest.start <= INDEX);
        ranges.extend(rest);
        (object.clone(), ranges)
    });
    Ok(each.collect())
}

/// Returns the number of the object at a place of an asset's list.
fn number(place: usize) -> ObjectIndex {
    ObjectIndex(u16::try_from(place).unwrap_or(u16::MAX))
}
