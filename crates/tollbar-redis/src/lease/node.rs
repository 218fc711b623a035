//! A machine's part of a limit, in memory that its threads and processes share: leases to spend,
//! each key's right, a bucket for each key while the store does not answer (the *reserve*), and the
//! ring of messages to the client that asks the store.
//!
//! ```text
//!   0     header   name, terms; circuit, epoch, beat, owner; counts
//!   4 Ki  ring     ends, then places of 128 bytes
//!         lines    64 bytes a key, as many as the capacity rounded up to a power of two
//!         table    the reserve of each key (tollbar::table)
//! ```

use super::bucket::Grant;
use super::layout::{Header, Layout};
use super::line::{self, Candidates, Line, Taken};
use super::live::Live;
use super::ring::{Found, KeyMessage, MessageKind, Ring, KEY_MOST, NUMBER_MOST};
use super::said::Said;
use super::state::{KeyPhase, KeyState};
use super::stats::{Circuit, Count, Stats};
use super::terms::{patience, Fallback, Terms};
use denial::{denied, never};
use key_names::{reserve_key, store_key, KEYED, SINGLE};
use rapidhash::v3::{rapidhash_v3_inline, RapidSecrets};
use tollbar::decision::{Decision, Reason};
use tollbar::internal::sync::Ordering;
use tollbar::internal::Region;
use tollbar::table::Table;

/// A machine's part of a limit. Any number of threads and processes may make any call at once. Only
/// [`Node::wait`] waits, for the store's answer. No call allocates.
///
/// A `Client` asks the store. Without one a node has no leases and follows [`Fallback`].
#[derive(Debug)]
pub struct Node {
    pub(super) memory: Region,
    pub(super) layout: Layout,
    /// The machine's configuration.
    pub(super) own: Terms,
    pub(super) fallback: Fallback,
    pub(super) reserve: Table,
    pub(super) secrets: RapidSecrets,
}

/// A client that has taken no turn for this many nanoseconds counts as gone: callers then see an
/// open circuit.
const SILENCE: u64 = 250_000_000;
/// A debt that the client has not read within this many nanoseconds is lost: its caller was killed,
/// or the client before this one.
const UNREPORTED: u64 = 2_000_000_000;
/// Nanoseconds that a lease lives on after a change of the terms, or after the circuit has opened.
/// `change.rs` relies on it.
const KEPT: u64 = 1_000_000_000;
/// The lines that one turn of the client looks through for such debts.
const SWEEP: usize = 64;
/// The longest pause between two turns of a client that runs undisturbed and leads, in nanoseconds.
pub(super) const PAUSE: u64 = 4_000_000;

impl Node {
    /// Takes `cost` permits of `key`, from a lease or else from the key's right. With the empty key
    /// all requests share one limit. A cost of 0 is [`Node::peek_at`]. The call waits for nothing:
    /// an idle key's request that neither covers is denied as [`Reason::Pending`], although the
    /// store may have permits. [`Node::wait`] waits for the store's answer.
    ///
    /// `remaining` is what this node has left for the key. `retry_after` is an estimate in
    /// nanoseconds. `reset_after` is 0, because only the store knows it.
    #[inline]
    pub fn check(&self, key: &[u8], cost: u64) -> Decision {
        self.check_at(key, self.now(), cost)
    }

    /// [`Node::check`] at the caller's time: nanoseconds on the scale of [`Node::now`].
    #[inline]
    pub fn check_at(&self, key: &[u8], now: u64, cost: u64) -> Decision {
        let hash = self.hash(key);
        if cost == 0 {
            return self.peek_at(key, now, 0);
        }
        match self.take(hash, now, cost) {
            Some(taken) => {
                if taken.low {
                    self.nudge(hash, key, now, 1);
                }
                Decision::admitted(taken.left)
            }
            None => self.without_lease(hash, key, now, cost),
        }
    }

