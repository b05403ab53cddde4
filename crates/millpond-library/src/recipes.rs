//! From a path to the recipe of an asset, with as few requests to the storage as the form of the path allows.

use crate::{
    error::LibraryError,
    folder::{
        OWN_MANIFESTS,
        grouping::{self, Recipe},
        renditions,
    },
    library::{Library, building::Building, index::HEAD},
    names,
};
use millpond_media::{Foreign, Work};
use millpond_store::{Entry, ObjectPath, OriginError};

/// Longest listing that is grouped on the calling thread. Longer ones are heavy work.
const FEW_ENTRIES: usize = 256;

impl Library {
    pub(crate) async fn recipe(
        &self,
        place: &str,
        path: &ObjectPath,
        building: &mut Building,
    ) -> Result<Recipe, LibraryError> {
        let name = path.file_name();
        if names::is_url_set(name) {
            return grouping::url_set(path);
        }
        if names::is_manifest(name) {
            return self.manifest(place, path, building).await;
        }
        if names::is_playlist(name)
            && let Some((found, address)) = self.multivariant(place, path, building).await?
        {
            let of = path.clone();
            return self.job(path, move || renditions::ladder(&of, &address, &found)).await?;
        }
        if names::is_media(name) || names::is_playlist(name) {
            return self.file(place, path, building).await;
        }
        if let Some((_, programme)) = names::programme_of(path.as_str()) {
            match self.file(place, &path.parent(), building).await {
                // A folder may have such a name too.
                Err(error) if error.is_no_file() => {}
                found => return found.map(|recipe| grouping::of_programme(recipe, programme)),
            }
        }
        // The name stands for a format that is not read; the bytes may be of another one.
        if Foreign::of_name(name).is_some() {
            match self.file(place, path, building).await {
                Err(error) if error.is_not_found() => {}
                found => return found,
            }
        }
        let entries = match self.store.list(place, path).await {
            // A disk tells a file from a folder at no cost.
            Err(OriginError::NotAFile { .. }) => return self.file(place, path, building).await,
            Err(OriginError::Unsupported { .. } | OriginError::NotFound { .. }) => Vec::new(),
            listed => listed?,
        };
        if entries.is_empty() && names::has_extension(name) {
            return match self.file(place, path, building).await {
                Err(error) if error.is_not_found() => Ok(Recipe::default()),
                found => found,
            };
        }
        self.folder(place, path, entries, building).await
    }

    async fn manifest(&self, place: &str, path: &ObjectPath, building: &mut Building) -> Result<Recipe, LibraryError> {
        let text = self.read_text(place, path, building).await?;
        let manifest = path.clone();
        self.job(path, move || grouping::manifest(&manifest, &String::from_utf8_lossy(&text))).await?
    }

    async fn file(&self, place: &str, path: &ObjectPath, building: &mut Building) -> Result<Recipe, LibraryError> {
        // Local folders only: listing a large bucket would delay the first picture.
        if self.store.open_head(place, path, HEAD).await?.file().is_none() {
            return Ok(grouping::single(path, &[]));
        }
        let folder = path.parent();
        let beside: Vec<Entry> = self.store.list(place, &folder).await.unwrap_or_default();
        let (recipe, beside) = self.grouped(path, beside, |path, beside| Ok(grouping::single(path, beside))).await?;
        if !recipe.sidecars.is_empty() {
            building.listed = Some((folder, beside));
        }
        Ok(recipe)
    }

    async fn folder(
        &self,
        place: &str,
        path: &ObjectPath,
        entries: Vec<Entry>,
        building: &mut Building,
    ) -> Result<Recipe, LibraryError> {
        let own =
            OWN_MANIFESTS.into_iter().find(|own| entries.iter().any(|entry| !entry.folder && entry.name == **own));
        if let Some(own) = own.and_then(|own| path.join(own).ok()) {
            let recipe = self.manifest(place, &own, building).await?;
            building.listed = Some((path.clone(), entries));
            return Ok(recipe);
        }
        let grouped = self.titles(place);
        let group = move |path: &ObjectPath, entries: &[Entry]| grouping::folder(path, entries, grouped);
        let (recipe, entries) = self.grouped(path, entries, group).await?;
        building.listed = Some((path.clone(), entries));
        Ok(recipe)
    }

    /// Applies `group` to a listing, on the pool where it is long. Returns the listing too.
    async fn grouped(
        &self,
        path: &ObjectPath,
        entries: Vec<Entry>,
        group: impl FnOnce(&ObjectPath, &[Entry]) -> Result<Recipe, LibraryError> + Send + 'static,
    ) -> Result<(Recipe, Vec<Entry>), LibraryError> {
        if entries.len() <= FEW_ENTRIES {
            return Ok((group(path, &entries)?, entries));
        }
        let owned = path.clone();
        self.job(path, move || group(&owned, &entries).map(|recipe| (recipe, entries))).await?
    }

    /// Runs a short job of the pool for the object or folder at `path`.
    pub(crate) async fn job<T: Send + 'static>(
        &self,
        path: &ObjectPath,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, LibraryError> {
        let refused = |error| LibraryError::Refused { asset: path.to_string(), error };
        self.pool.run(&Work::unlimited(), job).await.map_err(refused)
    }
}
