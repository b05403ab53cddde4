//! Requests for resources of assets: playlists, manifests, segments and texts.

use super::{
    Front, ReplyInfo,
    representation::{Negotiation, SelectedRepresentation, etag},
    viewers::{ConnectionViewers, Receipt, client},
};
use crate::{
    http::{
        Kind,
        body::Body,
        render::{self, AnswerError, TextId},
        request::{Request, coding::Coding},
    },
    library::{Asset, LibraryError, Resource, Route, is_manifest, is_media},
};
use http::{HeaderValue, Method, header};
use std::sync::Arc;

impl Front {
    /// Selects the resource or file of a path inside a place.
    pub(super) async fn select(
        &self,
        path: &str,
        request: &Request,
        viewers: &ConnectionViewers,
        info: &mut ReplyInfo,
    ) -> Result<SelectedRepresentation, AnswerError> {
        let Some((index, place, inside)) = self.place(path) else {
            let names: Vec<&str> = self.places.iter().map(|p| &**p).collect();
            return Err(LibraryError::NoAsset(format!("{path}: no such place: there are {}", names.join(", "))).into());
        };
        self.attribute(index, Kind::File, info);
        let Some(route) = Route::parse(inside) else { return self.file(index, inside, request, viewers).await };
        let name = route.asset.rsplit('/').next().unwrap_or("");
        let is_certain = is_media(name) || is_manifest(name) || name.ends_with(".urlset");
        match self.library.open_version(place, &route.asset, route.version).await {
            Ok(asset) => self.resource(index, &asset, route, request, viewers, info).await,
            // A folder that contains finished playlists is passed through.
            Err(LibraryError::NoAsset(_)) if !is_certain => self.file(index, inside, request, viewers).await,
            Err(
                error @ (LibraryError::TooMany { .. }
                | LibraryError::NotOneTitle { .. }
                | LibraryError::OnlyForeign { .. }),
            ) if !is_certain => self.file(index, inside, request, viewers).await.map_err(|_| error.into()),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes a resource of an asset.
    async fn resource(
        &self,
        place: usize,
        asset: &Arc<Asset>,
        route: Route,
        request: &Request,
        viewers: &ConnectionViewers,
        info: &mut ReplyInfo,
    ) -> Result<SelectedRepresentation, AnswerError> {
        let profile = render::profile(&route.resource);
        info.kind = profile.kind;
        self.renderer.prepare(asset, &route.resource).await?;
        if request.method == Method::GET {
            info.receipt = self.note_viewer(asset, &route.resource, request, viewers).await?;
        }
        // A client may insist on a reply made for it (RFC 9111 section 5.2.1.4). Such a reply bypasses the caches.
        let fresh = request.contains(header::CACHE_CONTROL, "no-cache");
        let permission = asset.permission(&self.store);
        let has_pathways = self.has_pathways(&route);
        if has_pathways && request.method == Method::GET {
            self.book(place, asset).await?;
        }
        let may_code = profile.is_text && !permission.no_transform;
        let coding = Coding::preferred(request).filter(|_| may_code && !has_pathways);
        let (body, coded) = self.resource_body(asset, route.resource.clone(), coding, fresh).await?;
        let selected = SelectedRepresentation {
            content_type: HeaderValue::from_static(profile.content_type),
            cache_control: self.cache_control(place).made(route.version.is_some(), &permission),
            etag: etag(asset.id),
            modified: asset.modified,
            more: Vec::new(),
            negotiation: if profile.is_text {
                coded.map_or(Negotiation::Uncoded, Negotiation::Coded)
            } else {
                Negotiation::Fixed
            },
            body,
        };
        Ok(match has_pathways {
            true => {
                self.with_pathways(
                    (place, &route),
                    request,
                    (request.is_secure(viewers.is_secure()), may_code),
                    selected,
                )
                .await
            }
            false => selected,
        })
    }

    /// Tells the store which segment a viewer has reached.
    async fn note_viewer(
        &self,
        asset: &Asset,
        resource: &Resource,
        request: &Request,
        viewers: &ConnectionViewers,
    ) -> Result<Option<Receipt>, AnswerError> {
        for object in &asset.objects {
            self.store.prepare(object).await?;
        }
        Ok(viewers.segment_requested(&self.store, asset, resource, client(request)))
    }

    /// Returns the body of a resource and its coding. A text that the preferred coding does not shorten has none.
    async fn resource_body(
        &self,
        asset: &Arc<Asset>,
        resource: Resource,
        coding: Option<Coding>,
        fresh: bool,
    ) -> Result<(Body, Option<Coding>), AnswerError> {
        let Some(coding) = coding else { return Ok((self.renderer.body(asset, resource, fresh).await?, None)) };
        let text = TextId::Resource(asset.id, resource.clone());
        if !fresh && let Some(Some(coded)) = self.coded_texts.cached(&text, coding) {
            return Ok((Body::bytes(coded), Some(coding)));
        }
        let body = self.renderer.body(asset, resource, fresh).await?;
        let Some(bytes) = body.as_bytes() else { return Ok((body, None)) };
        match self.coded_texts.get(text, coding, &bytes).await {
            Some(coded) => Ok((Body::bytes(coded), Some(coding))),
            None => Ok((body, None)),
        }
    }
}
