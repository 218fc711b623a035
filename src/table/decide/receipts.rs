//! Receipts: a call takes an estimate, and a later call settles it when the real cost is known.

use super::Table;
use crate::algorithm::Charge;
use crate::decision::{Decision, Reason};
use crate::sync::Ordering;
use crate::table::memory::error::RequestError;
use crate::table::memory::mix::fold;
use crate::table::policies::compiled::Version;
use crate::table::policies::local::Scratch;
use crate::table::policies::PolicyId;

/// The proof of a charge, for [`Table::settle`]. It is plain data: callers may copy and store it,
/// and another process that has the same table may settle it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Receipt {
    /// The key's hash; the time of the charge; the policy and the estimate; the receipt's number
    /// and a checksum of all.
    words: [u64; 4],
}

/// How much of an estimate that was too high goes back to the key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Refund {
    /// The unused permits without those that the key has regained by refill since the charge. The
    /// bound of every interval holds.
    #[default]
    Safe,
    /// All unused permits, also the regained ones. **Unsafe**: each receipt that stays open while
    /// the limit refills a burst may let one more burst pass. Use it if admitting too many requests
    /// is better than charging a key for the time that its requests took.
    Full,
}

/// What [`Table::settle`] did with a receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Whether this call settled the receipt. If not, an earlier call did or the receipt is too
    /// old, and no permits went back.
    pub first: bool,
    /// The number of whole permits that went back to the key. A part of one more may have gone
    /// back, too.
    pub given_back: u64,
    /// The number of permits above the estimate that could not be charged, because the key's debt
    /// is as high as its state can hold.
    pub rest: u64,
}

/// The highest estimate that a receipt can hold.
const COST_MOST: u64 = (1 << 56) - 1;

impl Receipt {
    /// A receipt from its words.
    pub const fn from_words(words: [u64; 4]) -> Receipt {
        Receipt { words }
    }

    /// The receipt's words, which the caller may store and send.
    pub const fn words(&self) -> [u64; 4] {
        self.words
    }

    /// The number of permits that the call charged: the estimate, or 0 if it charged no key.
    pub const fn charged(&self) -> u64 {
        self.words[2] & COST_MOST
    }
}

impl Table {
    /// Takes `estimate` permits, and returns a receipt if the request is admitted. When the real
    /// cost is known, [`Table::settle`] gives unused permits back or charges the missing ones.
    ///
    /// ```
    /// use tollbar::table::{Options, PolicyId, Refund, Table};
    ///
    /// let table = Table::private(&Options::new(10_000), &["1000/min".parse()?])?;
    /// let (decision, receipt) = table.take(PolicyId::FIRST, b"ann", 800)?;
    /// let receipt = receipt.expect("permits");
    /// assert_eq!(decision.remaining, 200);
    /// // … the answer took 150 tokens
    /// let settled = table.settle(&receipt, 150, Refund::Safe)?;
    /// assert!(settled.given_back > 600); // less what time has brought back
    /// assert!(!table.settle(&receipt, 0, Refund::Safe)?.first); // a receipt is settled once
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// A table can settle its last 8,184 receipts. An older receipt stays charged at its estimate.
    ///
    /// # Errors
    /// Those of [`Table::try_check`]; [`RequestError::Receipt`] for an estimate above 2^56 - 1.
    /// Nothing has been taken.
    pub fn take(
        &self,
        policy: PolicyId,
        key: &[u8],
        estimate: u64,
    ) -> Result<(Decision, Option<Receipt>), RequestError> {
        self.take_at(policy, key, self.now(), estimate)
    }

    /// [`Table::take`] at the caller's time.
    ///
    /// # Errors
    /// Those of [`Table::take`].
    pub fn take_at(
        &self,
        policy: PolicyId,
        key: &[u8],
        now: u64,
        estimate: u64,
    ) -> Result<(Decision, Option<Receipt>), RequestError> {
        if estimate > COST_MOST {
            return Err(RequestError::Receipt);
        }
        let mut scratch = Scratch::new();
        let (version, hash) = match self.prepare(policy, key, &mut scratch) {
            Ok(prepared) => prepared,
            Err(decided) => {
                let decision = self.counted(policy, decided)?;
                // No key was charged, so there is nothing to settle.
                return Ok((
                    decision,
                    decision.is_allowed().then(|| self.receipt(0, policy, now, 0, 0)),
                ));
            }
        };
        self.policies.memory.note_time(now);
        let decision = self.slow_uncounted(version, hash, now, estimate)?;
        self.policies.memory.count_with_reason(version.number, decision.verdict, decision.reason);
        self.note_refusal(decision.verdict, policy, key, Some(now));
        let charged = if decision.reason == Reason::TableFull { 0 } else { estimate };
        Ok((
            decision,
            decision.is_allowed().then(|| self.open_receipt(version, hash, now, charged)),
        ))
    }

