//! Round robin (Srinilta and Choudhary 3.1, RR).

use super::{Answer, Assignment, AssignmentName, Candidate, Request, Standing, sosd::CANDIDATES};
use crate::{Loads, loads::Dispenser};

/// Each stream goes to the next dispenser, whatever it plays. Full dispensers come last.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundRobin;

impl Assignment for RoundRobin {
    fn name(&self) -> AssignmentName {
        AssignmentName::RoundRobin
    }

    fn assign(&self, loads: &mut Loads, request: &Request<'_>) -> Answer {
        let agreement = loads.agreement(request.key);
        let (all, compared) = (loads.dispensers(), loads.count_of(&agreement));
        let turn = usize::try_from(request.turn % compared.max(1) as u64).unwrap_or(0);
        let may_serve = |dispenser: &&Dispenser| agreement.has(dispenser.class);
        let first = match agreement.is_of_all() {
            true => turn,
            false => (0..all.len()).filter(|at| may_serve(&&all[*at])).nth(turn).unwrap_or(0),
        };
        let [mut with_room, mut full] = [const { Vec::new() }; 2];
        for dispenser in all[first..].iter().chain(&all[..first]).filter(may_serve) {
            if with_room.len() == CANDIDATES {
                break;
            }
            let candidate = |standing| Candidate::new(dispenser, 0.0, standing, dispenser.capacity);
            match request.is_too_much(dispenser) {
                false => with_room.push(candidate(Standing::Room)),
                true if full.len() < CANDIDATES => full.push(candidate(Standing::Full)),
                true => {}
            }
        }
        with_room.append(&mut full);
        with_room.truncate(CANDIDATES);
        Answer { candidates: with_room, compared }
    }
}
