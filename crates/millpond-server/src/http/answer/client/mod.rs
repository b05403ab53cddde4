//! The client of a request: its rights, its place in the list of viewers, and what the store may expect of it.

mod admission;
mod audience;
mod viewers;

pub(super) use admission::{
    add_cors, admit, cors, count, is_of_node, keep_private, limited, sights, turned_away, with_token_in_path,
};
pub(crate) use audience::AnsweredRequest;
pub(super) use audience::kicked;
pub(crate) use viewers::ConnectionViewers;
pub(super) use viewers::{Receipt, Viewers, client};
