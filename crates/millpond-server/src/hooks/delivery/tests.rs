use super::*;
use crate::events::{EventMetrics, Events, Kind};
use prometheus_client::registry::Registry;
use serde_json::json;

const PATIENCE: Duration = Duration::from_secs(24 * 3600);

fn events(most: usize) -> Arc<Events> {
    Events::new("edge", most, &EventMetrics::register(&mut Registry::default()))
}

fn emit(events: &Events, count: u64) {
    for number in 0..count {
        events.emit(Kind::SourceLost, &format!("cams/{number}"), json!({}));
    }
}

/// An endpoint on a clock of its own, which is down for a time.
struct Simulation {
    events: Arc<Events>,
    delivery: Delivery,
    now: Duration,
    attempts: Vec<Duration>,
    delivered: Vec<u64>,
    given_up: GivenUp,
}

impl Simulation {
    fn new(events: Arc<Events>) -> Self {
        let (delivery, given_up) = (Delivery::new(0), GivenUp::default());
        Self { events, delivery, now: Duration::ZERO, attempts: Vec::new(), delivered: Vec::new(), given_up }
    }

    /// Performs all steps until there is none, or until a time.
    fn run(&mut self, until: Duration, is_down: impl Fn(Duration) -> bool) {
        loop {
            let (step, given_up) = self.delivery.step(self.now, PATIENCE, |position| self.events.after(position));
            self.given_up.overflow += given_up.overflow;
            self.given_up.old += given_up.old;
            match step {
                Step::Idle => return,
                Step::Wait(due) if due > until => {
                    self.now = until;
                    return;
                }
                Step::Wait(due) => self.now = due,
                Step::Send(event) if is_down(self.now) => {
                    assert!(self.delivered.last().is_none_or(|last| *last < event.number()));
                    self.attempts.push(self.now);
                    self.delivery.failed(self.now, 1.0);
                }
                Step::Send(event) => {
                    self.delivered.push(event.number());
                    self.delivery.delivered(&event);
                }
            }
        }
    }
}

#[test]
fn an_endpoint_that_is_down_for_ten_minutes_gets_all_events_in_their_order() {
    let events = events(1000);
    let mut simulation = Simulation::new(events.clone());
    let down = Duration::from_secs(600);
    for minute in 1..=10 {
        emit(&events, 50);
        simulation.run(Duration::from_secs(60 * minute), |now| now < down);
        assert!(simulation.delivered.is_empty());
    }
    simulation.run(down + LONGEST, |now| now < down);
    assert_eq!(simulation.delivered, (1..=500).collect::<Vec<_>>());
    assert_eq!(simulation.given_up, GivenUp::default());
    assert!(simulation.now <= down + LONGEST, "the endpoint waits a minute at most once it is up");
    // 1, 2, 4 ... 32 s, then a minute each.
    let pauses: Vec<u64> = simulation.attempts.windows(2).map(|two| (two[1] - two[0]).as_secs()).collect();
    assert_eq!(pauses[..8], [1, 2, 4, 8, 16, 32, 60, 60]);
    assert!(simulation.attempts.len() < 20, "{}", simulation.attempts.len());
}

#[test]
fn above_the_bound_the_oldest_events_are_lost_and_counted() {
    let events = events(100);
    let mut simulation = Simulation::new(events.clone());
    emit(&events, 1);
    simulation.run(Duration::from_secs(10), |_| true);
    emit(&events, 250);
    simulation.run(Duration::from_secs(100), |_| false);
    assert_eq!(simulation.delivered, (152..=251).collect::<Vec<_>>());
    assert_eq!(simulation.given_up, GivenUp { overflow: 151, old: 0 });
}

#[test]
fn one_event_follows_another_without_a_pause() {
    let events = events(10);
    let mut simulation = Simulation::new(events.clone());
    emit(&events, 3);
    simulation.run(Duration::ZERO, |_| false);
    assert_eq!((simulation.delivered.as_slice(), simulation.now), (&[1, 2, 3][..], Duration::ZERO));
    assert_eq!((simulation.delivery.position(), simulation.delivery.failures()), (3, 0));
}

#[test]
fn old_events_are_given_up_after_a_failure_only() {
    let events = events(10);
    emit(&events, 2);
    let late = PATIENCE * 2;
    let mut delivery = Delivery::new(0);
    let after = |position| events.after(position);
    // A hook that had no time to send, as after a pause of the machine, still sends.
    assert!(matches!(delivery.step(late, PATIENCE, after), (Step::Send(event), _) if event.number() == 1));
    delivery.failed(Duration::ZERO, 0.0);
    assert!(matches!(delivery.step(Duration::ZERO, PATIENCE, after), (Step::Wait(_), _)));
    let (step, given_up) = delivery.step(late, PATIENCE, after);
    assert!(matches!(step, Step::Idle) && given_up == GivenUp { overflow: 0, old: 2 }, "{step:?} {given_up:?}");
    emit(&events, 1);
    assert!(matches!(delivery.step(late, late * 2, after), (Step::Send(event), _) if event.number() == 3));
}

#[test]
fn pauses_have_a_random_half() {
    let mut delivery = Delivery::new(0);
    delivery.failed(Duration::ZERO, 0.0);
    assert_eq!(delivery.due, FIRST / 2);
    for _ in 0..100 {
        delivery.failed(Duration::ZERO, 7.0);
    }
    assert_eq!((delivery.due, delivery.failures()), (LONGEST, 101));
}
