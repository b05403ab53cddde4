//! Signals of a running server, taken on a thread of their own: they are heeded when every serving thread is busy.
//!
//! | signal | does |
//! |---|---|
//! | SIGTERM, SIGINT | stops: responses under way finish within `shutdown-grace`; a second one ends the process at once |
//! | SIGHUP | reads certificates and RTSP users again; is ignored where neither is configured |
//! | SIGUSR1, SIGUSR2 | are ignored |
//! | SIGPIPE | is ignored, by the runtime of the language |

use millpond_server::logging;
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
    async fn stop(&mut self, reloads: bool) {
        let [user1, user2] = &mut self.user;
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return,
                _ = self.interrupt.recv() => return,
                _ = self.hangup.recv() => match reloads {
                    true => tracing::info!("SIGHUP: certificates, users and keys of tokens are read again"),
                    false => tracing::info!("SIGHUP is ignored: none of tls-cert, rtsp-users, publish-users, access-users and access-tokens is set"),
                },
                _ = user1.recv() => tracing::info!("SIGUSR1 is ignored: it means nothing here"),
                _ = user2.recv() => tracing::info!("SIGUSR2 is ignored: it means nothing here"),
            }
        }
    }
}

/// Takes signals from now on; `stop` becomes true at the first that stops. `reloads` tells whether SIGHUP has files
/// to read again, which those who hold them do; `grace` bounds the stop.
///
/// # Errors
/// The system's, where it has no thread or no signals.
pub(super) fn watch(reloads: bool, grace: Duration, stop: watch::Sender<bool>) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let mut signals = {
        let _inside = runtime.enter();
        Signals::new()?
    };
    let run = async move {
        signals.stop(reloads).await;
        tracing::info!("stopping: responses under way are finished");
        let _ = stop.send(true);
        // A second signal is from an operator who won't wait.
        let limit = grace.saturating_add(SLACK);
        let code = match timeout(limit, signals.stop(reloads)).await {
            Ok(()) => INTERRUPTED,
            Err(_) => {
                tracing::error!(
                    seconds = limit.as_secs(),
                    "serving threads did not stop: the process ends without them"
                );
                STUCK
            }
        };
        logging::flush();
        process::exit(code);
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || runtime.block_on(run))?;
    Ok(())
}
