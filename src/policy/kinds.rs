//! The table of algorithms: one row for each.
//!
//! A row makes the variant of [`Kind`], its name and number, the options that the text and
//! [`Policy::validate`](super::Policy::validate) take with it, and, by `cargo xtask lists` and
//! `cargo xtask header`, its place in the C header, in the bindings' lists and in
//! docs/algorithms.md.

use super::Opt;

/// One algorithm's row.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The algorithm.
    pub kind: Kind,
    /// What it does, in a sentence without its full stop.
    pub summary: &'static str,
    /// Its name in the text form, and in lower case the name of its constant in C and in each
    /// binding.
    pub name: &'static str,
    /// Other names in the text form.
    pub aliases: &'static [&'static str],
    /// What a state is made of.
    pub words: Words,
    /// A request may cost more permits than are left, and later requests wait until that debt is
    /// paid. With `borrow` other algorithms lend too.
    pub lends: bool,
    /// No permit comes back with time, and the period is [`FOREVER`](super::FOREVER).
    pub forever: bool,
    /// The algorithm's options, without `algo` and `unit`, which all algorithms have.
    pub options: &'static [Opt],
    /// The algorithm's lines in docs/algorithms.md: first without options, then with options that
    /// change the bound.
    pub forms: &'static [Form],
}

impl Row {
    /// Whether permits can be booked ahead, by a policy without options.
    pub fn books_ahead(&self) -> bool {
        self.forms.first().is_some_and(|plain| plain.books_ahead.starts_with("yes"))
    }
}

/// What the state of an algorithm is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Words {
    /// One word: [`Rule`](crate::algorithm::Rule).
    One,
    /// A ring of segments.
    Ring,
    /// An entry for each permit.
    Log,
}

/// A line of docs/algorithms.md.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// The options of this form; empty for none.
    pub with: &'static str,
    /// The most that it admits in any window of one period.
    pub most: &'static str,
    /// What a refusal writes.
    pub refusal_writes: &'static str,
    /// Whether permits can be booked ahead.
    pub books_ahead: &'static str,
    /// When to choose it: "you want …".
    pub choose: &'static str,
}

macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $kind:ident = $number:literal { $($field:ident: $value:expr),+ $(,)? })+) => {
        /// The algorithms, with their numbers in C and in files of tables.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u32)]
        pub enum Kind {
            $($(#[doc = $doc])+ $kind = $number,)+
        }

        /// The table. An algorithm's index is its number.
        const ROWS: &[Row] = &[$(Row { kind: Kind::$kind, summary: concat!($($doc),+).trim_ascii(), $($field: $value),+ }),+];

        impl Kind {
            /// All of them, in the order of their numbers.
            pub const ALL: [Kind; ROWS.len()] = [$(Kind::$kind),+];

            /// The name in the text form.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Kind::$kind => const { ROWS[$number].name },)+
                }
            }

            /// What a state is made of.
            pub const fn words(self) -> Words {
                match self {
                    $(Kind::$kind => const { ROWS[$number].words },)+
                }
            }

            /// Whether a request may cost more permits than are left.
            pub const fn lends(self) -> bool {
                match self {
                    $(Kind::$kind => const { ROWS[$number].lends },)+
                }
            }

            /// Whether no permit comes back with time.
            pub const fn is_forever(self) -> bool {
                match self {
                    $(Kind::$kind => const { ROWS[$number].forever },)+
                }
            }

            /// Whether the algorithm has the option.
            pub const fn takes(self, option: Opt) -> bool {
                let set = match self {
                    $(Kind::$kind => const { set(ROWS[$number].options) },)+
                };
                set & (1 << option as u32) != 0
            }
        }
    };
}

