//! What HLS and DASH manifests have in common.

pub(crate) mod captions;
pub(crate) mod filter;
pub(crate) mod first_picture;
pub mod pathway;
pub(crate) mod track_listing;
