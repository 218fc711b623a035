//! The table of options: one row for each. Which algorithms have an option is in the table of
//! algorithms (kinds.rs).

macro_rules! options {
    ($($(#[doc = $doc:literal])+ $option:ident: $usage:literal, $note:literal;)+) => {
        /// The options of the text form, in the order in which its grammar lists them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u32)]
        pub enum Opt {
            $($(#[doc = $doc])+ $option,)+
        }

        impl Opt {
            /// All of them.
            pub const ALL: &'static [Opt] = &[$(Opt::$option),+];

            /// The option in the grammar: its name, then its values.
            pub const fn usage(self) -> &'static str {
                match self {
                    $(Opt::$option => $usage,)+
                }
            }

            /// The value of the option if the text does not give it, or its meaning.
            pub const fn note(self) -> &'static str {
                match self {
                    $(Opt::$option => $note,)+
                }
            }
        }
    };
}

options! {
    /// The most permits at once.
    Burst: "burst N", "LIMIT if not given";
    /// The algorithm.
    Algo: "algo NAME", "gcra if not given";
    /// Permits of a fresh state.
    Init: "init N", "permits of a fresh state; the burst if not given, 0 with borrow";
    /// Lends permits.
    Borrow: "borrow", "a bucket without debt lets any cost pass; later requests wait until that cost is refilled";
    /// The instant to which windows are aligned.
    Anchor: "anchor first|epoch", "epoch if not given";
    /// The number of segments of a sliding window.
    Segments: "segments N", "10 if not given";
    /// How a sliding window treats its oldest segment.
    Mode: "mode n|strict|interpolated", "n if not given";
    /// Departures that may follow at once.
    Slack: "slack N", "0 if not given";
    /// The time from cold to warm.
    Warm: "warm TIME", "required";
    /// The factor by which a cold limiter is slower.
    Cold: "cold N", "3 if not given";
    /// The length of a ban.
    Ban: "ban TIME", "a key that is refused too often is denied everything for that time; not with init or borrow";
    /// The refusal that bans.
    After: "after N", "with ban: the N-th refusal bans, 1 if not given; the count starts again when the key's bucket is full";
    /// How permits come back within a slice.
    Curve: "curve SHAPE", "`linear`, `ln`, `log2`, `front` or `step`, or knots TIME:SHARE such as 0:0 50%:80% 100%:100%; makes the policy one of curve";
    /// How fast permits come back at each level.
    Refill: "refill BANDS", "1 to 4 bands LEVEL:RATE such as 0:50% 50%:100%; makes the policy one of level-refill";
    /// Whether refused requests count.
    Count: "count rejected", "refused requests count too";
    /// The first day of a calendar's windows.
    From: "from DAY", "month: 1 to 31, the last day of shorter months; week: mon to sun; year: MM-DD; the first day if not given";
    /// The time zone of a calendar.
    Zone: "zone ZONE", "UTC, a name of the system's zone data or a rule as in TZ; UTC if not given";
    /// What a permit is.
    Unit: "unit bytes|permits", "with bytes, sizes may carry kb mb gb kib mib gib";
    /// The permits that each class of requests leaves to the others.
    Reserve: "reserve CLASS N ...", "permits that a class of requests leaves to others, up to four classes; not with borrow";
}
