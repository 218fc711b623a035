use super::*;
use crate::sync::{deep, explore};
use loom::sync::Arc;
use loom::thread;

/// Two calls write the texts of two keys into one place, and a third reads: it sees the key of the
/// fingerprint or none.
#[test]
fn a_text_is_of_its_key() {
    let text_of = |fingerprint: u32| if fingerprint == 1 { *b"first" } else { *b"other" };
    let check = move |refusals: &Refusals| {
        for seen in refusals.seen(0) {
            let Some(text) = seen.text else { continue };
            assert_eq!(text.bytes[..text.length], text_of(seen.fingerprint), "{seen:?}");
        }
    };
    let executions = explore(deep(2), move || {
        let refusals = Arc::new(Refusals::new());
        let threads: [_; 2] = core::array::from_fn(|n| {
            let refusals = refusals.clone();
            thread::spawn(move || {
                let fingerprint = 1 + n as u32;
                refusals.record(u64::from(fingerprint) << 32, 3, &text_of(fingerprint), 0);
            })
        });
        check(&refusals);
        threads.into_iter().for_each(|thread| thread.join().expect("a thread"));
        check(&refusals);
        assert!(refusals.seen(0).next().is_some_and(|seen| seen.count >= 1));
    });
    std::println!("refusals: {executions} executions");
}
