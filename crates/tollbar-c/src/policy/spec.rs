//! A policy as plain data.

use crate::boundary::Growable;
use core::ffi::c_char;
use core::mem::size_of;
use tollbar::policy::{CLASSES_MOST, CLASS_NAME_MOST};

/// Windows are aligned to time 0 of the clock. By the clocks of limiters and tables that is UTC.
pub const TOLLBAR_ANCHOR_EPOCH: u32 = 0;
/// Windows are aligned to the first request of a fresh state.
pub const TOLLBAR_ANCHOR_FIRST: u32 = 1;

/// Sliding window: the last `segments` segments count, the running one among them.
pub const TOLLBAR_MODE_N: u32 = 0;
/// Sliding window: one more segment counts. Every window of a period then stays within the limit.
pub const TOLLBAR_MODE_STRICT: u32 = 1;
/// Sliding window: one more segment counts, by the part of it that is still in the window.
pub const TOLLBAR_MODE_INTERPOLATED: u32 = 2;

/// The period of a quota: no permit comes back.
pub const TOLLBAR_FOREVER: u64 = 0xffff_ffff_ffff_ffff;

/// The period of a calendar with windows of a day.
pub const TOLLBAR_DAY: u64 = 86_400_000_000_000;
/// The period of a calendar with windows of a week.
pub const TOLLBAR_WEEK: u64 = 604_800_000_000_000;
/// The period of a calendar with windows of a month: the mean month of 400 years.
pub const TOLLBAR_MONTH: u64 = 2_629_746_000_000_000;
/// The period of a calendar with windows of a year: the mean year of 400 years.
pub const TOLLBAR_YEAR: u64 = 31_556_952_000_000_000;

/// A permit is a request, a call, a message.
pub const TOLLBAR_UNIT_PERMITS: u32 = 0;
/// A permit is a byte.
pub const TOLLBAR_UNIT_BYTES: u32 = 1;

/// gcra: a bucket without debt lets any cost pass, and later requests wait until that cost is
/// refilled.
pub const TOLLBAR_POLICY_BORROW: u32 = 1;
/// fixed window, sliding log: refused requests count too.
pub const TOLLBAR_POLICY_COUNT_REJECTED: u32 = 2;
/// gcra: a fresh state holds `init` permits. Without this flag it holds the burst, or nothing with
/// TOLLBAR_POLICY_BORROW.
pub const TOLLBAR_POLICY_HAS_INIT: u32 = 4;

/// After a change of policy a limiter, or a key of a table, keeps the number of permits that it has
/// left, up to the new burst. No wait becomes longer than the new policy's refill, and the change
/// admits no request that was refused, with two exceptions: windows of one length keep the permits
/// used (tollbar_table_set_policy), and a key that has taken no permit of a curve is fresh.
pub const TOLLBAR_KEEP_COUNT: u32 = 0;
/// After a change of policy the limiter or key keeps its debt, as the time until that debt is paid.
/// To and from a quota, which has no such time, it keeps the number of permits used.
pub const TOLLBAR_KEEP_TIME: u32 = 1;
/// After a change of policy the limiter or key has a fresh state.
pub const TOLLBAR_KEEP_RESET: u32 = 2;

/// The most classes of a policy.
pub const TOLLBAR_CLASSES_MOST: u32 = 4;
/// The bytes of a class's name, with at least one 0 at the end.
pub const TOLLBAR_CLASS_NAME_SIZE: u32 = 16;

/// A class of requests, and the permits that its requests leave to the others.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_class {
    /// The name: a letter, then letters, digits, `-` and `_`, and zeroes to the end. All zeroes: no
    /// class.
    pub name: [c_char; 16],
    /// A request of the class passes only if so many permits are left after it. Below the burst.
    pub reserve: u64,
}

