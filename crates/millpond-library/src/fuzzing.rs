//! Access for fuzz targets: from the text of a server manifest to the outputs of its asset, without a store.

use crate::folder::grouping;
use millpond_media::{Movie, Work, WorkError};
use millpond_package::{PackageError, Presentation, PresentationOptions, Sidecar, dash, hls};
use millpond_store::ObjectPath;
use std::sync::Arc;

/// Steps for each file that a manifest names. The movies that fuzzing uses have a few thousand samples.
const STEPS_OF_A_FILE: u64 = 1 << 20;

/// Makes the manifests of the asset that a server manifest describes, where `movie` stands for each of its files.
/// Returns the length of all outputs, or `None` where the text is refused.
///
/// # Panics
/// Where a file lies outside of the place, or building the asset takes more steps than its files justify.
pub fn manifest_asset(text: &str, movie: &Arc<Movie>) -> Option<usize> {
    let path = ObjectPath::parse("folder/film.smil").ok()?;
    let recipe = grouping::manifest(&path, text).ok()?;
    let files = recipe.members.len() + recipe.sidecars.len();
    let is_inside = |member: &grouping::Member| member.path.as_str().split('/').all(|part| part != "..");
    assert!(recipe.members.iter().all(is_inside), "{:?}", recipe.members);
    let sources = recipe.members.iter().map(|member| member.source(movie.clone())).collect();
    let sidecar = |file: &grouping::SidecarFile| Sidecar {
        language: file.language.clone(),
        name: file.name.clone(),
        cues: Arc::default(),
        default: false,
        forced: file.forced,
    };
    let sidecars = recipe.sidecars.iter().map(sidecar).collect();
    let steps = STEPS_OF_A_FILE * files as u64;
    let presentation = match Presentation::build(sources, sidecars, &PresentationOptions::default(), &Work::new(steps))
    {
        Err(PackageError::Work(WorkError::Exhausted { .. })) => panic!("more than {steps} steps for {files} files"),
        built => built.ok()?,
    };
    let playlist = |container| hls::multivariant(&presentation, container).map_or(0, |text| text.len());
    let mpd = dash::mpd(&presentation).map_or(0, |text| text.len());
    Some(mpd + playlist(hls::Container::Fmp4) + playlist(hls::Container::Ts))
}
