//! Notices of publishers and sources.

use super::{
    fake::{Fake, manager_with, until},
    sharing::open,
};
use crate::{
    Conflict, Linger, LiveRequest, Notice, NoticeBoard, Publication, PublishRefused, PublishRequest, PublishedMedia,
    Source, SourceError, SourceErrorKind, manager::Manager,
};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

/// The notices so far, as words.
#[derive(Debug, Default)]
struct Board(Mutex<Vec<String>>);

impl NoticeBoard for Board {
    fn post(&self, path: &str, notice: Notice) {
        let words = match notice {
            Notice::PublisherBegan { media } => format!("began {media}"),
            Notice::PublisherEnded { media, reason, .. } => format!("ended {media} {reason}"),
            Notice::SourceLost { why } => format!("lost {:?}", why.kind),
            Notice::SourceBack { .. } => "back".to_owned(),
        };
        self.0.lock().unwrap().push(format!("{path} {words}"));
    }
}

impl Board {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

fn publish(manager: &Manager, media: PublishedMedia, conflict: Conflict) -> Result<Publication, PublishRefused> {
    let (path, linger) = ("live/cam".into(), Linger::For(Duration::ZERO));
    let stream = LiveRequest { path, source: Source::Published, relayed: None, linger, shift: None };
    manager.publish(PublishRequest { stream, media, conflict })
}

#[tokio::test]
async fn each_publisher_begins_once_and_ends_before_the_next_one() {
    let board = Arc::new(Board::default());
    let manager = manager_with(Some(board.clone()));
    let first = publish(&manager, PublishedMedia::Transport, Conflict::Refuse).unwrap();
    assert_eq!(board.take(), ["live/cam began mpeg-ts"]);
    publish(&manager, PublishedMedia::Flv, Conflict::Refuse).unwrap_err();
    assert_eq!(board.take(), [""; 0]);
    let second = publish(&manager, PublishedMedia::Flv, Conflict::Replace).unwrap();
    assert_eq!(board.take(), ["live/cam ended mpeg-ts replaced", "live/cam began flv"]);
    drop(first);
    assert_eq!(board.take(), [""; 0]);
    drop(second);
    assert_eq!(board.take(), ["live/cam ended flv left"]);
    let third = publish(&manager, PublishedMedia::Flv, Conflict::Replace).unwrap();
    manager.end_stream("live/cam");
    drop(third);
    assert_eq!(board.take(), ["live/cam began flv", "live/cam ended flv closed"]);
    let fourth = publish(&manager, PublishedMedia::Fragments { is_split: true }, Conflict::Refuse).unwrap();
    manager.hand_over_publishers();
    drop(fourth);
    assert_eq!(board.take(), ["live/cam began fmp4", "live/cam ended fmp4 handed-over"]);
}

#[tokio::test]
async fn a_source_that_is_back_in_another_run_is_told_once() {
    let board = Arc::new(Board::default());
    let (manager, fake) = (manager_with(Some(board.clone())), Fake::default());
    let (stream, feed) = open(&manager, &fake, Duration::ZERO).await;
    assert_eq!(board.take(), [""; 0], "a source that begins was not lost");
    for _ in 0..2 {
        let (kind, address) = (SourceErrorKind::TimedOut, "fake".to_owned());
        fake.reporter().lost(Arc::new(SourceError { kind, address, words: "silent".to_owned() }));
    }
    assert_eq!(board.take(), ["cams/door lost TimedOut"]);
    drop(feed);
    until(|| !fake.is_open()).await;
    let (again, feed) = open(&manager, &fake, Duration::ZERO).await;
    assert!(Arc::ptr_eq(&stream, &again) && fake.opened() == 2);
    assert_eq!(board.take(), ["cams/door back"]);
    drop(feed);
}
