use super::*;
use std::collections::BTreeMap;

fn direction(text: &str, seed: u64) -> Direction {
    Direction::new(text.parse().unwrap(), seed)
}

/// Fates of packets of 1,000 bytes, `gap` apart.
fn fates(text: &str, seed: u64, count: u32, gap: Duration) -> Vec<Fate> {
    let mut direction = direction(text, seed);
    (0..count).map(|number| direction.arrive(gap * number, 1000)).collect()
}

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn delivered(fates: &[Fate]) -> Vec<(usize, Duration)> {
    let times = fates.iter().enumerate().filter_map(|(number, fate)| match fate {
        Fate::Delivered { at, .. } => Some((number, *at)),
        Fate::Dropped(_) => None,
    });
    times.collect()
}

fn dropped(fates: &[Fate]) -> Vec<usize> {
    let numbers = fates.iter().enumerate().filter(|(_, fate)| matches!(fate, Fate::Dropped(_)));
    numbers.map(|(number, _)| number).collect()
}

#[test]
fn without_impairments_packets_pass_at_once() {
    let fate = Direction::new(Impairments::default(), 1).arrive(ms(7), 1500);
    assert_eq!(fate, Fate::Delivered { at: ms(7), copy: None });
}

#[test]
fn the_seed_decides_which_packets_are_lost() {
    let lost = dropped(&fates("loss=1%", 7, 100_000, ms(1)));
    assert!((900..1100).contains(&lost.len()), "{}", lost.len());
    assert_eq!(lost, dropped(&fates("loss=1%", 7, 100_000, ms(1))));
    assert_ne!(lost, dropped(&fates("loss=1%", 8, 100_000, ms(1))));
}

#[test]
fn losses_do_not_depend_on_times_or_on_other_impairments() {
    let lost = dropped(&fates("loss=1%", 7, 10_000, ms(1)));
    let others = "loss=1%,delay=100ms,jitter=50ms,reorder=5%,duplicate=5%,rate=1Gbit";
    assert_eq!(lost, dropped(&fates(others, 7, 10_000, ms(3))));
}

#[test]
fn a_greater_share_loses_the_same_packets_and_more() {
    let few = dropped(&fates("loss=0.5%", 7, 10_000, ms(1)));
    let many = dropped(&fates("loss=2%", 7, 10_000, ms(1)));
    assert!(few.len() < many.len() && few.iter().all(|number| many.contains(number)));
}

#[test]
fn bursts_have_their_share_and_their_length() {
    let count = 1_000_000;
    let lost = dropped(&fates("burst=0.5%/25%", 3, count, ms(1)));
    let share = lost.len() as f64 / f64::from(count);
    // 0.5 / 25.5 of the time is bad.
    assert!((share / 0.0196 - 1.0).abs() < 0.05, "{share}");
    let bursts = 1 + lost.windows(2).filter(|pair| pair[1] != pair[0] + 1).count();
    let length = lost.len() as f64 / bursts as f64;
    // 1 / 25 % packets, and a little more because neighbouring bursts count as one.
    assert!((3.9..4.2).contains(&length), "{length}");
}

#[test]
fn the_bad_state_can_lose_a_part_of_its_packets() {
    let fates = fates("burst=1%/10%/50%", 3, 100_000, ms(1));
    let lost = dropped(&fates).len() as f64 / 1e5;
    assert!((lost / (0.5 / 11.0) - 1.0).abs() < 0.1, "{lost}");
    assert!(fates.contains(&Fate::Dropped(Reason::Burst)) && !fates.contains(&Fate::Dropped(Reason::Loss)));
}

#[test]
fn jitter_stays_within_its_limits_and_keeps_the_order() {
    let times = delivered(&fates("delay=50ms,jitter=20ms", 5, 10_000, ms(50)));
    let delays: Vec<_> = times.iter().map(|(number, at)| *at - ms(50) * *number as u32).collect();
    assert!(delays.iter().all(|delay| (ms(30)..=ms(70)).contains(delay)));
    let mean = delays.iter().sum::<Duration>() / 10_000;
    assert!((ms(49)..ms(51)).contains(&mean), "{mean:?}");
    let crowded = delivered(&fates("delay=50ms,jitter=20ms", 5, 10_000, ms(1)));
    assert!(crowded.windows(2).all(|pair| pair[0].1 <= pair[1].1));
}

#[test]
fn packets_held_back_are_overtaken() {
    let fates = fates("delay=20ms,reorder=2%,reorder-by=5ms", 5, 10_000, ms(1));
    let late = delivered(&fates).iter().filter(|(number, at)| *at == ms(*number as u64) + ms(25)).count();
    assert!((150..250).contains(&late), "{late}");
    let on_time = delivered(&fates).iter().filter(|(number, at)| *at == ms(*number as u64) + ms(20)).count();
    assert_eq!(late + on_time, 10_000);
}

