//! Pauses of a node: while it is paused, none of its futures is polled, as after SIGSTOP.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, Waker},
};

#[derive(Debug, Default)]
struct State {
    is_paused: bool,
    waiting: Vec<Waker>,
}

/// Pauses and resumes the futures of a node.
#[derive(Clone, Debug, Default)]
pub(super) struct Gate(Arc<Mutex<State>>);

impl Gate {
    pub(super) fn is_paused(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_paused
    }

    pub(super) fn set(&self, is_paused: bool) {
        let woken = {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            state.is_paused = is_paused;
            if is_paused { Vec::new() } else { std::mem::take(&mut state.waiting) }
        };
        woken.into_iter().for_each(Waker::wake);
    }

    /// A future that waits while the node is paused.
    pub(super) fn holds<F: Future + Send + 'static>(&self, future: F) -> Gated<F> {
        Gated { gate: self.clone(), future: Box::pin(future) }
    }
}

/// A future of a node.
pub(super) struct Gated<F> {
    gate: Gate,
    future: Pin<Box<F>>,
}

impl<F: Future> Future for Gated<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        {
            let mut state = self.gate.0.lock().unwrap_or_else(PoisonError::into_inner);
            if state.is_paused {
                state.waiting.push(cx.waker().clone());
                return Poll::Pending;
            }
        }
        self.future.as_mut().poll(cx)
    }
}