    /// Whether the leases or the right hold `cost` permits of `key` at `now`. The call takes
    /// nothing and sends no message.
    pub fn peek_at(&self, key: &[u8], now: u64, cost: u64) -> Decision {
        let hash = self.hash(key);
        let left =
            self.lines_of(hash).into_iter().map(|line| line.left(hash, now)).max().unwrap_or(0);
        if cost > self.live().most() {
            return never(left);
        }
        if left >= cost && left != 0 {
            return Decision::admitted(left);
        }
        let known = self.line_of(hash).and_then(|line| Some((line, line.state_of(hash)?)));
        let (state, right) = match known {
            Some((line, state)) => (state, line.right_left(hash, state, now, self.live().right())),
            None => (KeyState::default(), self.live().right()),
        };
        if self.circuit(now) != Circuit::Closed {
            let (policy, bytes) = reserve_key(key);
            let own = self.reserve.peek_at(policy, bytes, now, cost);
            return match own.is_allowed() {
                true => Decision::admitted(left.max(own.remaining)),
                false => denied(Reason::StoreDown, left, own.retry_after),
            };
        }
        if right >= cost {
            return Decision::admitted(left.max(right));
        }
        match state.phase_at(now) {
            KeyPhase::Dry | KeyPhase::Firm => {
                denied(Reason::StoreDenied, left, state.time().saturating_sub(now))
            }
            _ => denied(Reason::Pending, left, self.answer_takes()),
        }
    }

    /// The node's steady time in nanoseconds.
    #[inline(always)]
    pub fn now(&self) -> u64 {
        self.reserve.now()
    }

    /// The limit's name in the store.
    pub fn name(&self) -> &[u8] {
        let fixed = &self.header().fixed;
        fixed.name.get(..fixed.name_length as usize).unwrap_or_default()
    }

    /// The numbers of the limit that are in force, as the store last said. Before its first answer
    /// they are the machine's own.
    pub fn terms(&self) -> Terms {
        // Without terms in force the memory is damaged.
        self.live().load().filter(Terms::may_be_made).unwrap_or(self.own)
    }

    /// The numbers of the limit by the machine's configuration.
    pub fn own_terms(&self) -> &Terms {
        &self.own
    }

    /// Whether the store answers, as of `now`. The circuit also counts as open if the client has
    /// taken no turn for 250 ms, or has waited for an answer for longer than the patience.
    pub fn circuit(&self, now: u64) -> Circuit {
        let header = self.header();
        // Relaxed: the two words need not be a pair. A caller that reads an old word decides as it
        // would have a moment before.
        match header.circuit.load(Ordering::Relaxed) {
            // abs_diff: a beat in the future is damage, and counts as no beat.
            1 if now.abs_diff(header.beat.load(Ordering::Relaxed)) > SILENCE => Circuit::Open,
            1 if header.waited(now) > self.patience() => Circuit::Open,
            1 => Circuit::Closed,
            2 => Circuit::Open,
            _ => Circuit::Unknown,
        }
    }

    /// Whether a client of this node is there, and takes its turns.
    pub(super) fn has_client(&self, now: u64) -> bool {
        match self.header().beat.load(Ordering::Relaxed) {
            0 => false,
            beat => now.abs_diff(beat) <= SILENCE,
        }
    }

    /// The node's counters. They are read one by one, not at one instant.
    pub fn stats(&self) -> Stats {
        let header = self.header();
        let sum = |what: Count| header.sum(what as usize);
        Stats {
            granted: sum(Count::Granted),
            asked: sum(Count::Asked),
            overdrawn: sum(Count::Overdrawn),
            fallback_permits: sum(Count::FallbackPermits),
            uncounted: sum(Count::Uncounted),
            denied: sum(Count::Denied),
            queue_full: sum(Count::QueueFull),
            opened: sum(Count::Opened),
            owed: header.owed.load(Ordering::Relaxed),
            full: sum(Count::Full),
            denied_pending: sum(Count::DeniedPending),
            denied_by_store: sum(Count::DeniedByStore),
            denied_by_fallback: sum(Count::DeniedByFallback),
        }
    }

    /// The number of lines: at most this many keys have leases at one time. It is
    /// `Options::capacity`, rounded up to a power of two of at least 64. Each key has a choice of
    /// two lines, so fewer may fit.
    pub fn capacity(&self) -> usize {
        self.layout.line_count
    }

    pub(super) fn header(&self) -> &Header {
        // SAFETY: the memory is longer than a header and aligned to a cache line, `make` wrote or
        // `attach_in` inspected the header, and the words that others change are atomic.
        unsafe { self.memory.base().cast().as_ref() }
    }

    fn live(&self) -> &Live {
        &self.header().live
    }

    pub(super) fn pop(&self) -> Found {
        self.ring().pop()
    }

    pub(super) fn skip(&self, number: u64) {
        self.ring().skip(number);
    }

    /// The store's time at `now`, in microseconds; 0 if it is not known.
    pub(super) fn store_time(&self, now: u64) -> u64 {
        self.header().horizon.estimate(now)
    }

