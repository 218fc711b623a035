//! The terms in force, in memory that a node's processes share.

use super::terms::Terms;
use tollbar::internal::sync::{AtomicU64, Ordering};

/// The words of [`Terms`]. Only the client that asks writes them. A reader may see words of two
/// versions for a moment: a right of one and a largest cost of the other, both of which the store
/// allows for until every machine knows a change.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Live {
    /// Written last. A client that is killed while it writes leaves the former version, and the
    /// next answer brings the terms again.
    version: AtomicU64,
    num: AtomicU64,
    den: AtomicU64,
    burst: AtomicU64,
    cap: AtomicU64,
    debt_cap: AtomicU64,
    most: AtomicU64,
    life: AtomicU64,
    overdraft: AtomicU64,
    nodes: AtomicU64,
    on_loss: AtomicU64,
    flags: AtomicU64,
    overdraft_before: AtomicU64,
    since: AtomicU64,
    fallback: AtomicU64,
    /// A node's right now: `overdraft`, or what it was before `since`.
    right: AtomicU64,
}

impl Live {
    pub(super) fn store(&self, terms: &Terms) {
        let words = [
            (&self.num, terms.num),
            (&self.den, terms.den),
            (&self.burst, terms.burst),
            (&self.cap, terms.cap),
            (&self.debt_cap, terms.debt_cap),
            (&self.most, terms.most),
            (&self.life, terms.life),
            (&self.overdraft, terms.overdraft),
            (&self.nodes, terms.nodes),
            (&self.on_loss, terms.on_loss),
            (&self.flags, terms.flags),
            (&self.overdraft_before, terms.overdraft_before),
            (&self.since, terms.since),
            (&self.fallback, terms.fallback),
            (&self.right, terms.overdraft_before),
        ];
        // Relaxed: these words publish no other memory.
        words.into_iter().for_each(|(word, value)| word.store(value, Ordering::Relaxed));
        // Release: the next client that reads this version reads the words above.
        self.version.store(terms.version, Ordering::Release);
    }

    pub(super) fn load(&self) -> Terms {
        // Acquire: see `store`.
        let version = self.version.load(Ordering::Acquire);
        let word = |word: &AtomicU64| word.load(Ordering::Relaxed);
        Terms {
            version,
            num: word(&self.num),
            den: word(&self.den),
            burst: word(&self.burst),
            cap: word(&self.cap),
            debt_cap: word(&self.debt_cap),
            most: word(&self.most),
            life: word(&self.life),
            overdraft: word(&self.overdraft),
            nodes: word(&self.nodes),
            on_loss: word(&self.on_loss),
            flags: word(&self.flags),
            overdraft_before: word(&self.overdraft_before),
            since: word(&self.since),
            fallback: word(&self.fallback),
        }
    }

    /// The data's time has come to `now`: from [`Terms::since`] on the whole right holds.
    pub(super) fn advance(&self, now: u64) {
        if now >= self.since.load(Ordering::Relaxed) {
            self.right.store(self.overdraft.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    // Relaxed, here and below: each is one number, which publishes no other memory.
    pub(super) fn right(&self) -> u64 {
        self.right.load(Ordering::Relaxed)
    }

    pub(super) fn most(&self) -> u64 {
        self.most.load(Ordering::Relaxed)
    }

    pub(super) fn life(&self) -> u64 {
        self.life.load(Ordering::Relaxed)
    }
}
