//! A request that reads its policy's version, and sleeps until the version's number is another
//! policy's and its key's slot holds the key under that number.

use super::*;
use crate::algorithm::Algorithm;
use crate::decision::Verdict;
use crate::table::memory::slot::{Bucket, Journal, Slot, SlotPair};
use crate::table::policies::conversion::UnderVersion;
use crate::table::slots::candidates::{hash_of_tag, Candidates};
use crate::table::slots::protocol;
use crate::table::slots::states::OnFull;

const NOW: u64 = 1_000;
/// The tag of the only key.
const KEY: u64 = 1;
/// The permits of every policy of the model. None comes back, because all requests are at [`NOW`].
const PERMITS: u64 = 3;
/// The periods of the policies. Each refills more slowly than the one before, so that a conversion
/// keeps the key in its slot. With a permit used, the last one's word is a debt of many periods
/// under the first.
const PERIODS: [u64; 4] = [30, 33, 36, 30_000];

/// A table with one policy and the two slots of one key.
struct Table {
    policies: Policies,
    buckets: [Bucket; 2],
}

impl Table {
    /// A table whose key has used `used` permits. `weak`: slots are read by loads.
    fn new(used: u64, weak: bool) -> Table {
        let memory = Memory::new();
        let first = Policy::new(PERMITS, PERIODS[0]);
        records::add(memory.header(), memory.records(), &first).expect("a record");
        let journal = Arc::new(Journal::new(weak));
        let buckets = [0, 1].map(|n| Bucket([Slot::new(n, SlotPair::EMPTY, &journal)]));
        let table = Table { policies: Policies::over(memory).expect("memory"), buckets };
        (0..used).for_each(|_| assert!(table.admit()));
        table
    }

    fn candidates(&self) -> Candidates<'_> {
        let [first, second] = &self.buckets;
        Candidates { first, second, tag: KEY }
    }

    /// Calls `f` with the key's word and version in force.
    fn under<T>(&self, f: impl FnOnce(u64, UnderVersion<'_>) -> T) -> T {
        let (hash, mut scratch) = (hash_of_tag(KEY), Scratch::new());
        let version = self.policies.current(PolicyId::FIRST, hash, &mut scratch).expect("whole");
        f(version.key | KEY, UnderVersion { policies: &self.policies, version })
    }

    /// Whether a request for one permit is admitted. It asks until the protocol decides, like a
    /// table's slow path.
    fn admit(&self) -> bool {
        loop {
            let decided = self.under(|key, states| {
                let step = |state| states.version.rule.step(state, NOW, 1);
                protocol::request(&states, &self.candidates(), key, NOW, OnFull::Deny, step)
            });
            if let Ok(outcome) = decided {
                return outcome.verdict == Verdict::Allowed;
            }
        }
    }

    /// Sets the policy like `Table::set_policy`.
    fn change(&self, period: u64) {
        let (header, all) = (self.policies.memory.header(), self.policies.memory.records());
        let policy = Policy::new(PERMITS, period);
        let change = || records::change(header, all, 0, &policy, Keep::Count);
        if change().is_ok() {
            return;
        }
        let former = records::former(header, all);
        fence(Ordering::SeqCst);
        self.sweep();
        records::free_former(header, all, &records::older(header, &former));
        change().expect("a record");
    }

    /// Brings each slot to the version in force, like `Table::free_versions`.
    fn sweep(&self) {
        for Bucket([slot]) in &self.buckets {
            let is_done = || {
                let pair = slot.pair();
                self.under(|key, states| match pair.is_vacant() {
                    true => protocol::disturb(slot, pair, NOW).is_ok(),
                    false if pair.key == key => true,
                    false => {
                        let _ = protocol::first_to_expire(&states, &self.candidates(), key, NOW);
                        false
                    }
                })
            };
            while !is_done() {}
        }
    }

    /// Changes the policy until its version has the number of the first again.
    fn change_until_the_number_is_used_again(&self) {
        let number = || version_of(self.policies.memory.current_stamp(0));
        let first = number();
        PERIODS[1..].iter().for_each(|period| self.change(*period));
        assert_eq!(number(), first, "the number is not used again");
    }
}

/// One thread requests a permit of a key, new or known, while another changes the policy until a
/// later version has the first one's number, and then requests one, too. Under each of the policies
/// the key has permits for both, so both are admitted, and in the end the key has the rest.
#[test]
fn a_request_that_slept_beside_changes_decides_under_the_policy_in_force() {
    let mut executions = 0;
    for (used, weak, is_first) in [0, 1].into_iter().flat_map(|used| {
        [(false, false), (false, true), (true, false), (true, true)].map(|(a, b)| (used, a, b))
    }) {
        executions += explore(deep(2), move || {
            let table = Arc::new(Table::new(used, weak));
            let asks = |table: &Table| assert!(table.admit(), "refused with permits left");
            let changes = move |table: &Table| {
                table.change_until_the_number_is_used_again();
                asks(table);
            };
            let other = {
                let table = table.clone();
                thread::spawn(move || if is_first { changes(&table) } else { asks(&table) })
            };
            if is_first {
                asks(&table);
            } else {
                changes(&table);
            }
            other.join().unwrap();
            let left = (0..=PERMITS).take_while(|_| table.admit()).count() as u64;
            assert_eq!(left, PERMITS - used - 2, "the key's permits in the end");
        });
    }
    println!("a number used again: {executions} executions");
}
