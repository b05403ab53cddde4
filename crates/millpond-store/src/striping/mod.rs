//! The stores of striped objects, as operators name them. `stripe` reads and writes such objects; a program without the feature
//! `stripe` refuses these options.

mod options;
mod store;

pub use options::StripingOptions;
pub use store::StripeStore;

/// End of the name of a map. The striped object's name is the rest.
pub const MAP_SUFFIX: &str = ".stripe";
