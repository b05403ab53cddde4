//! Answers of nodes of a cluster to each other: an answer that is read and written again is the same, and a copy that hears it tells all of it. An input is one
//! reply or pass, or several that a byte 0 ends.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_cluster::{GossipMap, GossipMoment, GossipOrder, GossipPass, GossipReply, GossipRun};
use millpond_fuzz::fuzz_target;
use std::time::Duration;

fn map(node: &str) -> GossipMap {
    let run = GossipRun { node: node.parse().expect("a name"), incarnation: 1 };
    let order = GossipOrder { folder: "/millpond/purge/".into(), except: "/millpond/purge/floor".into() };
    GossipMap::new(run, "/millpond/", order)
}

fuzz_target!(|bytes: &[u8]| {
    let (mut first, mut second) = (map("x"), map("y"));
    for (number, value) in bytes.split(|byte| *byte == 0).take(64).enumerate() {
        let elapsed = Duration::from_millis(number as u64 * 400);
        let now = GossipMoment { wall: Duration::from_secs(1_790_000_000) + elapsed, elapsed };
        if let Some(pass) = std::str::from_utf8(value).ok().and_then(|text| text.parse::<GossipPass>().ok()) {
            assert_eq!(pass.to_string().parse(), Ok(pass));
        }
        let Ok(reply) = GossipReply::from_json(value) else { continue };
        let again = GossipReply::from_json(reply.to_json().as_bytes());
        assert_eq!(again.expect("what was written"), reply);
        let from = first.sequence() + 1;
        first.merge(reply, now);
        first.tick(now);
        let _ = first.changes("/millpond/", from);
        let (pairs, _) = first.range("/millpond/", 10_000);
        assert!(pairs.iter().all(|pair| pair.created <= pair.revision && pair.key.starts_with("/millpond/")));
    }
    // Another copy hears the same keys.
    let now = GossipMoment { wall: Duration::from_secs(1_790_000_100), elapsed: Duration::from_secs(100) };
    let mut since = 0;
    loop {
        let reply = first.reply(since);
        assert!(reply.to_json().len() <= GossipReply::LONGEST);
        assert!(!reply.has_more || reply.sequence > since);
        (since, _) = (reply.sequence, second.merge(reply.clone(), now));
        if !reply.has_more {
            break;
        }
    }
    second.tick(now);
    first.tick(now);
});
