//! Returns freed memory to the system.
//!
//! The GNU C library keeps freed memory in its arenas, one or more for each thread, and returns only what lies at their ends. Streams that
//! begin and end leave holes everywhere: after an hour the process would hold tens of times what it uses. A thread of its own
//! looks every few seconds, and returns the holes where they are worth it. Other C libraries and systems do that by themselves.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod gnu;

#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(super) use gnu::watch;

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(super) fn watch() -> std::io::Result<()> {
    Ok(())
}
