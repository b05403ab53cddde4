//! The web page at `/` and its data below `/.millpond/`.

mod description;
mod files;
mod folder_brief;
mod listing;
mod network;
mod search;
mod seen;
mod streams;
mod title_list;

pub(crate) use network::Served;

use super::{
    Context, Front, Reply, Target,
    client::sights,
    reply::{Negotiation, SelectedRepresentation, etag, utc},
    target::PageTarget,
};
use crate::{
    http::render::{AnswerError, TextId},
    library::{LibraryError, fingerprint},
};
use bytes::Bytes;
use files::{FileKind, PageFile, Shown};
use http::{HeaderName, HeaderValue, header};
use millpond_http::{
    body::Body,
    request::{accept::prefers_html, coding::Coding},
};
use std::time::SystemTime;

/// `Cache-Control` of data.
const NO_STORE: &str = "no-store";
/// `Cache-Control` of the files of the page.
const PAGE: &str = "no-cache";

/// `Cache-Control` of files whose path has their version.
const FOR_EVER: &str = "public, max-age=31536000, immutable";
const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

/// A resource of the page before it becomes a reply.
struct Resource {
    content_type: &'static str,
    cache_control: &'static str,
    hash: u64,
    content: Bytes,
    /// Whether it is the document, whose policy restricts what it may load and run.
    is_document: bool,
}

impl Resource {
    fn new(content_type: &'static str, cache_control: &'static str, content: impl Into<Bytes>) -> Self {
        let content = content.into();
        Self { content_type, cache_control, hash: fingerprint(&content), content, is_document: false }
    }

    fn file(file: PageFile) -> Self {
        let PageFile { kind, content, hash, is_versioned } = file;
        let cache_control = if is_versioned { FOR_EVER } else { PAGE };
        let content_type = match kind {
            FileKind::Script => SCRIPT,
            FileKind::Style => STYLE,
        };
        Self { content_type, cache_control, hash, content, is_document: false }
    }

    fn document(root: &str, shown: &Shown) -> Self {
        Self { is_document: true, ..Self::new(HTML, PAGE, files::document(root, shown)) }
    }
}

/// Selects a part of the page.
pub(super) async fn select(context: &Context<'_>, part: &PageTarget) -> Result<SelectedRepresentation, AnswerError> {
    Ok(represented(context, resource(context, part).await?).await)
}

/// Returns the page at the path of a folder or of a live stream that a browser opens, in place of the error of that path.
/// `None` where the path is neither of them.
pub(super) async fn instead(context: &Context<'_>, error: &AnswerError) -> Option<Reply> {
    let request = context.request;
    if error.status().is_server_error() || !prefers_html(request) {
        return None;
    }
    let shown = shown_at(context.front, context.target).await?;
    let document = Resource::document(&request.root(), &shown);
    let mut reply = represented(context, document).await.reply(request);
    reply.headers.append(header::VARY, HeaderValue::from_static("accept"));
    Some(reply)
}

/// Returns what the page shows of the path of a folder or live stream.
async fn shown_at(front: &Front, target: &Target) -> Option<Shown> {
    let inner = target.path().trim_matches('/');
    if let Some(live) = target.live() {
        let is_place = front.place_of(target).is_some_and(|place| place.inside.trim_matches('/').is_empty());
        let shown = if is_place { Shown::Folder(inner.to_owned()) } else { Shown::Stream(inner.to_owned()) };
        return live.resource.is_none().then_some(shown);
    }
    listing::is_folder(front, inner).await.then(|| Shown::Folder(inner.to_owned()))
}

/// Makes a representation of a resource, in the coding that the client prefers.
async fn represented(context: &Context<'_>, resource: Resource) -> SelectedRepresentation {
    let Context { front, request, .. } = *context;
    let mut selected = SelectedRepresentation {
        content_type: HeaderValue::from_static(resource.content_type),
        cache_control: HeaderValue::from_static(resource.cache_control),
        etag: etag(resource.hash),
        modified: None,
        more: fields(front, resource.is_document),
        negotiation: Negotiation::Uncoded,
        body: Body::bytes(resource.content.clone()),
    };
    if let Some(coding) = Coding::preferred(request)
        && let Some(coded) = front.lasting.coded_texts.get(TextId::Hash(resource.hash), coding, &resource.content).await
    {
        (selected.negotiation, selected.body) = (Negotiation::Coded(coding), Body::bytes(coded));
    }
    selected
}

/// Returns the fields that restrict what the page may load and run.
fn fields(front: &Front, is_document: bool) -> Vec<(HeaderName, HeaderValue)> {
    let mut fields = vec![(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"))];
    if is_document && let Ok(policy) = HeaderValue::from_str(&policy(front.cluster().is_some(), front.key_origins())) {
        fields.push((header::CONTENT_SECURITY_POLICY, policy));
        fields.push((header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")));
    }
    fields
}

/// Returns the value of `Content-Security-Policy`. Scripts come from this server only, or are that of the document. Media may come from the other nodes of a
/// cluster, and keys from their servers.
fn policy(is_node: bool, key_origins: &[String]) -> String {
    let mut more = String::new();
    for origin in key_origins {
        more.extend([" ", origin]);
    }
    if is_node {
        more.push_str(" http: https:");
    }
    let (script, style) = files::sources();
    // Players make object URLs of their media sources and of their workers. hls.js begins subtitles with an empty file in a `data:` URL.
    format!(
        "default-src 'none'; script-src 'self' {script}; style-src 'self' {style}; img-src 'self' data: blob:; media-src 'self' data: blob:{more}; \
         connect-src 'self'{more}; worker-src 'self' blob:; base-uri 'none'; form-action 'none'"
    )
}

/// Makes a part of the page.
async fn resource(context: &Context<'_>, part: &PageTarget) -> Result<Resource, LibraryError> {
    let Context { front, request, target, .. } = *context;
    let absent = || LibraryError::NoAsset(target.path().to_owned());
    let text = match part {
        PageTarget::Document => return Ok(Resource::document(&request.root(), &Shown::Fragment)),
        PageTarget::Time => return Ok(Resource::new("text/plain", NO_STORE, utc(SystemTime::now()))),
        PageTarget::File => return files::file(target.path()).map(Resource::file).ok_or_else(absent),
        PageTarget::Folder(folder) => listing::assets(front, folder).await?,
        PageTarget::Asset(path) => description::asset(front, path).await?,
        PageTarget::Brief(path) => description::brief(front, path).await?,
        PageTarget::FolderBrief(path) => folder_brief::brief(front, path, &sights(context)).await,
        PageTarget::Titles(folder, format) => {
            let text = title_list::list(context, folder, *format).await?;
            return Ok(Resource::new(format.content_type(), NO_STORE, text));
        }
        PageTarget::Search => search::search(front, context.query(), &sights(context)).await?,
        PageTarget::Network => network::network(context).ok_or_else(absent)?,
    };
    Ok(Resource::new("application/json", NO_STORE, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_come_from_this_server_only() {
        let alone = policy(false, &[]);
        assert!(alone.starts_with("default-src 'none'; script-src 'self' 'sha256-"), "{alone}");
        assert!(!alone.contains("unsafe"), "{alone}");
        assert!(alone.contains("connect-src 'self';") && !alone.contains("http"), "{alone}");
        let keys = policy(false, &["https://keys.example".to_owned()]);
        assert!(keys.contains("connect-src 'self' https://keys.example;"), "{keys}");
        assert!(policy(true, &[]).contains("media-src 'self' data: blob: http: https:;"));
    }
}