#[test]
fn duplicates_follow_their_packets_through_the_bottleneck() {
    let mut direction = direction("duplicate=100%,rate=1Mbit", 1);
    // 1,000 bytes take 8 ms at 1 Mbit/s.
    assert_eq!(direction.arrive(ms(0), 1000), Fate::Delivered { at: ms(8), copy: Some(ms(16)) });
    assert_eq!(direction.tally().duplicates, 1);
}

#[test]
fn the_bottleneck_has_its_rate_and_its_queue() {
    // 1,000 bytes a millisecond are 8 Mbit/s, eight times as much as the bottleneck sends.
    let fates = fates("rate=1Mbit,queue=100ms", 1, 1000, ms(1));
    let times = delivered(&fates);
    assert!(times.windows(2).all(|pair| pair[1].1 - pair[0].1 == ms(8)), "one packet every 8 ms");
    assert!(times.iter().all(|(number, at)| *at - ms(*number as u64) <= ms(100)));
    assert!((125..140).contains(&times.len()), "{}", times.len());
    assert!(fates.iter().all(|fate| !matches!(fate, Fate::Dropped(Reason::Loss | Reason::Burst))));
}

#[test]
fn a_queue_of_bytes_holds_as_many() {
    let burst = fates("rate=1Mbit,queue=10kB", 1, 100, Duration::ZERO);
    assert_eq!(delivered(&burst).len(), 10);
    // An empty queue takes any packet.
    assert_eq!(delivered(&fates("rate=1Mbit,queue=100B", 1, 100, ms(8))).len(), 100);
}

#[test]
fn changes_hold_from_the_next_packet_on() {
    let mut direction = direction("delay=10ms", 1);
    assert_eq!(direction.arrive(ms(0), 100), Fate::Delivered { at: ms(10), copy: None });
    direction.change("loss=100%".parse().unwrap());
    assert_eq!(direction.arrive(ms(1), 100), Fate::Dropped(Reason::Loss));
}

#[test]
fn the_tally_counts_each_packet_once() {
    let mut direction = direction("loss=5%,burst=1%/20%,rate=7Mbit,queue=20ms,duplicate=3%,reorder=2%", 9);
    let mut found = BTreeMap::new();
    for number in 0..10_000 {
        let name = match direction.arrive(ms(number), 1000) {
            Fate::Delivered { .. } => "delivered",
            Fate::Dropped(Reason::Loss) => "lost",
            Fate::Dropped(Reason::Burst) => "burst",
            Fate::Dropped(Reason::Queue) => "queue",
        };
        *found.entry(name).or_insert(0) += 1;
    }
    let tally = direction.tally();
    let counted = [
        ("burst", tally.lost_in_bursts),
        ("delivered", tally.delivered),
        ("lost", tally.lost),
        ("queue", tally.queue_full),
    ];
    assert_eq!(found, BTreeMap::from(counted));
    assert!(counted.iter().all(|(_, count)| *count > 0) && tally.duplicates > 0 && tally.held_back > 0);
}

#[test]
fn texts_are_read() {
    let found: Impairments =
        "delay=50ms, jitter=5ms,loss=0.1%,burst=1%/25%/80%,reorder=2%,reorder-by=500us,duplicate=0,rate=2.5Mbit,queue=64kB"
            .parse()
            .unwrap();
    let expected = Impairments {
        delay: ms(50),
        jitter: ms(5),
        loss: 0.001,
        burst: Some(Burst { enter: 0.01, leave: 0.25, loss: 0.8 }),
        reorder: 0.02,
        reorder_by: Duration::from_micros(500),
        duplicate: 0.0,
        rate: Some(2_500_000),
        queue: QueueLimit::Bytes(64_000),
    };
    assert_eq!(found, expected);
    assert_eq!("".parse(), Ok(Impairments::default()));
}

#[test]
fn wrong_texts_are_refused() {
    for text in [
        "delay",
        "delay=5",
        "delay=-1ms",
        "delay=2h",
        "delay=4000s",
        "loss=1",
        "loss=101%",
        "burst=1%",
        "burst=1%/2%/3%/4%",
        "rate=0Mbit",
        "rate=4MB",
        "queue=9GB",
        "lag=5ms",
        "delay=1ms,jitter=2ms",
        "loss=nan%",
    ] {
        assert!(text.parse::<Impairments>().is_err(), "{text}");
    }
}
