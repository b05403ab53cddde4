//! The source of the keys of a bucket, for people.

use super::{OriginOptions, PlaceSource, PlaceSpec};
use crate::origin::signing;

/// Describes the source of the keys that requests to a place are signed with, without any secret; `None` for a place that is no
/// bucket. Nothing is asked.
pub fn credentials(spec: &PlaceSpec, options: &OriginOptions) -> Option<String> {
    let env = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let (is_anonymous, found, hint) = match &spec.source {
        PlaceSource::S3 { .. } => (options.s3_anonymous, signing::s3_source(options, env), signing::S3_HINT),
        PlaceSource::Gs { .. } => (options.gs_anonymous, signing::gs_source(options, env), signing::GS_HINT),
        PlaceSource::Az { .. } => (options.az_anonymous, signing::az_source(options, env), signing::AZ_HINT),
        _ => return None,
    };
    Some(match (is_anonymous, found) {
        (true, _) => "requests are unsigned: anonymous = true".to_owned(),
        (false, Some(source)) => format!("keys come from {source}"),
        (false, None) => format!("requests are unsigned, for there are no keys: {hint}"),
    })
}
