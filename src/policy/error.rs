//! Errors of policies and of their texts.

use core::ffi::CStr;

/// The rule that a policy breaks although each of its parts can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PolicyError {
    /// The period is 0.
    PeriodZero,
    /// The burst is 0 and the limit is not. (A limit of 0 denies all.)
    BurstZero,
    /// 16 permits per nanosecond or more, or more than the algorithm can count at that period.
    RateTooHigh,
    /// The burst takes longer to refill than a state word can hold. For `interval` with
    /// `anchor first`: it is above the limit.
    BurstTooLarge,
    /// A fresh state would hold more than the burst.
    InitAboveBurst,
    /// An option that this algorithm does not have.
    OptionMismatch,
    /// A sliding window needs 1 to 1024 segments, each of a whole number of nanoseconds.
    Segments,
    /// A warm-up needs a time above 0 and a cold factor from 1 to 1000.
    WarmUp,
    /// A ban needs a time above 0 that the state word can hold, and `after` from 1 to 1000.
    Ban,
    /// A quota with another period than `forever`, or `forever` with another algorithm.
    Quota,
    /// Knots of a curve that fall, or do not rise to the whole limit; bands of a level-refill whose
    /// levels do not rise from 0, or whose rates are not 1 % to 100 %.
    Knots,
    /// A calendar whose period is not a day, week, month or year or whose first day is not one of
    /// it, or a month or year of another algorithm.
    Calendar,
    /// A calendar with a clock that is not the wall clock.
    WallClock,
    /// A sliding log has more than 2^24 entries, or in a table more than its key's word can count
    /// in the period.
    LogTooLarge,
    /// The algorithm needs more than one state word.
    NotOneWord,
    /// Classes that are more than four, have one name, or have a name that is not a letter followed
    /// by letters, digits, `-` and `_`, 15 bytes at most; a reserve that is the burst or more; or
    /// classes of a policy that lends, or of a limiter whose threads have credit.
    Classes,
    /// The policy has no class of that name.
    NoSuchClass,
    /// The policies of a list do not fit one state word together: two of gcra without `init`,
    /// `borrow` and `ban` do, unless one is much faster than the other.
    List,
    /// There is no memory for the state.
    NoMemory,
    /// The limiter has been changed to 4,096 policies, and can have no more.
    Changes,
}

impl PolicyError {
    /// The error as one line of text.
    pub const fn message(self) -> &'static str {
        match self {
            PolicyError::PeriodZero => "the period is zero",
            PolicyError::BurstZero => "the burst is zero (limit 0 denies all)",
            PolicyError::RateTooHigh => "the rate is higher than this algorithm can count exactly",
            PolicyError::BurstTooLarge => "the burst is larger than a state word can hold at this rate",
            PolicyError::InitAboveBurst => "init is larger than the burst",
            PolicyError::OptionMismatch => "an option does not belong to this algorithm",
            PolicyError::Segments => "segments must be 1 to 1024 and divide the period",
            PolicyError::WarmUp => "warm-up needs `warm TIME` above zero and `cold` from 1 to 1000",
            PolicyError::Ban => "a ban needs a time above zero that a state word can hold, and `after` from 1 to 1000",
            PolicyError::Quota => "a quota's period is `forever`, and no other algorithm has that period",
            PolicyError::Knots => {
                "knots of a curve must rise to 100% of the limit, and bands rise from level 0 at rates of 1% to 100%"
            }
            PolicyError::Calendar => {
                "a calendar has windows of a `day`, `week`, `month` or `year`, and no other algorithm has `month` and `year`"
            }
            PolicyError::WallClock => "calendar windows need the wall clock, which counts from 1970: choose it as the clock",
            PolicyError::LogTooLarge => {
                "a sliding log may have 16777216 entries at most, fewer in a table if its period is short"
            }
            PolicyError::NotOneWord => "this algorithm needs more than one state word",
            PolicyError::Classes => {
                "a policy without borrow and credit has up to four classes, each with its own name and a reserve below the burst"
            }
            PolicyError::NoSuchClass => "the policy has no class of that name",
            PolicyError::List => {
                "this list does not fit one state word: make a limit of each policy, and charge them by take_many"
            }
            PolicyError::NoMemory => "out of memory",
            PolicyError::Changes => {
                "the limiter has been changed to 4096 policies: change it to one of those, or make another"
            }
        }
    }
}

impl core::fmt::Display for PolicyError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.message())
    }
}

impl core::error::Error for PolicyError {}

/// Where a policy's text is wrong, and what was expected there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SyntaxError {
    /// The column, from 1, at which the wrong part of the text begins: a word, a number, or an
    /// option with its value. If the text ends too early, the column after its last byte.
    pub column: usize,
    /// What was expected there, NUL-terminated for C.
    pub(crate) expected: &'static CStr,
    /// The kind of the fault.
    pub fault: Fault,
}

impl SyntaxError {
    /// What was expected at the column; empty if the text can be read but the policy is refused.
    pub fn expected(&self) -> &'static str {
        self.expected.to_str().unwrap_or_default()
    }

    /// [`SyntaxError::expected`] as a C string.
    pub fn expected_c(&self) -> &'static CStr {
        self.expected
    }
}

/// The kinds of fault a text can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The text does not follow the grammar.
    Syntax,
    /// A number that does not fit 64 bits (32 bits for `segments` and `cold`).
    Overflow,
    /// No such algorithm.
    UnknownAlgorithm,
    /// An option given twice.
    Duplicate,
    /// The text can be read, but [`crate::Policy::validate`] (or the check of
    /// [`crate::policy::text::parse_checked`]) refuses the policy.
    Policy(PolicyError),
    /// There is no memory for the entries of a schedule.
    NoMemory,
}

impl core::fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.fault {
            Fault::Syntax => write!(f, "column {}: expected {}", self.column, self.expected()),
            Fault::Overflow => {
                write!(f, "column {}: number too large, expected {}", self.column, self.expected())
            }
            Fault::UnknownAlgorithm => {
                write!(f, "column {}: unknown algorithm, expected {}", self.column, self.expected())
            }
            Fault::Duplicate => {
                write!(f, "column {}: given twice, expected {}", self.column, self.expected())
            }
            Fault::Policy(why) => write!(f, "column {}: {why}", self.column),
            Fault::NoMemory => f.write_str("out of memory"),
        }
    }
}

impl core::error::Error for SyntaxError {}
