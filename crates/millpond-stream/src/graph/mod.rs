//! Modules, the pipes between them, and the manager that connects them (AMPS, rows A2 and A3).

mod attach;
mod fork;
mod group;
mod manager;
mod module;
mod observe;
mod opened;
mod pipe;
mod registry;
mod shared;

pub use attach::Attached;
pub use fork::{Branch, Fork};
pub use group::{Group, GroupAddress, Program};
pub use manager::Manager;
pub use module::{Inputs, Module, ModuleError, Output};
pub use opened::{Beginning, CannotOpen, KeepAlive, Opened, Played, Playing, Request, Start, Stopped};
#[cfg(test)]
pub(crate) use pipe::pipe;
pub use pipe::{Closed, Permit, PipeReader, PipeWriter};
pub use registry::{Edge, Node, NodeGuard, NodeId, Registry, Snapshot};
