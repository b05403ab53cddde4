//! Entry point of the fuzz target for server manifests. The feature `fuzz` builds it.

use millpond_media::Movie;
use std::sync::Arc;

/// Makes the manifests of the asset that the server manifest `text` describes; `movie` stands for each file it names.
/// Returns the length of all outputs, or `None` where the text is refused.
///
/// # Panics
/// Where a file lies outside of the place, or building the asset takes more steps than its files justify.
pub fn manifest_asset(text: &str, movie: &Arc<Movie>) -> Option<usize> {
    crate::library::manifest_asset(text, movie)
}
