//! Modules, the pipes between them, and forks (AMPS, rows A2 and A3). It knows frames and formats, and no kind of module.

mod alarm;
mod branch;
mod fork;
mod kept;
mod key_interval;
mod live_memory;
mod losses;
mod module;
mod pipe;
mod queue;
mod queue_limits;
mod rate;
mod session;
mod shared;
mod shedding;

pub(crate) use alarm::Listener;
pub use fork::{Branch, Fork};
pub(crate) use live_memory::LiveMemory;
pub use module::{Inputs, Module, ModuleError, Output};
pub(crate) use module::{Running, start};
pub(crate) use pipe::pipe;
pub use pipe::{Closed, Permit, PipeReader, PipeWriter};
pub(crate) use queue_limits::QueueLimits;
pub(crate) use session::SessionFeed;
pub(crate) use shared::{Graph, Joined, Shared, SourceModules};
