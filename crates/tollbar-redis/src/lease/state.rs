//! The state word of a key on a node: how much of its right is used, and the store's last answer.
//!
//! ```text
//!  answers 3 | waiting 6 | pending 3 | right used 7 | claim, shut, firm, dry, asked | time 40
//! ```
//!
//! The time is in units of 2^17 ns. *answers* counts, so that a word does not come back while a
//! caller looks at the line.
//!
//! - *asked*: a caller has asked the store, and until `time` nobody asks again.
//! - *dry*: the store has no permits for the key before `time`. *firm*: not even for the requests
//!   that wait.
//! - Otherwise `time` is when the word last changed.
//! - *shut*: the key has no right before the time in the line's size slot, unless an answer opens
//!   it.
//! - *claim*: a caller puts the key into this line and has not looked at the key's other line yet.
//!   The upper bits are the claim's number.

use super::word::UNIT_BITS;

/// Loom's slots have a state of 48 bits.
const TIME_BITS: u32 = if cfg!(loom) { 27 } else { 40 };
const TIME: u64 = (1 << TIME_BITS) - 1;
const ASKED: u64 = 1 << TIME_BITS;
const DRY: u64 = 2 << TIME_BITS;
const FIRM: u64 = 4 << TIME_BITS;
const SHUT: u64 = 8 << TIME_BITS;
const CLAIM: u64 = 16 << TIME_BITS;
const USED: Part = Part { at: TIME_BITS + 5, bits: 7 };
const PENDING: Part = Part { at: USED.at + USED.bits, bits: if cfg!(loom) { 2 } else { 3 } };
const WAITING: Part = Part { at: PENDING.at + PENDING.bits, bits: if cfg!(loom) { 4 } else { 6 } };
const ANSWERS: Part = Part { at: WAITING.at + WAITING.bits, bits: 3 };
/// A claim that is older than a second is a dead caller's.
const CLAIM_MOST: u64 = 1_000_000_000 >> UNIT_BITS;

/// A number in the word.
#[derive(Clone, Copy)]
struct Part {
    at: u32,
    bits: u32,
}

/// The parts of a state word. [`KeyState::pack`] and [`KeyState::of`] are inverse to each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyState {
    /// Permits of the right that the store has not confirmed.
    pub used: u64,
    /// Requests that were refused since the last question. 7 may be more.
    pub pending: u64,
    /// Requests that wait and are in no question yet. 63 may be more.
    pub waiting: u64,
    /// The number of answers, modulo 8.
    pub answers: u64,
    /// Whether the key has no right before the time in the line's size slot.
    pub shut: bool,
    /// What the key waits for until `units`.
    pub phase: KeyPhase,
    /// The time, in units of 2^17 ns.
    pub units: u64,
}

/// What the key waits for, until the word's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyPhase {
    /// Nothing.
    #[default]
    Idle,
    /// An answer.
    Asked,
    /// Permits in the store.
    Dry,
    /// Permits in the store, also for requests that wait.
    Firm,
}

impl KeyState {
    /// `None`: the word is a claim.
    #[inline]
    pub fn of(word: u64) -> Option<KeyState> {
        if word & CLAIM != 0 {
            return None;
        }
        let phase = match word & (ASKED | DRY | FIRM) {
            0 => KeyPhase::Idle,
            ASKED => KeyPhase::Asked,
            DRY => KeyPhase::Dry,
            _ => KeyPhase::Firm,
        };
        Some(KeyState {
            used: USED.of(word),
            pending: PENDING.of(word),
            waiting: WAITING.of(word),
            answers: ANSWERS.of(word),
            shut: word & SHUT != 0,
            phase,
            units: word & TIME,
        })
    }

