//! Ctrl-C, which a command notices between its steps.

use crate::commands::runtime;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Exit code after Ctrl-C was pressed twice: that of a program which SIGINT ended.
const TWICE: i32 = 130;

/// Whether Ctrl-C was pressed.
#[derive(Clone, Debug, Default)]
pub(super) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Takes Ctrl-C over from the system, which would end the process. The second one still does.
    pub(super) fn watch() -> std::io::Result<Self> {
        let (pressed, runtime) = (Arc::<AtomicBool>::default(), runtime()?);
        let (own, (ready, is_ready)) = (pressed.clone(), std::sync::mpsc::channel());
        std::thread::Builder::new().name("interrupt".to_owned()).spawn(move || {
            runtime.block_on(async {
                let Ok(mut signal) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt()) else {
                    return;
                };
                let _ = ready.send(());
                while signal.recv().await.is_some() {
                    if own.swap(true, Ordering::Relaxed) {
                        std::process::exit(TWICE);
                    }
                }
            });
        })?;
        let _ = is_ready.recv();
        Ok(Self(pressed))
    }

    /// Whether it was pressed.
    pub(super) fn is_pressed(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
