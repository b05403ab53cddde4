//! Faults of the options of an origin and of its stores.

use super::OriginOptions;
use crate::location::OriginLocation;
use crate::origin::{BucketOptions, OptionFault, cloud::bucket_address};

/// Returns the faults of an origin's options. Neither folders nor servers are asked.
pub fn faults(location: &OriginLocation, options: &OriginOptions) -> Vec<OptionFault> {
    let env = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let own = of_location(location, &options.remote.bucket, env);
    let stores = options.striping.stores.iter().filter_map(|store| {
        let fault = of_location(store.location(), &store.remote(&options.remote).bucket, env)?;
        Some(OptionFault { key: "stripe-over", cure: format!("{} (store {})", fault.cure, store.name()), ..fault })
    });
    own.into_iter().chain(stores).collect()
}

fn of_location(
    location: &OriginLocation,
    options: &BucketOptions,
    env: impl Fn(&str) -> Option<String>,
) -> Option<OptionFault> {
    bucket_address::check(location.bucket()?, options, env).err()
}