    /// Records an answer's epoch and time.
    pub(super) fn on_answer(&self, grant: &Grant, sent: u64, received: u64) {
        let header = self.header();
        if let Some(terms) = &grant.terms {
            self.follow(terms, received);
        }
        header.live.advance(grant.now);
        // Relaxed: these words publish no other memory.
        if header.epoch.load(Ordering::Relaxed) != grant.epoch {
            header.horizon.forget();
            header.heard.store(0, Ordering::Relaxed);
        }
        header.horizon.on_answer(grant.now, sent, received, self.terms().slack());
        header.heard.fetch_max(grant.now, Ordering::Relaxed);
        header.epoch.store(grant.epoch, Ordering::Relaxed);
    }

    /// Lets all leases end [`KEPT`] after `now` at the latest. By a faster rate the store would
    /// count as refilled what a long lease still has.
    pub(super) fn cut_leases(&self, now: u64) {
        let until = now.saturating_add(KEPT);
        self.lines().iter().for_each(|line| line.cut(until));
    }

    /// Puts the store's terms in force, unless the node knows a later version: then the store has
    /// lost that version, and the next question brings it back.
    fn follow(&self, terms: &Terms, now: u64) {
        let known = self.terms();
        if terms.version < known.version || !terms.may_be_made() {
            return;
        }
        self.cut_leases(now);
        let terms = Terms { fallback: known.fallback, ..*terms };
        self.live().store(&terms);
        // A share that the reserve cannot count leaves the former one.
        if let Ok(reserve) = terms.reserve() {
            for policy in [KEYED, SINGLE] {
                let _ = self.reserve.set_policy(policy, &reserve);
            }
        }
    }

    /// Installs a lease of `permits` until `until`.
    pub(super) fn install(&self, hash: u64, permits: u64, until: u64, now: u64) {
        if let Some(line) = self.line_of(hash) {
            line.install(hash, super::word::lease(permits, until), now);
        }
    }

    /// Records what the store said about the key.
    pub(super) fn heard(&self, hash: u64, said: &Said, now: u64) {
        if let Some(line) = self.line_of(hash) {
            line.heard(hash, said, now, now.saturating_add(self.patience()));
        }
    }

    /// Takes the numbers of the key's pending requests, and with `waiting` of those that wait.
    pub(super) fn take_requests(&self, hash: u64, waiting: bool) -> (u64, u64) {
        self.line_of(hash).map_or((0, 0), |line| line.take_requests(hash, waiting))
    }

    /// Frees rights whose debts nobody will report, in a part of the lines: the `turn`th.
    /// `is_owed` says whether the client knows a debt of the key.
    pub(super) fn sweep(&self, turn: usize, now: u64, is_owed: impl Fn(u64) -> bool) {
        let (lines, before) = (self.lines(), now.saturating_sub(UNREPORTED));
        // Relaxed: a claim that is not seen now is seen in a later turn. Lines that no key has
        // claimed stay untouched, so they take no memory.
        if self.header().claims.load(Ordering::Relaxed) == 0 {
            return;
        }
        let first = turn.wrapping_mul(SWEEP) & lines.len().wrapping_sub(1);
        for line in lines.iter().skip(first).take(SWEEP) {
            line.sweep(before, &is_owed);
        }
    }

    /// Adds a round trip of `took` nanoseconds to the moving average, with a weight of 1/8.
    pub(super) fn timed(&self, took: u64) {
        let known = &self.header().round_trip;
        // Relaxed: only the client that asks writes this word, and it publishes no other memory.
        let mean = match known.load(Ordering::Relaxed) {
            0 => took,
            mean => mean.saturating_sub(mean / 8).saturating_add(took / 8),
        };
        known.store(mean.max(1), Ordering::Relaxed);
    }

    /// Claims the question about a key for the driver, which asks by itself.
    pub(super) fn expect(&self, hash: u64, now: u64) {
        if let Some(line) = self.line_of(hash) {
            line.ask(hash, now, now.saturating_add(self.patience()));
        }
    }

    pub(super) fn count(&self, what: Count, n: u64) {
        self.header().add(what as usize, n);
    }

    #[inline(always)]
    pub(super) fn take(&self, hash: u64, now: u64, cost: u64) -> Option<Taken> {
        self.lines_of(hash).into_iter().find_map(|line| line.take(hash, now, cost))
    }

