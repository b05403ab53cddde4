//! Stitched titles: the indexes of their items become one, in memory and steps that are charged before.

use crate::{
    error::LibraryError,
    folder::grouping::{Recipe, RecipeItem},
    library::{Library, building::Building},
};
use millpond_media::{
    Work,
    stitch::{StitchItem, stitch, stitched_bytes},
};
use millpond_package::SourceObject;
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
        let item = |RecipeItem { member, clip }: &RecipeItem| {
            let SourceObject { movie, label, .. } = sources.get(*member)?;
            let object = u16::try_from(*member).ok()?;
            Some(StitchItem { movie: movie.clone(), object, label: label.clone(), clip: *clip })
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

/// Names the manifest of an item whose file is missing.
pub(crate) fn missing(shown: &str, error: LibraryError) -> LibraryError {
    match error.is_not_found() {
        true => {
            let why = format!("an item: {error}, expected a media file at that path");
            LibraryError::Manifest { manifest: shown.to_owned(), why }
        }
        false => error,
    }
}
