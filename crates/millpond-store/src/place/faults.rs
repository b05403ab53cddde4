//! Faults of a place's options, found without a client and without a request.

use super::{OriginOptions, PlaceSource, PlaceSpec};
use crate::origin::bucket_address;
use crate::origin::cloud::CloudKind;

/// An option that no client can be made with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: expected {expected}, found {found}: {cure}")]
pub struct OptionFault {
    /// The option, `url` for the location, or a variable of the environment.
    pub key: &'static str,
    /// The form of value that it takes.
    pub expected: String,
    /// The value, without secrets.
    pub found: String,
    /// The remedy.
    pub cure: String,
}

/// Returns the faults of a place's options. Neither folders nor servers are asked.
pub fn faults(spec: &PlaceSpec, options: &OriginOptions) -> Vec<OptionFault> {
    let env = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let own = of_source(&spec.source, options, env);
    let stores = options.stripe_over.iter().filter_map(|store| {
        let fault = of_source(store.source(), &store.options(options), env)?;
        Some(OptionFault { key: "stripe-over", cure: format!("{} (store {})", fault.cure, store.name()), ..fault })
    });
    own.into_iter().chain(stores).collect()
}

fn of_source(
    source: &PlaceSource,
    options: &OriginOptions,
    env: impl Fn(&str) -> Option<String>,
) -> Option<OptionFault> {
    let (kind, bucket, prefix) = match source {
        PlaceSource::S3 { bucket, prefix } => (CloudKind::S3, bucket, prefix),
        PlaceSource::Gs { bucket, prefix } => (CloudKind::Gs, bucket, prefix),
        PlaceSource::Az { container, prefix } => (CloudKind::Az, container, prefix),
        _ => return None,
    };
    bucket_address::check(kind, (bucket, prefix), options, env).err()
}
