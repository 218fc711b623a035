//! The one-line text form of a policy, read and written.
//!
//! ```text
//! LIMIT "/" PERIOD [ "burst" N ] [ "algo" NAME ] [ options ] [ ";" the same again ]
//!
//! 100/s                    3/min burst 3 algo interval anchor first
//! 10/100ms burst 20 init 0 120/60s algo sliding-window segments 6 mode strict
//! 1000/day                 250000000/s burst 1mb unit bytes
//! 10 per 2 minutes         10/s; 1000/day
//! 500/forever              100/min curve ln
//! 100/min curve 0:0 50%:80% 100%:100%       100/s burst 200 refill 0:50% 50%:100%
//! 1000/month zone Europe/Berlin
//! ```
//!
//! PERIOD is a unit of time (`ns us ms s min h day week`, or a longer name such as `minute` or
//! `minutes`), alone or after a whole number. Names are in lower case. Blanks may stand around the
//! `/`, and between the number and the unit. `per` may stand for the `/`. `forever` makes a quota,
//! which no time refills. `month`, `year`, `zone` and `from` make a calendar, whose windows are the
//! days, weeks, months or years of a time zone; a number before `month` or `year` can be 1 only.
//! Two policies joined by `;` are a list: a request passes if both admit it, and then both are
//! charged. Options come in any order, each once:
//!
//! <!-- [lists: options] written by cargo xtask lists -->
//! | option | algorithms | |
//! |---|---|---|
//! | `burst N` | gcra, interval, pacer, warm-up, level-refill | LIMIT if not given |
//! | `algo NAME` | all | gcra if not given |
//! | `init N` | gcra | permits of a fresh state; the burst if not given, 0 with borrow |
//! | `borrow` | gcra | a bucket without debt lets any cost pass; later requests wait until that cost is refilled |
//! | `anchor first\|epoch` | interval, fixed-window, sliding-window | epoch if not given |
//! | `segments N` | sliding-window | 10 if not given |
//! | `mode n\|strict\|interpolated` | sliding-window | n if not given |
//! | `slack N` | pacer | 0 if not given |
//! | `warm TIME` | warm-up | required |
//! | `cold N` | warm-up | 3 if not given |
//! | `ban TIME` | gcra | a key that is refused too often is denied everything for that time; not with init or borrow |
//! | `after N` | gcra | with ban: the N-th refusal bans, 1 if not given; the count starts again when the key's bucket is full |
//! | `curve SHAPE` | curve | `linear`, `ln`, `log2`, `front` or `step`, or knots TIME:SHARE such as 0:0 50%:80% 100%:100%; makes the policy one of curve |
//! | `refill BANDS` | level-refill | 1 to 4 bands LEVEL:RATE such as 0:50% 50%:100%; makes the policy one of level-refill |
//! | `count rejected` | fixed-window, sliding-log | refused requests count too |
//! | `from DAY` | calendar | month: 1 to 31, the last day of shorter months; week: mon to sun; year: MM-DD; the first day if not given |
//! | `zone ZONE` | calendar | UTC, a name of the system's zone data or a rule as in TZ; UTC if not given |
//! | `unit bytes\|permits` | all | with bytes, sizes may carry kb mb gb kib mib gib |
//! | `reserve CLASS N ...` | gcra, interval, fixed-window, weighted-window, quota | permits that a class of requests leaves to others, up to four classes; not with borrow |
//! <!-- [lists: end] -->

mod calendar;
mod columns;
mod knots;
mod list;
mod names;
mod print;
mod schedule;

pub use print::print;

use super::classes::is_name_byte;
use super::{
    Classes, Fault, Kind, Opt, Policy, PolicyError, SyntaxError, Unit, CLASSES_MOST,
    CLASS_NAME_MOST, COLD_DEFAULT, FOREVER, SEGMENTS_DEFAULT,
};
use columns::OptionColumns;
use core::ffi::CStr;
use names::{
    find, name, same, Name, ALGORITHMS, ANCHORS, ANY_ALGORITHM, ANY_OPTION, MODES, OPTIONS, SIZES,
    SPANS, TIMES, UNITS,
};

/// The longest text, in bytes, that [`print`] writes for a valid policy. [`parse`] reads longer
/// ones.
pub const TEXT_MOST: usize = 1024;

/// Reads one policy. The whole text must be that policy.
///
/// # Errors
/// [`SyntaxError`]: the column, what was expected there, and the kind of fault.
pub fn parse(text: &[u8]) -> Result<Policy, SyntaxError> {
    parse_checked(text, &|policy| policy.validate())
}

