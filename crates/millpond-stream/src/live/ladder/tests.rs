use super::*;
use millpond_package::live::{Window, WindowLimits};

fn ladder() -> Ladder {
    Ladder::new(Duration::from_secs(2), 7)
}

fn window() -> Arc<LiveWindow> {
    let limits =
        WindowLimits { segments: 8, bytes: 1 << 20, age: Duration::from_secs(60), listed: Duration::from_secs(30) };
    Arc::new(LiveWindow::new("1".to_owned(), Window::new(limits, Vec::new(), 0), Duration::ZERO, None))
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(1_795_341_590_000 + millis)
}

#[tokio::test]
async fn key_frames_of_one_moment_are_at_one_time() {
    let (ladder, first, other) = (ladder(), window(), window());
    assert_eq!(ladder.aligned(&first, ms(40)), ms(40), "nothing is known");
    for at in [40, 2040, 4040] {
        ladder.key_frame(&first, ms(at));
    }
    let cases = [(130, 40), (1900, 2040), (4200, 4040), (6100, 6040), (12_000, 12_040), (3000, 3000), (20_000, 20_000)];
    for (at, expected) in cases {
        assert_eq!(ladder.aligned(&other, ms(at)), ms(expected), "{at}");
    }
    assert_eq!(ladder.aligned(&first, ms(130)), ms(130), "the first one keeps its times");
    // Others don't lead until the first one is over.
    ladder.key_frame(&other, ms(5000));
    assert_eq!(ladder.aligned(&other, ms(5000)), ms(5000));
    drop(first);
    ladder.key_frame(&other, ms(9000));
    assert_eq!(ladder.aligned(&window(), ms(9100)), ms(9000));
}

#[tokio::test]
async fn numbers_agree_where_segments_do() {
    let (ladder, first) = (ladder(), window());
    assert_eq!(ladder.number(ms(500)).0, 1_795_341_590, "the Unix time where nothing is known");
    for (at, number) in [(0, 100), (2000, 101), (4000, 102)] {
        ladder.opened(&first, ms(at), SegmentNumber(number));
    }
    for (at, number) in [(0, 100), (1000, 100), (1980, 101), (2000, 101), (4500, 102), (6000, 103), (9000, 104)] {
        assert_eq!(ladder.number(ms(at)).0, number, "{at}");
    }
    assert_eq!(ladder.number(Duration::from_secs(1_795_341_587)).0, 98);
}

/// The next segment of the first window may not have begun yet where that of another one does.
#[tokio::test]
async fn a_segment_that_is_to_come_has_the_next_number() {
    let (ladder, first) = (ladder(), window());
    for (at, number) in [(1981, 100), (3981, 101)] {
        ladder.opened(&first, ms(at), SegmentNumber(number));
    }
    for (at, number) in [(3981, 101), (5900, 101), (5981, 102), (6031, 102), (7981, 103)] {
        assert_eq!(ladder.number(ms(at)).0, number, "{at}");
    }
}
