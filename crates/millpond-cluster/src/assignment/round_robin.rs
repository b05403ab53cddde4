//! Round robin (Srinilta and Choudhary 3.1, RR).

use super::{Answer, Assignment, AssignmentName, Candidate, Request, Standing, sosd::CANDIDATES};
use crate::Loads;

/// Each stream goes to the next dispenser, whatever it plays. Full dispensers come last.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundRobin;

impl Assignment for RoundRobin {
    fn name(&self) -> AssignmentName {
        AssignmentName::RoundRobin
    }

    fn assign(&self, loads: &mut Loads, request: &Request<'_>) -> Answer {
        let all = loads.dispensers();
        let first = usize::try_from(request.turn % all.len().max(1) as u64).unwrap_or(0);
        let [mut with_room, mut full] = [const { Vec::new() }; 2];
        for dispenser in all[first..].iter().chain(&all[..first]) {
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
        Answer { candidates: with_room, compared: all.len() }
    }
}
