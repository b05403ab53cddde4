//! Text of manifests: numbers, references and XML.

pub(crate) mod digits;
pub mod uri;
pub(crate) mod xml;
