//! Idle keys: how many of the first requests are denied before the store has answered, and with
//! which reason.

#[path = "../../../tests/common/mod.rs"]
mod common;
#[path = "lease/site.rs"]
mod site;

use common::{policy, Rng, MS};
use site::Site;
use tollbar::Reason;
use tollbar_redis::lease::Options;

const KEYS: u64 = 500;

/// Makes six requests of each idle key, one every `gap`. Returns how many of the first, second, …
/// requests were denied, and how many denials had another reason than `Pending`.
fn refused(text: &str, nodes: u32, gap: u64) -> ([u64; 6], u64) {
    let mut site = Site::new(&policy(text), &Options::new(nodes));
    let (mut refused, mut otherwise, mut rng) = ([0; 6], 0, Rng(5));
    for key in 0..KEYS {
        // Long enough for the client to tick slowly again; the request comes at a random time
        // between two ticks.
        site.pass(200 * MS + rng.below(4 * MS));
        for refused in &mut refused {
            let decision = site.check(key);
            *refused += u64::from(!decision.is_allowed());
            otherwise += u64::from(!decision.is_allowed() && decision.reason != Reason::Pending);
            site.pass(gap);
        }
    }
    (refused, otherwise)
}

/// The store has the whole burst, so a request is allowed once an answer can have come: after the
/// client's pause of 4 ms and a round trip of 1 ms. A request that is denied before that gets the
/// reason `Pending`.
#[test]
fn an_idle_key_waits_for_one_answer_at_most() {
    println!("per cent refused, 1st to 6th request of an idle key, round trip 1 ms");
    for (text, nodes) in [
        ("100/min burst 100", 10),
        ("100/min burst 100", 2),
        ("100/s burst 100", 4),
        ("10/s burst 20", 2),
    ] {
        for gap in [5 * MS + MS / 2, MS, 0] {
            let (counts, otherwise) = refused(text, nodes, gap);
            let cents = counts.map(|count| count * 100 / KEYS);
            println!("{text}, {nodes} nodes, every {:.1} ms: {cents:?}", gap as f64 / 1e6);
            assert_eq!(otherwise, 0, "the store never refused");
            assert_eq!(counts[0], 0, "the reserve admits the first request");
            if gap > 5 * MS {
                assert_eq!(counts, [0; 6]);
            }
        }
    }
}

/// A caller that waits for `retry_after` is allowed then. The wait is one round trip, and not the
/// policy's time.
#[test]
fn waiting_for_retry_after_is_enough() {
    let mut site = Site::new(&policy("100/min burst 100"), &Options::new(10));
    let (mut waits, mut longest) = (0, 0);
    for key in 0..KEYS {
        site.pass(200 * MS);
        for request in 0..6 {
            let mut decision = site.check(key);
            if !decision.is_allowed() {
                assert_eq!(decision.reason, Reason::Pending, "request {request}");
                longest = longest.max(decision.retry_after);
                waits += 1;
                site.pass(decision.retry_after);
                decision = site.check(key);
            }
            assert!(decision.is_allowed(), "request {request} after a wait: {decision:?}");
        }
    }
    println!("{waits} waits, {:.1} ms at most; a permit takes 600 ms", longest as f64 / 1e6);
    assert!(waits > KEYS && longest < 10 * MS);
}