    /// Settles a receipt at the real cost. If the cost is below the estimate, the unused permits go
    /// back to the key, without those that the key has regained by refill since the charge. If the
    /// cost is above the estimate, the difference is charged as a debt ([`Table::charge`]).
    ///
    /// Only the first call settles a receipt, whichever copy it has. A second call gives nothing
    /// back to the key, and charges a cost above the estimate again. So a caller that is unsure and
    /// repeats a call may lose permits and never gains any. The same holds for a receipt that is
    /// too old.
    ///
    /// In every interval of length t, requests use at most `burst + rate · t` permits, plus the
    /// costs above estimates of the receipts that were open at one time.
    ///
    /// # Errors
    /// [`RequestError::Receipt`] if the receipt is not one of this table. Nothing has changed.
    pub fn settle(
        &self,
        receipt: &Receipt,
        cost: u64,
        refund: Refund,
    ) -> Result<Settled, RequestError> {
        self.settle_when(receipt, cost, refund, &|| self.now())
    }

    /// [`Table::settle`] at the caller's time, which must not be earlier than that of any call for
    /// this key that has returned.
    ///
    /// # Errors
    /// Those of [`Table::settle`].
    pub fn settle_at(
        &self,
        receipt: &Receipt,
        now: u64,
        cost: u64,
        refund: Refund,
    ) -> Result<Settled, RequestError> {
        self.settle_when(receipt, cost, refund, &|| now)
    }

    pub(super) fn settle_when(
        &self,
        receipt: &Receipt,
        cost: u64,
        refund: Refund,
        now: &dyn Fn() -> u64,
    ) -> Result<Settled, RequestError> {
        let [hash, at, policy_cost, number] = receipt.words;
        let (policy, estimate) = (PolicyId::new((policy_cost >> 56) as u32), receipt.charged());
        if *receipt != self.receipt(hash, policy, at, estimate, number as u32) {
            return Err(RequestError::Receipt);
        }
        // The request had an exempt key or no key, and charged none.
        if hash == 0 {
            return Ok(Settled { first: true, given_back: 0, rest: 0 });
        }
        let mut scratch = Scratch::new();
        let version = self.policies.current(policy, hash, &mut scratch)?;
        let stamp = stamp_of(version);
        let first = self.policies.memory.receipts().close(check_of(stamp, hash, at), number as u32);
        if cost > estimate {
            let now = now();
            let rest = self.charge_hashed(version, hash, now, cost - estimate)?;
            return Ok(Settled { first, given_back: 0, rest });
        }
        let at = match refund {
            Refund::Safe => at,
            // With the present as the time of the charge, no permits count as regained by refill.
            Refund::Full => now(),
        };
        let given_back = match first {
            true => self.give_back_under(
                version,
                stamp,
                hash,
                Charge { at, cost: estimate },
                estimate - cost,
                now,
            )?,
            false => 0,
        };
        Ok(Settled { first, given_back, rest: 0 })
    }

    /// Opens a receipt for a charge.
    fn open_receipt(&self, version: &Version, hash: u64, at: u64, cost: u64) -> Receipt {
        let number = self.policies.memory.receipts().open(check_of(stamp_of(version), hash, at));
        self.receipt(hash, PolicyId::new(version.number), at, cost, number)
    }

    fn receipt(&self, hash: u64, policy: PolicyId, at: u64, cost: u64, number: u32) -> Receipt {
        let words = [hash, at, u64::from(policy.number()) << 56 | cost, u64::from(number)];
        let check =
            fold(&[self.policies.memory.fixed.seed, words[0], words[1], words[2], words[3]]);
        Receipt { words: [words[0], words[1], words[2], words[3] | check << 32] }
    }
}

/// The checksum that distinguishes an open receipt from others with the same place: of its key, its
/// time and its version's stamp.
fn check_of(stamp: u64, hash: u64, at: u64) -> u64 {
    fold(&[hash, at, stamp])
}

fn stamp_of(version: &Version) -> u64 {
    version.stamp.load(Ordering::Relaxed)
}
