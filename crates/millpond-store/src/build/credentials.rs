//! The source of the keys of a bucket, for people.

use crate::location::{Cloud, OriginLocation};
use crate::origin::{BucketOptions, cloud::signing};

/// Describes the source of the keys that requests to a location are signed with, without any secret; `None` for one that is no
/// bucket. Nothing is asked.
pub fn credentials(location: &OriginLocation, options: &BucketOptions) -> Option<String> {
    let env = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let (found, hint) = match location.bucket()?.cloud {
        Cloud::S3 => (signing::s3_source(options, env), signing::S3_HINT),
        Cloud::Gs => (signing::gs_source(options, env), signing::GS_HINT),
        Cloud::Az => (signing::az_source(options, env), signing::AZ_HINT),
    };
    Some(match (options.anonymous, found) {
        (true, _) => "requests are unsigned: anonymous = true".to_owned(),
        (false, Some(source)) => format!("keys come from {source}"),
        (false, None) => format!("requests are unsigned, for there are no keys: {hint}"),
    })
}
