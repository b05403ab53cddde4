//! Modules, the pipes between them, and the manager that connects them (AMPS, rows A2 and A3).

mod attach;
mod branch;
mod expectation;
mod fork;
mod group;
mod kept;
mod key_interval;
mod lead;
mod live_memory;
mod losses;
mod manager;
mod module;
mod observe;
mod opened;
mod past;
mod pipe;
mod queue;
mod queue_limits;
mod rate;
mod registry;
mod session;
mod shared;
mod shedding;
mod splicing;
mod tempo;
mod viewing;

pub use attach::Attached;
pub use fork::{Branch, Fork};
pub use group::{Group, GroupAddress, Program};
pub(crate) use lead::Lead;
pub(crate) use live_memory::LiveMemory;
pub use manager::Manager;
pub(crate) use module::Running;
pub use module::{Inputs, Module, ModuleError, Output};
pub use opened::{Beginning, CannotOpen, KeepAlive, Opened, Played, PlayedPart, Playing, Request, Start, Stopped};
#[cfg(test)]
pub(crate) use pipe::pipe;
pub use pipe::{Closed, Permit, PipeReader, PipeWriter};
pub(crate) use queue_limits::QueueLimits;
pub use registry::{Edge, Node, NodeGuard, NodeId, Registry, Snapshot};
pub(crate) use registry::{EdgeGuard, Takers};
pub(crate) use shared::{Graph, Shared};
pub(crate) use splicing::SplicePart;
pub use tempo::Tempo;
pub(crate) use viewing::KIND as VIEWING;
pub use viewing::Viewing;
