//! The assets of all places.

use super::{super::AdminState, Outcome, page, request::ApiRequest, show};
use crate::{
    http::{AssetFilter, assets_of},
    library::Query,
    problem::{self, Problem},
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Filters of assets.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct AssetQuery {
    /// Name of a place.
    place: Option<String>,
    /// Path of a folder: only assets below it are listed.
    folder: Option<String>,
    /// Words of the path, upper and lower case alike.
    q: Option<String>,
    /// Most items, 1 to 1000.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
    /// `next-cursor` of the page before.
    cursor: Option<String>,
}

/// An asset.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct ListedAsset {
    /// Path, as in URLs.
    path: String,
    /// Name of the place.
    place: String,
    /// `file`, `list`, `folder` or `manifest`.
    kind: &'static str,
    /// Total length of the files.
    bytes: u64,
}

/// One page of the assets.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct AssetPage {
    /// The assets, by their paths.
    items: Vec<ListedAsset>,
    /// Assets that fit the filters, on all pages.
    total: usize,
    /// `cursor` of the next page; null on the last page.
    next_cursor: Option<String>,
    /// Whether all folders of the places have been read.
    is_complete: bool,
}

/// Lists the assets of all places with stored media.
#[utoipa::path(get, path = "/api/v1/assets", tag = "media", params(AssetQuery), responses((status = 200, body = AssetPage)))]
pub(super) async fn list_assets(request: &ApiRequest, state: &AdminState) -> Outcome {
    let AssetQuery { place, folder, q, limit, cursor } = request.query()?;
    let folder = folder.map(|folder| folder.trim_matches('/').to_owned());
    let words = q.as_deref().and_then(Query::parse);
    let filter = AssetFilter { place, folder, words, cursor, limit: page::limit(limit)? };
    let found = assets_of(&state.front, filter).await;
    let found = found.map_err(|error| Problem::new(problem::status(&error)).detail(error.to_string()))?;
    let next_cursor = found.rows.last().filter(|_| found.has_more).map(|row| row.path.clone());
    let items = found.rows.into_iter().map(|row| ListedAsset {
        path: row.path,
        place: row.place.to_string(),
        kind: row.kind,
        bytes: row.bytes,
    });
    Ok(show(&AssetPage { items: items.collect(), total: found.total, next_cursor, is_complete: found.is_complete }))
}
