//! Modules, the pipes between them, and the manager that connects them (AMPS, rows A2 and A3).

mod alarm;
mod attach;
mod branch;
mod following;
mod fork;
mod group;
mod kept;
mod key_interval;
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
mod session;
mod shared;
mod shedding;
mod splicing;
mod viewing;

pub(crate) use alarm::Listener;
pub use attach::Attached;
pub use fork::{Branch, Fork};
pub use group::{Group, GroupAddress, Program};
pub(crate) use live_memory::LiveMemory;
pub use manager::Manager;
pub(crate) use module::Running;
pub use module::{Inputs, Module, ModuleError, Output};
pub use opened::{Beginning, KeepAlive, Opened, Played, PlayedPart, Playing, Request, Start, Stopped};
#[cfg(test)]
pub(crate) use pipe::pipe;
pub use pipe::{Closed, Permit, PipeReader, PipeWriter};
pub(crate) use queue_limits::QueueLimits;
pub(crate) use shared::{Graph, Shared, SourceModules};
pub(crate) use splicing::SplicePart;
pub(crate) use viewing::KIND as VIEWING;
pub use viewing::Viewing;
