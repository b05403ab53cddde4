//! Upgrades without a gap: a new process takes the listening sockets over while the old one serves to the end what it has begun.
//!
//! [`Upgrader`] starts the program anew from its path, where another build may lie now. Requests can't name another path: clients of
//! the admin address could run any program. The new process loads the configuration, gets the sockets
//! (`handover`), and reports that it serves. Then the old one accepts no more connections, leaves its name on the local network to the
//! new process or takes it back, and gives up its folder on the disk. It ends when its connections have ended, after the time `drain`
//! at the latest. Where the new process fails, the old one goes on.

mod handover;
mod settings;
mod socket_activation;

pub use settings::UpgradeSettings;
pub(crate) use socket_activation::{tell_reloaded, tell_reloading, tell_stopping};

use crate::serve::Running;
use millpond_connections::Inherited;
use std::{
    ffi::OsString,
    fs, io,
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::{fs::FileTypeExt as _, net::UnixStream},
    },
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::{runtime::Handle, sync::Mutex, task::spawn_blocking};

/// Longest start of a new process.
const START: Duration = Duration::from_secs(60);
/// Longest wait for the process before this one to leave.
const LEAVE: Duration = Duration::from_secs(2);

/// Reason why the server was not upgraded. It goes on as before.
#[derive(Debug, thiserror::Error)]
pub enum UpgradeError {
    /// The server is a node of a cluster.
    #[error("a node of a cluster is upgraded by a restart: the other nodes take its viewers over")]
    Node,
    /// The server is the first process of a container, which ends with it.
    #[error("the server is the first process of its container: replace the container instead")]
    First,
    /// Another process takes over already, or the server stops.
    #[error("an upgrade is under way, or the server stops")]
    Busy,
    /// The new process can't be started.
    #[error("{}: {error}", .program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The new process did not come to serve; its log has the reason.
    #[error("the new process does not serve ({0}): its log has the reason; the old process still serves")]
    NotReady(io::Error),
}

/// The program and the arguments of this process.
#[derive(Clone, Debug)]
pub struct Program {
    /// Path of the program when it was started. Its file may be another one now.
    pub path: PathBuf,
    /// Arguments without the program's name.
    pub arguments: Vec<OsString>,
}

impl Program {
    /// That of this process. To be called at the start.
    ///
    /// # Errors
    /// The system does not tell it.
    pub fn of_this_process() -> io::Result<Self> {
        Ok(Self { path: std::env::current_exe()?, arguments: std::env::args_os().skip(1).collect() })
    }
}

/// Starts a process that takes over. Clones share it.
#[derive(Clone)]
pub struct Upgrader {
    program: Arc<Program>,
    running: Weak<Running>,
    serving: Handle,
    /// A lock: held while a process is started.
    turn: Arc<Mutex<()>>,
}

impl Upgrader {
    /// Makes that of a server. To be called on a serving thread.
    pub(crate) fn new(program: Program, running: &Arc<Running>) -> Self {
        let (running, serving) = (Arc::downgrade(running), Handle::current());
        Self { program: Arc::new(program), running, serving, turn: Arc::default() }
    }

    /// Starts the program of this process, as its file is now, with the arguments of this process. Returns the identifier of the new
    /// process once it serves; this one drains from then on.
    ///
    /// # Errors
    /// The reason why this process goes on as before.
    pub async fn upgrade(&self) -> Result<u32, UpgradeError> {
        let upgraded = self.begin().await;
        match &upgraded {
            Ok(process) => tracing::info!(
                process,
                "a new process has taken over: this process only finishes its \
                                                    connections"
            ),
            Err(error) => tracing::error!(%error, "the server is not upgraded"),
        }
        upgraded
    }

    async fn begin(&self) -> Result<u32, UpgradeError> {
        let only = self.turn.clone().try_lock_owned().map_err(|_| UpgradeError::Busy)?;
        let running = self.running.upgrade().ok_or(UpgradeError::Busy)?;
        // The new process would not know of a reload meanwhile.
        let turn = running.turn().await;
        let this = self.clone();
        let job = move || {
            let _held = (only, turn);
            this.upgrade_now(&running)
        };
        self.serving.spawn_blocking(job).await.unwrap_or(Err(UpgradeError::Busy))
    }

    fn upgrade_now(&self, running: &Running) -> Result<u32, UpgradeError> {
        if running.is_leaving() {
            return Err(UpgradeError::Busy);
        }
        if running.is_node() {
            return Err(UpgradeError::Node);
        }
        if std::process::id() == 1 {
            return Err(UpgradeError::First);
        }
        let path = self.program.path.clone();
        let start = |error| UpgradeError::Start { program: path.clone(), error };
        let (ours, theirs) = UnixStream::pair().map_err(start)?;
        let sockets = running.duplicate_listeners().map_err(start)?;
        handover::send(&ours, &sockets).map_err(start)?;
        let mut command = Command::new(&path);
        command.args(&self.program.arguments).env(handover::VARIABLE, "1").stdin(Stdio::from(OwnedFd::from(theirs)));
        let mut child = command.spawn().map_err(start)?;
        // It holds their end of the pair, whose closing tells that the process has ended.
        drop(command);
        match handover::wait_ready(&ours, START) {
            Ok(page) => running.leave(&page),
            Err(error) => {
                end(&mut child);
                running.reclaim_admin();
                return Err(UpgradeError::NotReady(error));
            }
        }
        // Dropped: the new process may announce its page from now on.
        drop(ours);
        Ok(child.id())
    }
}

/// Ends a process that does not serve.
fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// The process that this one takes over from, and its sockets.
#[derive(Debug, Default)]
pub struct Predecessor(Option<UnixStream>);

impl Predecessor {
    /// Takes the listening sockets that the service manager or the process before this one has bound; none at a plain start.
    ///
    /// # Errors
    /// The process before this one sends none.
    pub fn inherit() -> io::Result<(Self, Inherited)> {
        let takes_over = std::env::var_os(handover::VARIABLE).is_some_and(|value| !value.is_empty());
        // The variable alone could come from the environment of a shell.
        let is_socket = fs::metadata("/proc/self/fd/0").is_ok_and(|input| input.file_type().is_socket());
        if !takes_over || !is_socket {
            return Ok((Self(None), socket_activation::sockets()));
        }
        let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        let inherited = handover::receive(&stream)?;
        Ok((Self(Some(stream)), inherited))
    }

    /// Whether there is one.
    pub(crate) fn is_some(&self) -> bool {
        self.0.is_some()
    }

    /// Tells the service manager, and the process before this one, that this one serves. `page` is the page that this process will
    /// announce on the local network.
    pub(crate) fn tell_ready(&self, page: &str) {
        // First: the one before may end at once, and the service would end with its main process.
        socket_activation::tell(&[sd_notify::NotifyState::Ready, sd_notify::NotifyState::MainPid(std::process::id())]);
        if let Some(stream) = &self.0
            && let Err(error) = handover::tell_ready(stream, page)
        {
            tracing::warn!(%error, "the process before this one is gone");
        }
    }

    /// Waits until the process before this one accepts no more, and announces no name.
    pub(crate) async fn left(self) {
        if let Some(stream) = self.0 {
            let _ = spawn_blocking(move || handover::wait_left(&stream, LEAVE)).await;
        }
    }
}