/// A policy as plain data. Start from TOLLBAR_POLICY_SPEC_INIT and set `limit`, `period_ns` and
/// `burst`; leave the options of other algorithms at 0.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_policy_spec {
    /// sizeof(tollbar_policy_spec), as the caller's compiler sees it.
    pub struct_size: u32,
    /// A TOLLBAR_ALGORITHM_ number.
    pub algorithm: u32,
    /// Permits per period. 0 denies every request.
    pub limit: u64,
    /// The period in nanoseconds, from 1 on. TOLLBAR_FOREVER for a quota. TOLLBAR_DAY, _WEEK,
    /// _MONTH or _YEAR for a calendar.
    pub period_ns: u64,
    /// The most permits that can be taken at once, at least 1. Windows and logs: equal to `limit`.
    /// Pacer and warm-up: the largest cost.
    pub burst: u64,
    /// gcra with TOLLBAR_POLICY_HAS_INIT: permits of a fresh state, at most `burst`.
    pub init: u64,
    /// pacer: the number of departures that may leave at once after an idle time.
    pub slack: u64,
    /// warm-up: nanoseconds from cold to warm.
    pub warm_up_ns: u64,
    /// warm-up: the factor by which the rate is lower when cold, 1 to 1000.
    pub cold: u32,
    /// sliding window: the number of segments, 1 to 1024.
    pub segments: u32,
    /// sliding window: a TOLLBAR_MODE_ number.
    pub mode: u32,
    /// interval, fixed window, sliding window: a TOLLBAR_ANCHOR_ number.
    pub anchor: u32,
    /// A TOLLBAR_UNIT_ number. It changes the text form only.
    pub unit: u32,
    /// TOLLBAR_POLICY_ flags.
    pub flags: u32,
    /// gcra, without `init` and borrow: the length of a ban in nanoseconds; 0 for no ban.
    pub ban_ns: u64,
    /// gcra, with `ban_ns`: the refusal that bans, 1 to 1000; 0 stands for 1.
    pub ban_after: u32,
    /// calendar: the first day of each window, from 0. Of a month: the day of the month less 1, up
    /// to 30. Of a week: the day from Monday, up to 6. Of a year: 32 times the month less 1, plus
    /// the day of the month less 1.
    pub from: u32,
    /// gcra, without `init`, borrow and ban: permits per `second_period_ns` of a second bucket,
    /// which a request needs and charges as well ("10/s; 1000/day"). 0: no second bucket.
    pub second_limit: u64,
    /// The second bucket's period in nanoseconds.
    pub second_period_ns: u64,
    /// The most permits that can be taken at once of the second bucket.
    pub second_burst: u64,
    /// gcra without borrow, interval, fixed window, weighted window, quota: the classes of
    /// requests, the used ones first.
    pub classes: [tollbar_class; 4],
    /// In hundredths of a percent. curve: up to 64 knots of two numbers, {time in the period, share
    /// of `limit`}, without {0, 0}, where each curve begins; none is a straight line. level-refill:
    /// up to 4 bands of two numbers, {level as a share of `burst`, rate as a share of the
    /// policy's}, whole percents; none is one rate at all levels. Unused numbers are 0.
    /// tollbar_policy_spec_parse knows the curves' names, and tollbar_policy_spec_curve makes the
    /// knots of a function.
    pub knots: [u16; 128],
    /// calendar: the zone, all 0 for UTC. tollbar_policy_spec_parse writes the words of a name or a
    /// rule.
    pub zone: [u64; 5],
}

// SAFETY: repr(C), u32 first, u16, u32, u64 and byte fields without holes (8-byte fields at
// multiples of 8).
unsafe impl Growable for tollbar_policy_spec {
    // A shorter struct would lose a ban, a second bucket, classes, knots or a zone when a policy is
    // written to it.
    const FIRST_SIZE: usize = 512;
}

const _: () = assert!(
    TOLLBAR_CLASSES_MOST as usize == CLASSES_MOST
        && TOLLBAR_CLASS_NAME_SIZE as usize == CLASS_NAME_MOST + 1
);
const _: () = assert!(size_of::<tollbar_policy_spec>() == 512);
