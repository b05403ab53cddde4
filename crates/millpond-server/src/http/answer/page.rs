//! The web page at `/` and its data below `/.millpond/`.

use super::{
    Front, dates, page_asset, page_listing, page_network, page_search,
    representation::{Negotiation, SelectedRepresentation, etag},
    viewers::ConnectionViewers,
};
use crate::{
    http::{
        body::Body,
        render::{AnswerError, TextId},
        request::{Request, coding::Coding, uri::parameter},
    },
    library::{LibraryError, fingerprint},
};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, header};
use std::time::SystemTime;

/// Path of the server's time, with which players of live DASH compare their clocks.
pub(super) const TIME: &str = "/.millpond/time";
/// `Cache-Control` of data.
const NO_STORE: &str = "no-store";
/// `Cache-Control` of the files of the page.
const PAGE: &str = "no-cache";

macro_rules! embedded {
    ($($path:literal => $file:literal, $kind:literal;)*) => {
        /// Files of the page: path, media type, content.
        const FILES: &[(&str, &str, &[u8])] = &[$(($path, $kind, include_bytes!(concat!("../../../page/", $file)))),*];
    };
}

embedded! {
    "/" => "index.html", "text/html; charset=utf-8";
    "/.millpond/app.js" => "app.js", "text/javascript; charset=utf-8";
    "/.millpond/asset.js" => "asset.js", "text/javascript; charset=utf-8";
    "/.millpond/common.js" => "common.js", "text/javascript; charset=utf-8";
    "/.millpond/engines.js" => "engines.js", "text/javascript; charset=utf-8";
    "/.millpond/list.js" => "list.js", "text/javascript; charset=utf-8";
    "/.millpond/live.js" => "live.js", "text/javascript; charset=utf-8";
    "/.millpond/pictures.js" => "pictures.js", "text/javascript; charset=utf-8";
    "/.millpond/qr.js" => "qr.js", "text/javascript; charset=utf-8";
    "/.millpond/style.css" => "style.css", "text/css; charset=utf-8";
    "/.millpond/vendor/hls.min.js" => "vendor/hls.min.js", "text/javascript; charset=utf-8";
    "/.millpond/vendor/dash.all.min.js" => "vendor/dash.all.min.js", "text/javascript; charset=utf-8";
    "/.millpond/vendor/shaka-player.compiled.js" => "vendor/shaka-player.compiled.js", "text/javascript; charset=utf-8";
}

impl Front {
    /// Selects a resource of the page.
    pub(super) async fn page(
        &self,
        path: &str,
        request: &Request,
        viewers: &ConnectionViewers,
    ) -> Result<SelectedRepresentation, AnswerError> {
        let (content_type, cache_control, bytes) = content(self, path, request, viewers).await?;
        let hash = fingerprint(&bytes);
        let mut selected = SelectedRepresentation {
            content_type: HeaderValue::from_static(content_type),
            cache_control: HeaderValue::from_static(cache_control),
            etag: etag(hash),
            modified: None,
            more: self.page_fields(path),
            negotiation: Negotiation::Uncoded,
            body: Body::bytes(bytes.clone()),
        };
        if let Some(coding) = Coding::preferred(request)
            && let Some(coded) = self.coded_texts.get(TextId::Hash(hash), coding, &bytes).await
        {
            (selected.negotiation, selected.body) = (Negotiation::Coded(coding), Body::bytes(coded));
        }
        Ok(selected)
    }

    /// Returns the fields that restrict what the page may load and run.
    fn page_fields(&self, path: &str) -> Vec<(HeaderName, HeaderValue)> {
        let mut fields = vec![(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"))];
        if path == "/"
            && let Ok(policy) = HeaderValue::from_str(&policy(self.cluster().is_some(), self.key_origins()))
        {
            fields.push((header::CONTENT_SECURITY_POLICY, policy));
            fields.push((header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")));
        }
        fields
    }
}

/// Returns the value of `Content-Security-Policy`. Scripts come from this server only. Media may come from the other nodes of a
/// cluster, and keys from their servers.
fn policy(is_node: bool, key_origins: &[String]) -> String {
    let mut more = String::new();
    for origin in key_origins {
        more.extend([" ", origin]);
    }
    if is_node {
        more.push_str(" http: https:");
    }
    // Players make object URLs of their media sources and of their workers.
    format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:{more}; \
         connect-src 'self'{more}; worker-src 'self' blob:; base-uri 'none'; form-action 'none'"
    )
}

/// Returns media type, `Cache-Control` and content of a resource of the page.
async fn content(
    front: &Front,
    path: &str,
    request: &Request,
    viewers: &ConnectionViewers,
) -> Result<(&'static str, &'static str, Bytes), LibraryError> {
    if let Some((_, kind, content)) = FILES.iter().find(|(p, ..)| *p == path) {
        return Ok((kind, PAGE, Bytes::from_static(content)));
    }
    if path == TIME {
        return Ok(("text/plain", NO_STORE, Bytes::from(dates::utc(SystemTime::now()))));
    }
    let query = request.split().1;
    let absent = || LibraryError::NoAsset(path.to_owned());
    let text = match path {
        "/.millpond/assets" => page_listing::assets(front, &parameter(query, "folder")).await?,
        "/.millpond/asset" => page_asset::asset(front, &parameter(query, "path")).await?,
        "/.millpond/brief" => page_asset::brief(front, &parameter(query, "path")).await?,
        "/.millpond/search" => page_search::search(front, query, &front.sights(request, viewers)).await?,
        "/.millpond/network" => page_network::network(front, request, viewers).ok_or_else(absent)?,
        _ => return Err(absent()),
    };
    Ok(("application/json", NO_STORE, Bytes::from(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_come_from_this_server_only() {
        let alone = policy(false, &[]);
        assert!(alone.starts_with("default-src 'none'; script-src 'self';"), "{alone}");
        assert!(alone.contains("connect-src 'self';") && !alone.contains("http"), "{alone}");
        let keys = policy(false, &["https://keys.example".to_owned()]);
        assert!(keys.contains("connect-src 'self' https://keys.example;"), "{keys}");
        assert!(policy(true, &[]).contains("media-src 'self' blob: http: https:;"));
    }
}
