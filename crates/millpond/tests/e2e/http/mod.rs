//! HTTP: wire, replies, page.

mod conformance;
mod crowd;
mod http2;
mod page;
mod replies;
mod requests;
mod slow_clients;
mod title_list;
mod turns;