/// [`parse`] with `check` in place of [`Policy::validate`]. If `check` refuses the policy, the
/// error has the column of the option at fault.
pub fn parse_checked(
    text: &[u8],
    check: &dyn Fn(&Policy) -> Result<(), PolicyError>,
) -> Result<Policy, SyntaxError> {
    let mut reader = Reader { text, at: 0 };
    let policy = reader.list(check)?;
    match reader.more()? {
        true => {
            reader.at -= 1;
            Err(reader.wrong(c"the end: a list has two policies, and take_many charges more"))
        }
        false => Ok(policy),
    }
}

/// Reads policies joined with `;` and calls `each` for every one, in order. On an error `each` has
/// been called for the policies before it.
pub fn parse_list(text: &[u8], mut each: impl FnMut(Policy)) -> Result<(), SyntaxError> {
    let mut reader = Reader { text, at: 0 };
    loop {
        each(reader.policy(&|policy| policy.validate())?);
        if !reader.more()? {
            return Ok(());
        }
    }
}

impl core::str::FromStr for Policy {
    type Err = SyntaxError;
    fn from_str(text: &str) -> Result<Policy, SyntaxError> {
        parse(text.as_bytes())
    }
}

impl core::fmt::Display for Policy {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let mut out = [0u8; TEXT_MOST];
        let len = print(self, &mut out);
        f.write_str(core::str::from_utf8(out.get(..len).unwrap_or(&out)).unwrap_or_default())
    }
}

const PERIOD: &CStr =
    c"a period such as `s`, `min`, `h`, `day`, `100ms`, `2 weeks`, `month` or `forever`";
const ONE_SPAN: &CStr =
    c"1, because a calendar counts single months and years; a time such as `90days` may have any number";
const SPAN: &CStr = c"a time such as `2s`, `100ms` or `1min`";

