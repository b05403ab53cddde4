//! The state of a session between PLAY, PAUSE and the end.

use millpond_stream::{PastStart, Start, Stopped};
use std::time::Duration;

/// The state of a session that plays by a handle `P`.
#[derive(Debug, Default)]
pub(in crate::rtsp) enum Course<P> {
    /// Nothing was played, or a channel.
    #[default]
    Ready,
    Playing(P),
    /// Before the frame that is due at this time.
    Paused(Duration),
    /// Stopped between key frames at this time; PLAY looks up the next frame again.
    Left(Duration),
    /// In a live stream whose past is kept.
    Shifted(PastStart),
}

impl<P> Course<P> {
    /// The handle of what plays.
    pub(in crate::rtsp) fn playing(&self) -> Option<&P> {
        match self {
            Self::Playing(playing) => Some(playing),
            Self::Ready | Self::Paused(_) | Self::Left(_) | Self::Shifted(_) => None,
        }
    }

    /// Takes the handle of what plays, to stop it; [`stopped`](Self::stopped) follows.
    pub(in crate::rtsp) fn take(&mut self) -> Option<P> {
        match std::mem::take(self) {
            Self::Playing(playing) => Some(playing),
            silent => {
                *self = silent;
                None
            }
        }
    }

    /// Notes where it was stopped.
    pub(in crate::rtsp) fn stopped(&mut self, stopped: Stopped) {
        *self = match stopped {
            Stopped::Before(due) => Self::Paused(due),
            Stopped::At(at) => Self::Left(at),
            Stopped::Live => Self::Ready,
            Stopped::Past(start) => Self::Shifted(start),
        };
    }

    /// Where a live stream whose past is kept was stopped.
    pub(in crate::rtsp) fn shifted(&self) -> Option<&PastStart> {
        match self {
            Self::Shifted(start) => Some(start),
            _ => None,
        }
    }

    /// Where a PLAY begins in a title of `duration` seconds. Without a range it goes on where the session was paused (RFC 2326
    /// 10.5).
    pub(in crate::rtsp) fn start(&self, from: Option<f64>, scale: f64, duration: f64) -> Start {
        match (from, self) {
            (Some(from), _) => Start::At(from),
            (None, Self::Paused(due)) if scale == 1.0 => Start::Next(*due),
            (None, Self::Paused(at) | Self::Left(at)) => Start::At(at.as_secs_f64()),
            (None, _) if scale < 0.0 => Start::At(duration),
            (None, _) => Start::At(0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DURATION: f64 = 60.0;

    #[test]
    fn a_session_goes_on_where_it_was_stopped() {
        let mut course = Course::default();
        assert_eq!(course.start(None, 1.0, DURATION), Start::At(0.0));
        assert_eq!(course.start(None, -4.0, DURATION), Start::At(DURATION), "rewind begins at the end");
        course = Course::Playing("handle");
        assert_eq!(course.playing(), Some(&"handle"));
        assert_eq!(course.take(), Some("handle"));
        let due = Duration::from_secs(7);
        course.stopped(Stopped::Before(due));
        assert_eq!(course.playing(), None);
        assert_eq!(course.take(), None, "PAUSE twice");
        assert_eq!(course.start(None, 1.0, DURATION), Start::Next(due));
        assert_eq!(course.start(None, 4.0, DURATION), Start::At(7.0));
        assert_eq!(course.start(Some(3.0), 1.0, DURATION), Start::At(3.0));
        course.stopped(Stopped::At(due));
        assert_eq!(course.start(None, 1.0, DURATION), Start::At(7.0), "key frames have no next frame");
        course.stopped(Stopped::Live);
        assert_eq!(course.start(None, 1.0, DURATION), Start::At(0.0));
    }
}
