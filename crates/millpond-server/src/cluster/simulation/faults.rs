//! Faults, as they happen to fleets.

use super::{
    member::Member,
    world::{Broken, HEALING, Kind, NODES, World, below, told},
};
use std::{
    sync::{PoisonError, atomic::Ordering},
    time::Duration,
};
use tokio::time::{Instant, sleep};

impl World {
    /// Something goes wrong, or is repaired.
    pub(super) fn fault(&mut self) {
        self.last_fault = Instant::now();
        let fault = below(if self.kind == Kind::Calm { 50 } else { 100 });
        if fault < 18 || self.members.is_empty() {
            return self.start(below(NODES));
        }
        let at = below(self.members.len());
        self.members[at].disturbed = Instant::now();
        let name = self.members[at].name.clone();
        match fault {
            18..25 => {
                self.members.swap_remove(at);
                told(&self.told).act("killed", name);
            }
            25..30 => {
                let mut member = self.members.swap_remove(at);
                member.gate.set(false);
                member.leave();
                // Its tasks end by themselves.
                tokio::spawn(async move {
                    sleep(Duration::from_secs(5)).await;
                    drop(member);
                });
                told(&self.told).act("left", name);
            }
            30..40 => self.pause(at, Duration::from_millis(fastrand::u64(50..1500)), "paused briefly"),
            40..50 => {
                let skew = if below(2) == 0 { fastrand::i64(-600_000..600_000) } else { 0 };
                self.members[at].skew.store(skew, Ordering::Relaxed);
                told(&self.told).act("clock set", format_args!("{name}: ahead by {skew} ms"));
            }
            50..62 => self.pause(at, Duration::from_millis(fastrand::u64(1500..30_000)), "paused"),
            62..76 => {
                let mut way = self.members[at].way.lock().unwrap_or_else(PoisonError::into_inner);
                way.is_cut = !way.is_cut;
                told(&self.told).act(if way.is_cut { "cut" } else { "connected" }, name);
            }
            76..86 => {
                let mut way = self.members[at].way.lock().unwrap_or_else(PoisonError::into_inner);
                way.loss = if way.loss > 0.0 { 0.0 } else { fastrand::f64() * 0.4 };
                way.delay = Duration::from_millis(fastrand::u64(1..1200));
                told(&self.told).act("lossy", format_args!("{name}: {:.2}, {:?}", way.loss, way.delay));
            }
            86..92 => {
                let time = Duration::from_millis(fastrand::u64(100..15_000));
                self.etcd.fails_for(time);
                told(&self.told).act("etcd away", format_args!("for {time:?}"));
            }
            92..96 => {
                self.etcd.compact();
                told(&self.told).act("compacted", "");
            }
            _ => self.etcd.mutate(),
        }
    }

    /// Pauses a node, and resumes it after a time.
    fn pause(&mut self, at: usize, time: Duration, what: &'static str) {
        let Member { name, gate, .. } = &self.members[at];
        if gate.is_paused() {
            return;
        }
        gate.set(true);
        told(&self.told).act(what, format_args!("{name} for {time:?}"));
        let gate = gate.clone();
        tokio::spawn(async move {
            sleep(time).await;
            gate.set(false);
        });
    }

    /// Ends all faults, waits, and checks that the cluster is whole.
    pub(super) async fn heal(&mut self) -> Result<(), Broken> {
        self.etcd.fails_for(Duration::ZERO);
        for member in &mut self.members {
            member.gate.set(false);
            let mut way = member.way.lock().unwrap_or_else(PoisonError::into_inner);
            (way.is_cut, way.loss, way.delay) = (false, 0.0, Duration::from_millis(5));
        }
        if self.members.is_empty() {
            self.start(0);
        }
        self.last_fault = Instant::now();
        told(&self.told).act("healed", "");
        self.pass(HEALING).await?;
        self.check_whole()
    }
}