/// A period as the text gives it.
struct Period {
    /// `None` for `forever`.
    period: Option<u64>,
    /// Whether it is a month or a year, which only a calendar has.
    calendar: bool,
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn policy(
        &mut self,
        check: &dyn Fn(&Policy) -> Result<(), PolicyError>,
    ) -> Result<Policy, SyntaxError> {
        self.blanks();
        let mut columns = OptionColumns { start: self.at + 1, ..OptionColumns::default() };
        let limit = self.amount(c"a limit: a whole number", &mut columns)?;
        self.blanks();
        if self.peek() == Some(b'/') {
            self.at += 1;
        } else {
            let column = self.at;
            if !same(&const { name("per") }, self.word()) {
                self.at = column;
                return Err(self.wrong(c"`/` and a period"));
            }
        }
        self.blanks();
        let period_column = self.at + 1;
        let Period { period, calendar } = self.period()?;
        let mut policy = Policy::new(limit, period.unwrap_or(FOREVER));
        let mut cold = None;
        let mut segments = None;
        let mut init = None;
        let mut after = None;
        loop {
            self.blanks();
            let column = self.at + 1;
            let word = self.word();
            if word.is_empty() {
                break;
            }
            let Some((option, _)) =
                Opt::ALL.iter().zip(&OPTIONS).find(|(_, name)| same(name, word))
            else {
                self.at = column - 1;
                return Err(self.wrong(ANY_OPTION));
            };
            if let Some(given) = columns.options.get_mut(*option as usize) {
                if *given != 0 {
                    return Err(SyntaxError {
                        column,
                        expected: c"each option once",
                        fault: Fault::Duplicate,
                    });
                }
                *given = column;
            }
            self.blanks();
            match option {
                Opt::Burst => {
                    policy.burst = self.amount(c"a burst: a whole number", &mut columns)?
                }
                Opt::Algo => policy.kind = self.kind()?,
                Opt::Init => init = Some(self.amount(c"a whole number", &mut columns)?),
                Opt::Borrow => policy.borrow = true,
                Opt::Anchor => policy.anchor = self.choice(c"`first` or `epoch`", &ANCHORS)?,
                Opt::Segments => segments = Some(self.small(c"a number of segments")?),
                Opt::Mode => {
                    policy.mode = self.choice(c"`n`, `strict` or `interpolated`", &MODES)?
                }
                Opt::Slack => policy.slack = self.amount(c"a whole number", &mut columns)?,
                Opt::Warm => policy.warm_up = self.time(SPAN, false)?,
                Opt::Cold => cold = Some(self.small(c"a cold factor")?),
                Opt::Ban => policy.ban = self.time(SPAN, false)?,
                Opt::After => after = Some(self.small(c"a number of refusals")?),
                Opt::Curve => policy.knots = self.curve()?,
                Opt::Refill => policy.knots = self.bands()?,
                Opt::Count => {
                    policy.count_rejected =
                        self.choice(c"`rejected`", &[(name("rejected"), true)])?
                }
                Opt::Reserve => policy.classes = self.classes(&mut columns)?,
                Opt::From => policy.from = self.first_day(policy.period)?,
                Opt::Zone => policy.zone = self.zone()?,
                Opt::Unit => policy.unit = self.choice(c"`bytes` or `permits`", &UNITS)?,
            }
        }
        let dated = calendar || columns.column(Opt::Zone) != 0 || columns.column(Opt::From) != 0;
        if columns.column(Opt::Algo) == 0 {
            policy.kind = match columns {
                _ if period.is_none() => Kind::Quota,
                _ if columns.column(Opt::Curve) != 0 => Kind::Curve,
                _ if columns.column(Opt::Refill) != 0 => Kind::LevelRefill,
                _ if dated => Kind::Calendar,
                _ => policy.kind,
            };
        }
        policy.init = init.unwrap_or(if policy.borrow { 0 } else { policy.burst });
        let implied = |option, value| if policy.kind.takes(option) { value } else { 0 };
        policy.segments = segments.unwrap_or(implied(Opt::Segments, SEGMENTS_DEFAULT));
        policy.cold = cold.unwrap_or(implied(Opt::Cold, COLD_DEFAULT));
        policy.ban_after = after.unwrap_or(u32::from(columns.column(Opt::Ban) != 0));
        if columns.size != 0 && policy.unit != Unit::Bytes {
            return Err(SyntaxError {
                column: columns.size,
                expected: c"a plain number, or `unit bytes` too",
                fault: Fault::Syntax,
            });
        }
        // An option of another algorithm is refused even with that algorithm's default. A burst
        // that equals the limit is accepted.
        let stranger = columns
            .stranger(policy.kind)
            .filter(|column| *column != columns.column(Opt::Burst) || policy.burst != policy.limit);
        let checked = match stranger {
            _ if period.is_none() && !policy.kind.is_forever() => Err(PolicyError::Quota),
            _ if calendar && policy.kind != Kind::Calendar => Err(PolicyError::Calendar),
            Some(_) => Err(PolicyError::OptionMismatch),
            None => check(&policy),
        };
        checked.map(|()| policy).map_err(|why| {
            let column = columns.blame(&policy, why, period_column);
            SyntaxError { column, expected: c"", fault: Fault::Policy(why) }
        })
    }

    /// Whether another policy of a list follows. Then its `;` has been read.
    fn more(&mut self) -> Result<bool, SyntaxError> {
        self.blanks();
        match self.peek() {
            None => Ok(false),
            Some(b';') => {
                self.at += 1;
                Ok(true)
            }
            Some(_) => Err(self.wrong(ANY_OPTION)),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
    }

    fn wrong(&self, expected: &'static CStr) -> SyntaxError {
        SyntaxError { column: self.at + 1, expected, fault: Fault::Syntax }
    }

    /// Letters, `-` and `_`.
    fn word(&mut self) -> &'a [u8] {
        let start = self.at;
        while matches!(self.peek(), Some(b'a'..=b'z' | b'A'..=b'Z' | b'-' | b'_')) {
            self.at += 1;
        }
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn digits(&mut self, expected: &'static CStr) -> Result<u64, SyntaxError> {
        let start = self.at;
        let mut number = Some(0u64);
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            number = number
                .and_then(|n| n.checked_mul(10))
                .and_then(|n| n.checked_add(u64::from(digit - b'0')));
            self.at += 1;
        }
        if self.at == start {
            return Err(self.wrong(expected));
        }
        number.ok_or(SyntaxError { column: start + 1, expected, fault: Fault::Overflow })
    }

    /// A number that may carry a size.
    fn amount(
        &mut self,
        expected: &'static CStr,
        columns: &mut OptionColumns,
    ) -> Result<u64, SyntaxError> {
        let start = self.at;
        let number = self.digits(expected)?;
        let suffix = self.at;
        let word = self.word();
        if word.is_empty() {
            return Ok(number);
        }
        let Some(size) = find(&SIZES, word) else {
            self.at = suffix;
            return Err(self.wrong(expected));
        };
        if columns.size == 0 {
            columns.size = suffix + 1;
        }
        number.checked_mul(size).ok_or(SyntaxError {
            column: start + 1,
            expected,
            fault: Fault::Overflow,
        })
    }

