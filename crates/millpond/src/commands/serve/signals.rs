//! Signals of a running server, taken on a thread of their own: they are heeded when every serving thread is busy.
//!
//! | signal | does |
//! |---|---|
//! | SIGTERM, SIGINT | stops: responses under way finish within `shutdown-grace`; a second one ends the process at once |
//! | SIGHUP | loads the configuration again, and reads certificates, users and keys of tokens |
//! | SIGUSR1 | opens the access log again, where it is a file |
//! | SIGUSR2 | starts the program anew; the new process takes over ([`millpond_server::upgrade`]) |
//! | SIGPIPE | is ignored, by the runtime of the language |

use std::{io, process, time::Duration};
use tokio::{
    runtime::Builder,
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
    time::timeout,
};

/// Time that a stop may take beyond the grace, before the process ends with responses under way.
const SLACK: Duration = Duration::from_secs(3);

/// Exit code after a second signal: that of a program which SIGINT ended.
const INTERRUPTED: i32 = 130;

/// Exit code where serving threads did not stop within the grace.
const STUCK: i32 = 1;

struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    user: [Signal; 2],
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            user: [signal(SignalKind::user_defined1())?, signal(SignalKind::user_defined2())?],
        })
    }

    /// Waits for a signal that stops; tells what is done about the others.
    async fn stop(&mut self, Signalled { reload, upgrade }: &Signalled) {
        let [user1, user2] = &mut self.user;
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return,
                _ = self.interrupt.recv() => return,
                _ = self.hangup.recv() => {
                    tracing::info!("SIGHUP: configuration, certificates, users and keys of tokens are read again");
                    reload.send_modify(|count| *count += 1);
                }
                _ = user1.recv() => match millpond_logging::reopen() {
                    true => tracing::info!("SIGUSR1: the access log is opened again"),
                    false => tracing::info!("SIGUSR1 is ignored: the access log has no file"),
                },
                _ = user2.recv() => {
                    tracing::info!("SIGUSR2: a new process takes over");
                    upgrade.send_modify(|count| *count += 1);
                }
            }
        }
    }
}

/// Counters of orders that signals give.
pub(super) struct Signalled {
    /// Counts each SIGHUP.
    pub(super) reload: watch::Sender<u64>,
    /// Counts each SIGUSR2.
    pub(super) upgrade: watch::Sender<u64>,
}

/// Takes signals from now on; `stop` becomes true at the first that stops, and others are counted. `grace` bounds the stop.
///
/// # Errors
/// The system's, where it has no thread or no signals.
pub(super) fn watch(orders: Signalled, grace: watch::Receiver<Duration>, stop: watch::Sender<bool>) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let mut signals = {
        let _inside = runtime.enter();
        Signals::new()?
    };
    let run = async move {
        signals.stop(&orders).await;
        tracing::info!("stopping: responses under way are finished");
        let _ = stop.send(true);
        // A second signal means that the operator does not wait.
        let limit = grace.borrow().saturating_add(SLACK);
        let code = match timeout(limit, signals.stop(&orders)).await {
            Ok(()) => INTERRUPTED,
            Err(_) => {
                tracing::error!(
                    seconds = limit.as_secs(),
                    "serving threads did not stop: the process ends without them"
                );
                STUCK
            }
        };
        millpond_logging::flush();
        process::exit(code);
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || runtime.block_on(run))?;
    Ok(())
}
