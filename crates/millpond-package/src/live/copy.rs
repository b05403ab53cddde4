//! Copies of the window of a running stream at other servers.
//!
//! A server that has the window sends [`CopyRecord`]s, which a [`CopyCursor`] finds in it. Another one reads them with a [`CopyReader`],
//! and gives them to a window of its own ([`Window::follow`](super::Window::follow)). Both have the same segments, parts and init segments then, byte for byte,
//! under the same numbers. So either one answers the addresses of the run, and the copy goes on where the first window ends.

mod cursor;
mod reader;
mod record;
#[cfg(test)]
mod tests;

pub use cursor::CopyCursor;
pub use reader::{CopyError, CopyReader};
pub use record::{CopyHead, CopyRecord};
