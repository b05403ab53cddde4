//! Stitched titles: the indexes of their items become one, in memory and steps that are charged before.

use crate::{
    error::{IndexError, LibraryError},
    folder::grouping::{Recipe, RecipeItem},
    library::{Library, building::Building},
};
use millpond_media::{
    Work,
    stitch::{StitchItem, stitch, stitched_bytes},
};
use millpond_package::SourceObject;
use millpond_store::OriginError;
use std::sync::Arc;

/// Steps that stitching one title may take, of some ten nanoseconds each. Each item takes four for each sample of its file.
const MOST_STEPS: u64 = 1 << 28;

impl Library {
    /// Returns the one source that the items of a recipe become. `sources` are those of its members, and `shown` is the title's path.
    pub(crate) async fn stitched(
        &self,
        shown: &str,
        recipe: &Recipe,
        sources: &[SourceObject],
        building: &mut Building,
    ) -> Result<SourceObject, LibraryError> {
        let item = |RecipeItem { member, clip, is_stretch }: &RecipeItem| {
            let SourceObject { movie, label, .. } = sources.get(*member)?;
            let object = u16::try_from(*member).ok()?;
            let (movie, label) = (movie.clone(), label.clone());
            Some(StitchItem { movie, object, label, clip: *clip, is_stretch: *is_stretch })
        };
        let items: Vec<StitchItem> = recipe.items.iter().filter_map(item).collect();
        let refused = |error| LibraryError::Refused { asset: shown.to_owned(), error };
        building.charge(&self.pool, stitched_bytes(&items)).await.map_err(refused)?;
        let work = Work::new(MOST_STEPS);
        let job = {
            let work = work.clone();
            move || stitch(&items, &work)
        };
        let movie = self.pool.run(&work, job).await.map_err(refused)?;
        let wrong = |why: String| LibraryError::Manifest { manifest: shown.to_owned(), why };
        let movie = movie.map_err(|error| wrong(error.to_string()))?;
        Ok(SourceObject::new(Arc::new(movie), shown.rsplit('/').next().unwrap_or(shown).to_owned()))
    }
}

/// Names the manifest of a file that is missing. `what` is the role of the file there, such as `an item`.
pub(crate) fn missing(shown: &str, what: &str, error: LibraryError) -> LibraryError {
    match &error {
        // Viewers read this too: the path in the place, without the place's folder.
        LibraryError::Index(IndexError::Origin(OriginError::NotFound { at })) => {
            let why = format!("{what}: {}: not found, expected a media file at that path", at.path);
            LibraryError::Manifest { manifest: shown.to_owned(), why }
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_store::At;

    #[test]
    fn a_missing_item_is_named_without_the_folder() {
        let error = OriginError::NotFound { at: At::new("/srv/films", "evening/intro.mp4") };
        let told = missing("films/evening.smil", "an item", error.into()).for_viewers();
        let expected = "films/evening.smil: an item: evening/intro.mp4: not found, expected a media file at that path";
        assert_eq!(told, expected);
        let at = At::new("/srv/films", "evening/intro.mp4");
        let error = OriginError::Forbidden { at, detail: "/srv".to_owned() };
        let told = missing("films/evening.smil", "an item", error.into()).for_viewers();
        assert_eq!(told, "the storage failed: forbidden");
    }
}
