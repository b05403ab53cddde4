//! Kinds of modules: name, description, and numbers of inputs and outputs.

use serde::Serialize;

/// A kind of module.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ModuleKind {
    /// Its name.
    pub name: &'static str,
    /// Description of its modules.
    pub about: &'static str,
    /// Number of inputs.
    pub inputs: usize,
    /// Number of outputs; a fork is one.
    pub outputs: usize,
}
