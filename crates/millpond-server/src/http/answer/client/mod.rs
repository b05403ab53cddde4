//! The client of a request: its rights, and its place in the list of viewers.

mod access;
mod audience;

pub(super) use access::{
    add_cors, admit, cors, count, is_of_node, keep_private, limited, sights, turned_away, with_token_in_path,
};
pub(crate) use audience::AnsweredRequest;
pub(super) use audience::kicked;