    /// The word of the state.
    #[inline]
    pub fn pack(self) -> u64 {
        let phase = match self.phase {
            KeyPhase::Idle => 0,
            KeyPhase::Asked => ASKED,
            KeyPhase::Dry => DRY,
            KeyPhase::Firm => DRY | FIRM,
        };
        let shut = if self.shut { SHUT } else { 0 };
        let counts = USED.put(self.used) | PENDING.put(self.pending) | WAITING.put(self.waiting);
        let answers = ANSWERS.put(self.answers & ANSWERS.most());
        answers | counts | shut | phase | self.units
    }

    /// The same key in another phase until `time`, in nanoseconds, rounded up.
    #[inline]
    pub(super) fn until(self, phase: KeyPhase, time: u64) -> KeyState {
        KeyState { phase, units: time.div_ceil(1 << UNIT_BITS).min(TIME), ..self }
    }

    /// The phase at `now`: [`KeyPhase::Idle`] after the word's time.
    #[inline]
    pub fn phase_at(self, now: u64) -> KeyPhase {
        match self.units > now >> UNIT_BITS {
            true => self.phase,
            false => KeyPhase::Idle,
        }
    }

    /// The word's time in nanoseconds.
    #[inline]
    pub(super) fn time(self) -> u64 {
        self.units << UNIT_BITS
    }
}

/// The word of a claim. Two claims of one key at one time differ by their numbers.
pub(super) fn claim(now: u64, number: u64) -> u64 {
    let number = (number << USED.at) & (u64::MAX >> (64 - ANSWERS.at - ANSWERS.bits));
    number | CLAIM | now >> UNIT_BITS & TIME
}

/// Whether the word is a claim whose caller is dead.
pub(super) fn is_abandoned(word: u64, now: u64) -> bool {
    word & CLAIM != 0 && (now >> UNIT_BITS).abs_diff(word & TIME) > CLAIM_MOST
}

impl Part {
    #[inline]
    fn of(self, word: u64) -> u64 {
        word >> self.at & self.most()
    }

    /// The number in its place. A larger number than the part holds becomes the largest.
    #[inline]
    fn put(self, number: u64) -> u64 {
        number.min(self.most()) << self.at
    }

    #[inline]
    fn most(self) -> u64 {
        (1 << self.bits) - 1
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_word_has_its_parts() {
        let phases = [KeyPhase::Idle, KeyPhase::Asked, KeyPhase::Dry, KeyPhase::Firm];
        for (used, pending, waiting) in [(0, 0, 0), (1, 2, 3), (127, 0, 63), (64, 7, 0)] {
            for (n, phase) in phases.into_iter().enumerate() {
                for time in [0, 1 << UNIT_BITS, u64::MAX] {
                    let (shut, answers) = (n % 2 == 0, n as u64 + 4);
                    let state = KeyState { used, pending, waiting, answers, shut, phase, units: 0 };
                    let state = state.until(phase, time);
                    assert_eq!(KeyState::of(state.pack()), Some(state));
                }
            }
        }
        let more =
            KeyState { used: 128, pending: 8, waiting: 64, answers: 9, ..KeyState::default() };
        let most =
            KeyState { used: 127, pending: 7, waiting: 63, answers: 1, ..KeyState::default() };
        assert_eq!(KeyState::of(more.pack()), Some(most));
        let state = KeyState::default().until(KeyPhase::Dry, 10 << UNIT_BITS);
        assert_eq!(state.phase_at(state.time() - 1), KeyPhase::Dry);
        assert_eq!(state.phase_at(state.time()), KeyPhase::Idle);
    }

    #[test]
    fn claims_are_no_states_and_end() {
        let (second, number) = (1_000_000_000, 7);
        let word = claim(5 * second, number);
        assert_eq!(KeyState::of(word), None);
        assert_ne!(word, claim(5 * second, number + 1));
        assert!(!is_abandoned(word, 5 * second) && !is_abandoned(word, 5 * second + second / 2));
        assert!(is_abandoned(word, 6 * second + second / 10));
        assert!(!is_abandoned(KeyState::default().pack(), 9 * second));
    }
}