    /// Sends the client a message that asks for a lease of at least `want` permits, unless another
    /// caller has sent one within the patience.
    #[inline(never)]
    fn nudge(&self, hash: u64, key: &[u8], now: u64, want: u64) {
        let until = now.saturating_add(self.patience());
        if self.claim(hash, now).is_some_and(|line| line.ask(hash, now, until)) {
            self.ring_up(hash, key, MessageKind::Right, 0, want);
        }
    }

    /// The key's line, which the key claims if it has none.
    pub(super) fn claim(&self, hash: u64, now: u64) -> Option<&Line> {
        let lines = self.lines_of(hash);
        line::known(&lines, hash).or_else(|| {
            // Relaxed: the number only has to differ from those of others.
            let number = self.header().claims.fetch_add(1, Ordering::Relaxed);
            line::claim(&lines, hash, now, number)
        })
    }

    /// Writes a message that the client should read at once.
    pub(super) fn ring_up(
        &self,
        hash: u64,
        key: &[u8],
        kind: MessageKind,
        debt: u64,
        want: u64,
    ) -> bool {
        let written = self.write_message(hash, key, kind, debt, want);
        self.header().ring_bell();
        written
    }

    /// Writes a message to the client. `false`: the ring had no room. Then the caller must not
    /// admit the debt.
    fn write_message(
        &self,
        hash: u64,
        key: &[u8],
        kind: MessageKind,
        debt: u64,
        want: u64,
    ) -> bool {
        let mut bytes = [0; KEY_MOST];
        let length = store_key(key, &mut bytes);
        let message = KeyMessage {
            hash,
            kind,
            debt: debt.min(NUMBER_MOST),
            want: want.min(NUMBER_MOST),
            bytes,
            length,
        };
        let written = self.ring().push(&message);
        if !written {
            self.count(Count::QueueFull, 1);
        }
        written
    }

    /// Nanoseconds for which callers wait for an answer before one of them asks again:
    /// [`Terms::patience`].
    pub(super) fn patience(&self) -> u64 {
        patience(self.live().life())
    }

    /// [`Terms::life`].
    pub(super) fn life(&self) -> u64 {
        self.live().life()
    }

    /// Nanoseconds until an answer is likely: the client's pause and the mean round trip, at most
    /// the patience. The patience if no answer has come yet.
    pub(super) fn answer_takes(&self) -> u64 {
        match self.header().round_trip.load(Ordering::Relaxed) {
            0 => self.patience(),
            known => known.saturating_add(PAUSE).min(self.patience()),
        }
    }

    fn line_of(&self, hash: u64) -> Option<&Line> {
        line::known(&self.lines_of(hash), hash)
    }

    /// The lines that a key may claim: two neighbours by the lower half of its hash, and two by the
    /// upper.
    #[inline(always)]
    fn lines_of(&self, hash: u64) -> Candidates<'_> {
        let lines = self.lines();
        let mask = lines.len().wrapping_sub(1);
        let (low, high) = (hash as usize, (hash >> 32) as usize);
        [low, low ^ 1, high, high ^ 1].map(|n| {
            // SAFETY: the number of lines is a power of two, and so `mask` keeps `n` below it.
            unsafe { lines.get_unchecked(n & mask) }
        })
    }

    #[inline(always)]
    fn lines(&self) -> &[Line] {
        // SAFETY: the layout's lines are within the memory and aligned to a cache line; every bit
        // pattern is a line, and all access is atomic.
        unsafe {
            core::slice::from_raw_parts(
                self.layout.lines(self.memory.base()).as_ptr(),
                self.layout.line_count,
            )
        }
    }

    pub(super) fn ring(&self) -> Ring<'_> {
        let (ends, places) = self.layout.ring(self.memory.base());
        // SAFETY: the layout's ends and places are within the memory and aligned; every bit pattern
        // is valid for them, and all access is atomic.
        unsafe {
            Ring::new(
                ends.as_ref(),
                core::slice::from_raw_parts(places.as_ptr(), self.layout.place_count),
            )
        }
    }

    /// The key's hash in this node. It is never 0, which marks a slot without a key.
    #[inline(always)]
    pub(super) fn hash(&self, key: &[u8]) -> u64 {
        rapidhash_v3_inline::<true, true, false>(key, &self.secrets).max(1)
    }
}

mod denial;
mod key_names;
#[cfg(test)]
mod tests;
mod waiting;
mod without_lease;

pub use waiting::Wait;
