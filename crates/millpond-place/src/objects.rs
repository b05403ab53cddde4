//! Places with objects: folders, web servers and buckets.

use crate::{
    OptionGroup, PlaceError, PlaceKind,
    urls::{shown, url},
};
use millpond_store::{BucketOptions, BucketPrefix, Cloud, OriginLocation};
use url::Url;

const FOLDER: PlaceKind = PlaceKind { name: "folder", about: "a folder", schemes: &[], options: &[OptionGroup::Files] };

const WEB: PlaceKind = PlaceKind {
    name: "http",
    about: "a web server",
    schemes: &["http", "https"],
    options: &[OptionGroup::Files, OptionGroup::Remote, OptionGroup::WebServer],
};

const S3: PlaceKind = PlaceKind {
    name: "s3",
    about: "an S3 bucket",
    schemes: &["s3"],
    options: &[OptionGroup::Files, OptionGroup::Remote, OptionGroup::Bucket, OptionGroup::S3],
};

const GS: PlaceKind = PlaceKind {
    name: "gcs",
    about: "a bucket of Google",
    schemes: &["gs"],
    options: &[OptionGroup::Files, OptionGroup::Remote, OptionGroup::Bucket],
};

const AZ: PlaceKind = PlaceKind {
    name: "azure",
    about: "a container of Azure",
    schemes: &["az"],
    options: &[OptionGroup::Files, OptionGroup::Remote, OptionGroup::Bucket, OptionGroup::Azure],
};

/// All kinds of places with objects.
pub(crate) static KINDS: [&PlaceKind; 5] = [&FOLDER, &WEB, &S3, &GS, &AZ];

/// Returns the kind of a location.
pub(crate) fn kind(location: &OriginLocation) -> &'static PlaceKind {
    match location {
        OriginLocation::Folder(_) => &FOLDER,
        OriginLocation::Http(_) => &WEB,
        OriginLocation::Bucket(bucket) => match bucket.cloud {
            Cloud::S3 => &S3,
            Cloud::Gs => &GS,
            Cloud::Az => &AZ,
        },
    }
}

/// Parses a URL of objects, whose scheme is in small letters; `None` where the scheme has none.
pub(crate) fn parse(text: &str, scheme: &str) -> Option<Result<OriginLocation, PlaceError>> {
    let kind = KINDS.iter().find(|kind| kind.schemes.contains(&scheme))?;
    let cloud = match kind.name {
        "s3" => Cloud::S3,
        "gcs" => Cloud::Gs,
        "azure" => Cloud::Az,
        _ => return Some(url(text).map(OriginLocation::Http)),
    };
    Some(bucket(text, cloud).map(OriginLocation::Bucket))
}

fn bucket(text: &str, cloud: Cloud) -> Result<BucketPrefix, PlaceError> {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let wrong = |detail: &str| PlaceError::Url { text: shown(text), detail: detail.to_owned() };
    if bucket.is_empty() {
        return Err(wrong("expected the name of a bucket"));
    }
    if bucket.contains(['@', '?', '#', ':']) {
        return Err(wrong("expected a bucket name only: credentials and endpoints are options"));
    }
    if !bucket.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '$')) {
        return Err(wrong("expected a bucket name of letters, digits, \"-\", \".\" and \"_\""));
    }
    let prefix = prefix.trim_matches('/').to_owned();
    if prefix.split('/').any(|part| part == "." || part == "..") {
        return Err(wrong("expected no `.` or `..` in the prefix"));
    }
    Ok(BucketPrefix { cloud, bucket: bucket.to_owned(), prefix })
}

/// Returns a URL of the server of a location; `None` for a folder, or where only the environment names the server.
pub(crate) fn server(location: &OriginLocation, options: &BucketOptions) -> Option<Url> {
    let endpoint = options.endpoint.as_deref();
    let cloud = match location {
        OriginLocation::Folder(_) => return None,
        OriginLocation::Http(url) => return Some(url.clone()),
        OriginLocation::Bucket(bucket) => bucket.cloud,
    };
    let text = match (endpoint, cloud) {
        (Some(endpoint), _) => endpoint.to_owned(),
        (None, Cloud::S3) => {
            format!("https://s3.{}.amazonaws.com/", options.region.as_deref().unwrap_or("us-east-1"))
        }
        (None, Cloud::Gs) => "https://storage.googleapis.com/".to_owned(),
        (None, Cloud::Az) => return None,
    };
    Url::parse(&text).ok()
}
