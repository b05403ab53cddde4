//! Answers to an operator's questions, which the admin API asks.

mod assets;
mod explain;
mod opening;
mod streams;

pub(crate) use assets::{AssetFilter, assets_of};
pub(crate) use explain::{Explanation, explanation_of, objects_at};
pub(crate) use opening::opening_at;
pub(crate) use streams::remote_title_at;