kinds! {
    /// The generic cell rate algorithm: a token bucket, and a leaky bucket as a meter
    Gcra = 0 {
        name: "gcra",
        aliases: &["token-bucket", "leaky-bucket"],
        words: Words::One,
        lends: false,
        forever: false,
        options: &[Opt::Burst, Opt::Init, Opt::Borrow, Opt::Ban, Opt::After, Opt::Reserve],
        forms: &[
            Form {
                with: "",
                most: "burst + limit",
                refusal_writes: "nothing; with `init` below the burst, the time of the first request",
                books_ahead: "yes",
                choose: "you want a rate and a burst",
            },
            Form {
                with: "borrow",
                most: "burst + limit + the largest cost",
                refusal_writes: "nothing",
                books_ahead: "yes",
                choose: "a large request should pass now, and later requests pay for it",
            },
            Form {
                with: "ban 1h",
                most: "burst + limit",
                refusal_writes: "its count, and the ban",
                books_ahead: "yes; not while banned",
                choose: "a key that is refused too often should be shut out for a time",
            },
        ],
    }
    /// All permits of a period come back at its end
    Interval = 1 {
        name: "interval",
        aliases: &[],
        words: Words::One,
        lends: false,
        forever: false,
        options: &[Opt::Burst, Opt::Anchor, Opt::Reserve],
        forms: &[Form {
            with: "",
            most: "burst + limit",
            refusal_writes: "nothing",
            books_ahead: "yes; not with `anchor first`",
            choose: "permits come back all together at fixed times, as a quota does",
        }],
    }
    /// A counter for each window
    FixedWindow = 2 {
        name: "fixed-window",
        aliases: &[],
        words: Words::One,
        lends: false,
        forever: false,
        options: &[Opt::Anchor, Opt::Count, Opt::Reserve],
        forms: &[Form {
            with: "",
            most: "2 * limit",
            refusal_writes: "its count, with `count rejected`",
            books_ahead: "no",
            choose: "another system counts so, and you must agree with it",
        }],
    }
    /// The previous window's count fades while the current one's grows
    WeightedWindow = 3 {
        name: "weighted-window",
        aliases: &[],
        words: Words::One,
        lends: false,
        forever: false,
        options: &[Opt::Reserve],
        forms: &[Form {
            with: "",
            most: "below 2 * limit",
            refusal_writes: "nothing",
            books_ahead: "no",
            choose: "you want a sliding window in one word, and an estimate will do",
        }],
    }
    /// A ring of sub-windows
    SlidingWindow = 4 {
        name: "sliding-window",
        aliases: &[],
        words: Words::Ring,
        lends: false,
        forever: false,
        options: &[Opt::Anchor, Opt::Segments, Opt::Mode],
        forms: &[
            Form {
                with: "",
                most: "2 * limit",
                refusal_writes: "nothing",
                books_ahead: "no",
                choose: "you want a sliding window, and `strict` admits too little",
            },
            Form {
                with: "mode strict",
                most: "limit",
                refusal_writes: "nothing",
                books_ahead: "no",
                choose: "no window may exceed the limit, in little memory",
            },
            Form {
                with: "mode interpolated",
                most: "below 2 * limit",
                refusal_writes: "nothing",
                books_ahead: "no",
                choose: "permits should come back evenly, and not a segment's at a time",
            },
        ],
    }
    /// The time of every admission, exact
    SlidingLog = 5 {
        name: "sliding-log",
        aliases: &[],
        words: Words::Log,
        lends: false,
        forever: false,
        options: &[Opt::Count],
        forms: &[Form {
            with: "",
            most: "limit",
            refusal_writes: "its entries, with `count rejected`",
            books_ahead: "no",
            choose: "no window may exceed the limit, and no permit of it may be lost",
        }],
    }
    /// Evenly spaced departures
    Pacer = 6 {
        name: "pacer",
        aliases: &[],
        words: Words::One,
        lends: true,
        forever: false,
        options: &[Opt::Burst, Opt::Slack],
        forms: &[Form {
            with: "",
            most: "slack + limit + 1, if every cost is 1",
            refusal_writes: "nothing",
            books_ahead: "yes",
            choose: "departures should be evenly spaced",
        }],
    }
    /// A rate that grows from cold to its limit
    WarmUp = 7 {
        name: "warm-up",
        aliases: &[],
        words: Words::One,
        lends: true,
        forever: false,
        options: &[Opt::Burst, Opt::Warm, Opt::Cold],
        forms: &[Form {
            with: "",
            most: "limit + 1, if every cost is 1",
            refusal_writes: "nothing",
            books_ahead: "yes",
            choose: "the service that you call must not meet full load while it is cold",
        }],
    }
    /// A lifetime quota: LIMIT/forever, which no time refills
    Quota = 8 {
        name: "quota",
        aliases: &[],
        words: Words::One,
        lends: false,
        forever: true,
        options: &[Opt::Reserve],
        forms: &[Form {
            with: "",
            most: "limit, and no more until a reset",
            refusal_writes: "nothing",
            books_ahead: "no",
            choose: "a key gets its permits once, such as those of a trial or a voucher, and time refills none",
        }],
    }
    /// Permits come along a curve within each slice of one period
    Curve = 9 {
        name: "curve",
        aliases: &[],
        words: Words::One,
        lends: false,
        forever: false,
        options: &[Opt::Curve],
        forms: &[Form {
            with: "",
            most: "2 * limit; exactly limit in a slice",
            refusal_writes: "nothing",
            books_ahead: "no",
            choose: "each minute or day has a budget, and you say how early in it the budget may be used",
        }],
    }
    /// A token bucket whose refill depends on how empty it is
    LevelRefill = 10 {
        name: "level-refill",
        aliases: &[],
        words: Words::One,
        lends: false,
        forever: false,
        options: &[Opt::Burst, Opt::Refill],
        forms: &[Form {
            with: "",
            most: "burst + limit",
            refusal_writes: "nothing",
            books_ahead: "no",
            choose: "a key that empties its bucket should get permits back more slowly, or sooner",
        }],
    }
    /// A counter for each day, week, month or year of a time zone
    Calendar = 11 {
        name: "calendar",
        aliases: &[],
        words: Words::One,
        lends: false,
        forever: false,
        options: &[Opt::From, Opt::Zone],
        forms: &[Form {
            with: "",
            most: "3 * limit; 2 * limit if no window is shorter than the mean",
            refusal_writes: "nothing",
            books_ahead: "no",
            choose: "a quota begins anew with each day, week, month or year of a time zone",
        }],
    }
}

impl Kind {
    /// The algorithm's row of the table.
    pub const fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }
}

// `Kind::ALL` and the rows are indexed by the numbers.
const _: () = {
    let mut i = 0;
    while i < ROWS.len() {
        assert!(ROWS[i].kind as usize == i, "a row's place is its number");
        i += 1;
    }
};

/// One bit for each option.
const fn set(options: &[Opt]) -> u32 {
    let mut set = 1 << Opt::Algo as u32 | 1 << Opt::Unit as u32;
    let mut i = 0;
    while i < options.len() {
        set |= 1 << options[i] as u32;
        i += 1;
    }
    set
}
