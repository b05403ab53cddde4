//! Nodes of a cluster.

mod examples;
mod homes;
mod more;
mod nodes;
