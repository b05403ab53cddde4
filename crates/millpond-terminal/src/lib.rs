//! Common parts of the programs of Millpond: output for people and pipes, URLs of arguments, man pages, completions, and
//! exit codes.
//!
//! A program declares its command line with clap, and calls [`program::run`] with it.
#![forbid(unsafe_code)]

pub mod completions;
pub mod man;
pub mod out;
pub mod page;
pub mod program;
pub mod urls;

use std::error::Error;

/// The error of a command: a sentence for people.
pub type Outcome = Result<(), Box<dyn Error>>;
