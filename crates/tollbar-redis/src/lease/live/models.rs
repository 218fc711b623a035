//! Loom models of words that change together.

use super::*;
use crate::lease::model;
use alloc::sync::Arc;
use loom::thread;

fn copies() -> Arc<Copies<2>> {
    Arc::new(Copies {
        stored: AtomicU64::new(0),
        words: [[0, 0], [0, 0]].map(|words| words.map(AtomicU64::new)),
    })
}

/// A reader beside a writer that stores three times, so that it comes back to the copy that the
/// reader may be reading: the reader has the words of one store or none.
#[test]
fn words_of_one_store() {
    model(|| {
        let copies = copies();
        let writer = {
            let copies = copies.clone();
            thread::spawn(move || (1..=3).for_each(|n| copies.store([n, n])))
        };
        if let Some([first, second]) = copies.load() {
            assert_eq!(first, second, "words of two stores");
        }
        writer.join().expect("the writer");
        assert_eq!(copies.load(), Some([3, 3]));
    });
}

/// A reader that has seen the words of a store reads those or later ones.
#[test]
fn no_reader_goes_back() {
    model(|| {
        let copies = copies();
        let writer = {
            let copies = copies.clone();
            thread::spawn(move || (1..=2).for_each(|n| copies.store([n, n])))
        };
        if let (Some([first, _]), Some([second, _])) = (copies.load(), copies.load()) {
            assert!(second >= first, "{first}, then {second}");
        }
        writer.join().expect("the writer");
    });
}