    /// The classes of a policy: names and reserves, up to the next option.
    fn classes(&mut self, columns: &mut OptionColumns) -> Result<Classes, SyntaxError> {
        let mut classes = Classes::NONE;
        for n in 0.. {
            self.blanks();
            let start = self.at;
            let name = self.class_name();
            if name.is_empty() || OPTIONS.iter().any(|option| same(option, name)) {
                self.at = start;
                break;
            }
            let column = start + 1;
            if classes.reserve(name).is_some() {
                return Err(SyntaxError {
                    column,
                    expected: c"each class once",
                    fault: Fault::Duplicate,
                });
            }
            if n == CLASSES_MOST || name.len() > CLASS_NAME_MOST {
                self.at = start;
                let most = c"at most four classes, with names of at most 15 bytes";
                return Err(self.wrong(most));
            }
            self.blanks();
            if let Some(reserve) = columns.reserves.get_mut(n) {
                *reserve = self.at + 1;
            }
            let reserve =
                self.amount(c"the permits that the class leaves: a whole number", columns)?;
            let with = classes.and_bytes(name, reserve);
            classes = with.map_err(|why| SyntaxError {
                column,
                expected: c"",
                fault: Fault::Policy(why),
            })?;
        }
        match classes.is_empty() {
            true => Err(self.wrong(c"a class and the permits that it leaves, such as `low 20`")),
            false => Ok(classes),
        }
    }

    /// A letter, then letters, digits, `-` and `_`.
    fn class_name(&mut self) -> &'a [u8] {
        let start = self.at;
        if self.peek().is_some_and(|byte| byte.is_ascii_alphabetic()) {
            while self.peek().is_some_and(is_name_byte) {
                self.at += 1;
            }
        }
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn small(&mut self, expected: &'static CStr) -> Result<u32, SyntaxError> {
        let column = self.at + 1;
        let number = self.digits(expected)?;
        u32::try_from(number).map_err(|_| SyntaxError { column, expected, fault: Fault::Overflow })
    }

    /// A time; `bare` allows a unit alone.
    fn time(&mut self, expected: &'static CStr, bare: bool) -> Result<u64, SyntaxError> {
        let start = self.at;
        let number = match self.peek() {
            Some(b'0'..=b'9') => self.digits(expected)?,
            _ if bare => 1,
            _ => return Err(self.wrong(expected)),
        };
        let end = self.at;
        self.blanks();
        let column = if self.peek().is_some() { self.at } else { end };
        let word = self.word();
        let Some(unit) = find(&TIMES, word) else {
            self.at = column;
            return Err(self.wrong(expected));
        };
        number.checked_mul(unit).ok_or(SyntaxError {
            column: start + 1,
            expected,
            fault: Fault::Overflow,
        })
    }

    fn period(&mut self) -> Result<Period, SyntaxError> {
        let start = self.at;
        let number = match self.peek() {
            Some(b'0'..=b'9') => self.digits(PERIOD)?,
            _ => 1,
        };
        let bare = self.at == start;
        self.blanks();
        let word = self.word();
        if let Some(span) = find(&SPANS, word) {
            if number != 1 {
                self.at = start;
                return Err(self.wrong(ONE_SPAN));
            }
            return Ok(Period { period: Some(span.nanos()), calendar: true });
        }
        if bare && same(&const { name("forever") }, word) {
            return Ok(Period { period: None, calendar: false });
        }
        self.at = start;
        self.time(PERIOD, true).map(|period| Period { period: Some(period), calendar: false })
    }

    fn choice<T: Copy>(
        &mut self,
        expected: &'static CStr,
        from: &[(Name, T)],
    ) -> Result<T, SyntaxError> {
        let column = self.at;
        let word = self.word();
        find(from, word).ok_or_else(|| {
            self.at = column;
            self.wrong(expected)
        })
    }

    fn kind(&mut self) -> Result<Kind, SyntaxError> {
        let column = self.at + 1;
        let word = self.word();
        find(&ALGORITHMS, word).ok_or(SyntaxError {
            column,
            expected: ANY_ALGORITHM,
            fault: Fault::UnknownAlgorithm,
        })
    }
}
