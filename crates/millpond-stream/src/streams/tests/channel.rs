//! The pace and the epochs of a channel.

use super::windows::{formats, picture};
use crate::{
    Counters, EpochReason, Frame, Run,
    graph::{Module, Output, pipe},
    live::{AssetTurn, Schedule},
    modules::Channel,
    registry::Registry,
    report::Reporter,
};
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

/// Pictures of half a second of a turn.
fn block(number: u32, turn: u32) -> Run {
    (number * 12..(number + 1) * 12).map(|picture_number| Frame { epoch: turn, ..picture(picture_number) }).collect()
}

#[tokio::test(start_paused = true)]
async fn frames_are_given_when_they_are_due_and_late_ones_begin_an_epoch() {
    let registry = Registry::default();
    let nodes = ["loader", "channel", "fork"].map(|kind| registry.add(kind, "news"));
    let [(writer, input), (out, mut frames)] =
        [(0, 1), (1, 2)].map(|(from, to): (usize, usize)| pipe(&registry, nodes[from].id(), nodes[to].id(), 1000));
    let (schedule, reporter) = (Arc::<Schedule>::default(), Reporter::default());
    let channel = Channel::new(schedule.clone(), reporter.clone(), Arc::<Counters>::default());
    let channel = tokio::spawn(Box::new(channel).run(vec![input], Output::Pipe(out)));
    let reader = tokio::spawn(async move {
        let (mut all, began) = (Vec::new(), Instant::now());
        while let Ok(run) = frames.next().await {
            all.extend(run.iter().map(|frame| (frame.epoch, frame.number, began.elapsed())));
        }
        all
    });
    let turn = |number, from| AssetTurn { number, from: Duration::from_secs(from), formats: formats().into() };
    schedule.add(turn(1, 10));
    for number in 0..8 {
        if number == 4 {
            // The loader is late by 3 s: all that follow are moved, and an epoch begins with the next key frame, the 50th picture.
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
        if number == 6 {
            schedule.add(turn(2, 13));
        }
        writer.reserve().await.unwrap().send(block(number, if number < 6 { 1 } else { 2 }));
    }
    drop(writer);
    channel.await.unwrap().unwrap();
    let all = reader.await.unwrap();
    let numbers: Vec<u32> = all.iter().map(|(_, number, _)| *number).collect();
    assert_eq!(numbers, (0..96).collect::<Vec<_>>());
    for (epoch, number, at) in &all {
        assert_eq!(*epoch, [0, 1, 2][usize::from(*number >= 50) + usize::from(*number >= 72)], "{number}");
        let due = Duration::from_millis(40) * *number;
        let due = if *number < 48 { due } else { due + Duration::from_millis(5000 - 48 * 40) };
        assert!(at.abs_diff(due) <= Duration::from_millis(5), "{number}: {at:?}, due {due:?}");
    }
    let epochs: Vec<_> =
        reporter.epochs().borrow().iter().map(|epoch| (epoch.reason, epoch.from, epoch.wall)).collect();
    let [first, second, third] = epochs[..] else { panic!("{epochs:?}") };
    assert_eq!([first.0, second.0, third.0], [EpochReason::Start, EpochReason::Jump, EpochReason::Asset]);
    let late = (second.2 - second.1).abs_diff(first.2 - first.1 + Duration::from_millis(5000 - 48 * 40));
    assert!(late <= Duration::from_millis(5), "{late:?}");
    assert_eq!(third.1, Duration::from_secs(13));
}
