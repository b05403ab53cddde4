//! The filter of a manifest: what its viewer, the viewer's token and the place keep of an asset's tracks.

use super::super::{Context, ReplyInfo};
use crate::{
    http::render::{AnswerError, Role},
    library::{Asset, LibraryError, fingerprint},
};
use millpond_package::{BadTrackFilter, FilterSource, PackageError, TrackFilter};
use std::sync::Arc;

/// Returns the filter of a request for a resource with a role. It is empty for all but the playlist or manifest of the asset.
///
/// # Errors
/// The filter in the query or in the token is invalid.
pub(super) fn of_request(
    context: &Context<'_>,
    (place, asset, role): (usize, &Asset, Role),
    info: &ReplyInfo,
) -> Result<TrackFilter, AnswerError> {
    if role != Role::Start {
        return Ok(TrackFilter::ALL);
    }
    let of_viewer = TrackFilter::parse(context.query()).map_err(|error| bad(asset, "query", error))?;
    let of_token = info.pass.filter().map(TrackFilter::parse_strictly).transpose();
    let of_token = of_token.map_err(|error| bad(asset, "token", error))?.unwrap_or_default();
    Ok(of_viewer.and(&of_token).and(context.front.filter(place)))
}

/// Adds whose values they are to the error of a filter that leaves nothing to play. Other errors stay.
pub(super) fn attributed(context: &Context<'_>, place: usize, info: &ReplyInfo, error: AnswerError) -> AnswerError {
    let AnswerError::Library(LibraryError::Package { asset, error: package }) = &error else { return error };
    let PackageError::Filtered { excluded } = &**package else { return error };
    // Filters that can't be read are refused before.
    let of_viewer = TrackFilter::parse(context.query()).unwrap_or_default();
    let of_token = info.pass.filter().and_then(|text| TrackFilter::parse_strictly(text).ok()).unwrap_or_default();
    let of_place = context.front.filter(place);
    let owner = context.front.filter_source(place);
    let sources = [(FilterSource::Url, &of_viewer), (FilterSource::Token, &of_token), (owner, of_place)];
    let filtered = PackageError::Filtered { excluded: excluded.of_sources(&sources) };
    LibraryError::Package { asset: asset.clone(), error: Arc::new(filtered) }.into()
}

/// Returns the identity of a resource of an asset for its entity tag: manifests of other filters have other tags.
pub(super) fn identity(asset: &Asset, filter: &TrackFilter) -> u64 {
    match filter.is_empty() {
        true => asset.id,
        false => fingerprint(format!("{:016x}?{filter}", asset.id).as_bytes()),
    }
}

fn bad(asset: &Asset, place: &'static str, error: BadTrackFilter) -> AnswerError {
    AnswerError::Filter { asset: asset.path.clone(), place, error: Box::new(error) }
}
