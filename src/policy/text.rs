//! The one-line text form of a policy, read and written.
//!
//! ```text
//! LIMIT "/" PERIOD [ "burst" N ] [ "algo" NAME ] [ options ]
//!
//! 100/s                    3/min burst 3 algo interval anchor first
//! 10/100ms burst 20 init 0 120/60s algo sliding-window segments 6 mode strict
//! 1000/day                 250000000/s burst 1mb unit bytes
//! ```
//!
//! PERIOD is `s min h day` or such a name with a number before it (`ns us ms s min h d`). Options
//! come in any order, each once:
//!
//! | option | algorithms | |
//! |---|---|---|
//! | `burst N` | gcra, interval, pacer, warm-up | LIMIT if not given |
//! | `algo NAME` | | `gcra` if not given; `token-bucket` and `leaky-bucket` are the same |
//! | `init N` | gcra | permits of a fresh state; the burst if not given, 0 with `borrow` |
//! | `borrow` | gcra | a take passes whatever its cost, the next one pays |
//! | `anchor first\|epoch` | interval, fixed-window, sliding-window | |
//! | `segments N`, `mode n\|strict\|interpolated` | sliding-window | 10, `n` |
//! | `slack N` | pacer | 0 |
//! | `warm TIME`, `cold N` | warm-up | required, 3 |
//! | `count rejected` | fixed-window, sliding-log | |
//! | `unit bytes\|permits` | all | allows sizes such as `64kib`, `1mb` |

use super::{Anchor, Fault, Kind, Mode, Policy, PolicyError, SyntaxError, Unit};
use super::{COLD_DEFAULT, SEGMENTS_DEFAULT};
use core::ffi::CStr;

/// No text form is longer.
pub const TEXT_MOST: usize = 256;

/// Reads one policy. The whole text must be one.
pub fn parse(text: &[u8]) -> Result<Policy, SyntaxError> {
    let mut reader = Reader { text, at: 0 };
    let policy = reader.policy()?;
    reader.blanks();
    match reader.peek() {
        None => Ok(policy),
        Some(b';') => Err(reader.wrong(c"the end: one policy, not a list")),
        Some(_) => Err(reader.wrong(OPTIONS)),
    }
}

/// Reads policies joined with `;`, calling `each` for every one, in order.
pub fn parse_list(text: &[u8], mut each: impl FnMut(Policy)) -> Result<(), SyntaxError> {
    let mut reader = Reader { text, at: 0 };
    loop {
        each(reader.policy()?);
        reader.blanks();
        match reader.peek() {
            None => return Ok(()),
            Some(b';') => reader.at += 1,
            Some(_) => return Err(reader.wrong(OPTIONS)),
        }
    }
}

/// Writes the canonical text of `policy`, in which nothing is said that goes without saying, and
/// returns its length. Reading it back gives the same policy. Stops at the end of `out`; no valid
/// policy needs more than [`TEXT_MOST`] bytes.
pub fn print(policy: &Policy, out: &mut [u8]) -> usize {
    let mut w = Writer { out, len: 0 };
    w.number(policy.limit);
    w.text("/");
    w.time(policy.period, true);
    if policy.burst != policy.limit {
        w.option("burst", policy.burst);
    }
    if policy.kind != Kind::Gcra {
        w.text(" algo ");
        w.text(policy.kind.name());
    }
    let init = if policy.borrow { 0 } else { policy.burst };
    if policy.init != init {
        w.option("init", policy.init);
    }
    if policy.borrow {
        w.text(" borrow");
    }
    if policy.anchor == Anchor::First {
        w.text(" anchor first");
    }
    if policy.kind == Kind::SlidingWindow && policy.segments != SEGMENTS_DEFAULT {
        w.option("segments", u64::from(policy.segments));
    }
    match policy.mode {
        Mode::N => {}
        Mode::Strict => w.text(" mode strict"),
        Mode::Interpolated => w.text(" mode interpolated"),
    }
    if policy.slack != 0 {
        w.option("slack", policy.slack);
    }
    if policy.kind == Kind::WarmUp {
        w.text(" warm ");
        w.time(policy.warm_up, false);
        if policy.cold != COLD_DEFAULT {
            w.option("cold", u64::from(policy.cold));
        }
    }
    if policy.count_rejected {
        w.text(" count rejected");
    }
    if policy.unit == Unit::Bytes {
        w.text(" unit bytes");
    }
    w.len
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

const OPTIONS: &CStr =
    c"`burst`, `algo`, `init`, `borrow`, `anchor`, `segments`, `mode`, `slack`, `warm`, `cold`, `count` or `unit`";
const ALGORITHMS: &CStr = c"`gcra`, `token-bucket`, `leaky-bucket`, `interval`, `fixed-window`, `weighted-window`, `sliding-window`, `sliding-log`, `pacer` or `warm-up`";
const PERIOD: &CStr = c"a period such as `s`, `min`, `h`, `day` or `100ms`";
const SPAN: &CStr = c"a time such as `2s`, `100ms` or `1min`";
const DAY: u64 = 86_400_000_000_000;

/// The names of times, largest first: printing takes the first that divides.
const TIMES: [(&str, u64); 9] = [
    ("day", DAY),
    ("d", DAY),
    ("h", 3_600_000_000_000),
    ("min", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
    ("sec", 1_000_000_000),
];

const SIZES: [(&str, u64); 6] =
    [("kb", 1_000), ("mb", 1_000_000), ("gb", 1_000_000_000), ("kib", 1 << 10), ("mib", 1 << 20), ("gib", 1 << 30)];

/// Columns (from 1; 0 = not given) at which the options stand.
#[derive(Default)]
struct Seen {
    burst: usize,
    algo: usize,
    init: usize,
    borrow: usize,
    anchor: usize,
    segments: usize,
    mode: usize,
    slack: usize,
    warm: usize,
    cold: usize,
    count: usize,
    unit: usize,
    size: usize,
}

impl Seen {
    /// The column to show for a policy that is readable and refused.
    fn blame(&self, policy: &Policy, why: PolicyError, period: usize) -> usize {
        match why {
            PolicyError::PeriodZero => period,
            PolicyError::BurstZero | PolicyError::BurstTooLarge => self.burst,
            PolicyError::InitAboveBurst => self.init,
            PolicyError::Segments => self.segments,
            PolicyError::WarmUp if self.cold != 0 && policy.warm_up != 0 => self.cold,
            PolicyError::WarmUp => self.warm.max(self.algo),
            PolicyError::OptionMismatch => self.stranger(policy),
            _ => 1,
        }
        .max(1)
    }

    /// The first option that the algorithm does not have.
    fn stranger(&self, policy: &Policy) -> usize {
        let kind = policy.kind;
        let has = |kinds: &[Kind]| kinds.contains(&kind);
        let sliding = has(&[Kind::SlidingWindow]);
        let checks = [
            (self.burst, has(&[Kind::Gcra, Kind::Interval, Kind::Pacer, Kind::WarmUp])),
            (self.init, has(&[Kind::Gcra])),
            (self.borrow, has(&[Kind::Gcra])),
            (self.anchor, has(&[Kind::Interval, Kind::FixedWindow, Kind::SlidingWindow])),
            (self.segments, sliding),
            (self.mode, sliding),
            (self.slack, has(&[Kind::Pacer])),
            (self.warm, has(&[Kind::WarmUp])),
            (self.cold, has(&[Kind::WarmUp])),
            (self.count, has(&[Kind::FixedWindow, Kind::SlidingLog])),
        ];
        checks.iter().filter(|(column, fits)| *column != 0 && !fits).map(|(column, _)| *column).min().unwrap_or(1)
    }
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn policy(&mut self) -> Result<Policy, SyntaxError> {
        self.blanks();
        let mut seen = Seen::default();
        let limit = self.amount(c"a limit: a whole number", &mut seen)?;
        self.blanks();
        if self.peek() != Some(b'/') {
            return Err(self.wrong(c"`/` and a period"));
        }
        self.at += 1;
        self.blanks();
        let period_column = self.at + 1;
        let period = self.time(PERIOD, true)?;
        let mut policy = Policy::new(limit, period);
        let mut cold = None;
        let mut segments = None;
        let mut init = None;
        loop {
            self.blanks();
            let column = self.at + 1;
            let word = self.word();
            match word {
                b"" => break,
                b"burst" => {
                    self.once(&mut seen.burst, column)?;
                    policy.burst = self.value(c"a burst: a whole number", &mut seen)?;
                }
                b"algo" => {
                    self.once(&mut seen.algo, column)?;
                    policy.kind = self.kind()?;
                }
                b"init" => {
                    self.once(&mut seen.init, column)?;
                    init = Some(self.value(c"a whole number", &mut seen)?);
                }
                b"borrow" => {
                    self.once(&mut seen.borrow, column)?;
                    policy.borrow = true;
                }
                b"anchor" => {
                    self.once(&mut seen.anchor, column)?;
                    policy.anchor =
                        self.choice(c"`first` or `epoch`", &[("first", Anchor::First), ("epoch", Anchor::Epoch)])?;
                }
                b"segments" => {
                    self.once(&mut seen.segments, column)?;
                    segments = Some(self.small(c"a number of segments")?);
                }
                b"mode" => {
                    self.once(&mut seen.mode, column)?;
                    policy.mode = self.choice(
                        c"`n`, `strict` or `interpolated`",
                        &[("n", Mode::N), ("strict", Mode::Strict), ("interpolated", Mode::Interpolated)],
                    )?;
                }
                b"slack" => {
                    self.once(&mut seen.slack, column)?;
                    policy.slack = self.value(c"a whole number", &mut seen)?;
                }
                b"warm" => {
                    self.once(&mut seen.warm, column)?;
                    self.blanks();
                    policy.warm_up = self.time(SPAN, false)?;
                }
                b"cold" => {
                    self.once(&mut seen.cold, column)?;
                    cold = Some(self.small(c"a cold factor")?);
                }
                b"count" => {
                    self.once(&mut seen.count, column)?;
                    policy.count_rejected = self.choice(c"`rejected`", &[("rejected", true)])?;
                }
                b"unit" => {
                    self.once(&mut seen.unit, column)?;
                    policy.unit =
                        self.choice(c"`bytes` or `permits`", &[("bytes", Unit::Bytes), ("permits", Unit::Permits)])?;
                }
                _ => {
                    self.at = column - 1;
                    return Err(self.wrong(OPTIONS));
                }
            }
        }
        policy.init = init.unwrap_or(if policy.borrow { 0 } else { policy.burst });
        let sliding = policy.kind == Kind::SlidingWindow;
        policy.segments = segments.unwrap_or(if sliding { SEGMENTS_DEFAULT } else { 0 });
        policy.cold = cold.unwrap_or(if policy.kind == Kind::WarmUp { COLD_DEFAULT } else { 0 });
        if seen.size != 0 && policy.unit != Unit::Bytes {
            return Err(SyntaxError {
                column: seen.size,
                expected: c"a plain number, or `unit bytes` too",
                fault: Fault::Syntax,
            });
        }
        let checked = if seen.stranger(&policy) > 1 { Err(PolicyError::OptionMismatch) } else { policy.validate() };
        // A burst that only repeats the limit is no error, wherever it stands.
        let harmless = checked == Err(PolicyError::OptionMismatch) && policy.validate().is_ok();
        match checked {
            Err(why) if !harmless => {
                let column = seen.blame(&policy, why, period_column);
                Err(SyntaxError { column, expected: c"", fault: Fault::Policy(why) })
            }
            _ => Ok(policy),
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

    fn once(&self, seen: &mut usize, column: usize) -> Result<(), SyntaxError> {
        if *seen != 0 {
            return Err(SyntaxError { column, expected: c"each option once", fault: Fault::Duplicate });
        }
        *seen = column;
        Ok(())
    }

    /// Letters, with `-` inside.
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
            number = number.and_then(|n| n.checked_mul(10)).and_then(|n| n.checked_add(u64::from(digit - b'0')));
            self.at += 1;
        }
        if self.at == start {
            return Err(self.wrong(expected));
        }
        number.ok_or(SyntaxError { column: start + 1, expected, fault: Fault::Overflow })
    }

    /// A number that may carry a size.
    fn amount(&mut self, expected: &'static CStr, seen: &mut Seen) -> Result<u64, SyntaxError> {
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
        if seen.size == 0 {
            seen.size = suffix + 1;
        }
        number.checked_mul(size).ok_or(SyntaxError { column: start + 1, expected, fault: Fault::Overflow })
    }

    fn value(&mut self, expected: &'static CStr, seen: &mut Seen) -> Result<u64, SyntaxError> {
        self.blanks();
        self.amount(expected, seen)
    }

    fn small(&mut self, expected: &'static CStr) -> Result<u32, SyntaxError> {
        self.blanks();
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
        let column = self.at;
        let word = self.word();
        let Some(unit) = find(&TIMES, word) else {
            self.at = column;
            return Err(self.wrong(expected));
        };
        number.checked_mul(unit).ok_or(SyntaxError { column: start + 1, expected, fault: Fault::Overflow })
    }

    fn choice<T: Copy>(&mut self, expected: &'static CStr, from: &[(&str, T)]) -> Result<T, SyntaxError> {
        self.blanks();
        let column = self.at;
        let word = self.word();
        find(from, word).ok_or_else(|| {
            self.at = column;
            self.wrong(expected)
        })
    }

    fn kind(&mut self) -> Result<Kind, SyntaxError> {
        self.blanks();
        let column = self.at + 1;
        let word = self.word();
        let alias = [("token-bucket", Kind::Gcra), ("leaky-bucket", Kind::Gcra)];
        Kind::ALL
            .iter()
            .find(|kind| kind.name().as_bytes() == word)
            .copied()
            .or_else(|| find(&alias, word))
            .ok_or(SyntaxError { column, expected: ALGORITHMS, fault: Fault::UnknownAlgorithm })
    }
}

fn find<T: Copy>(from: &[(&str, T)], word: &[u8]) -> Option<T> {
    from.iter().find(|(name, _)| name.as_bytes() == word).map(|(_, value)| *value)
}

struct Writer<'a> {
    out: &'a mut [u8],
    len: usize,
}

impl Writer<'_> {
    fn text(&mut self, text: &str) {
        text.bytes().for_each(|byte| self.byte(byte));
    }

    fn byte(&mut self, byte: u8) {
        if let Some(place) = self.out.get_mut(self.len) {
            *place = byte;
            self.len += 1;
        }
    }

    fn number(&mut self, n: u64) {
        if let Some(tens @ 1..) = n.checked_div(10) {
            self.number(tens);
        }
        self.byte(b'0' + (n % 10) as u8);
    }

    fn option(&mut self, name: &str, value: u64) {
        self.text(" ");
        self.text(name);
        self.text(" ");
        self.number(value);
    }

    /// The largest unit that divides; `bare` leaves out a number that is 1.
    fn time(&mut self, nanos: u64, bare: bool) {
        for (name, unit) in TIMES {
            if nanos.checked_rem(unit) == Some(0) && (nanos != 0 || name == "s") {
                if nanos != unit || !bare {
                    self.number(nanos.checked_div(unit).unwrap_or(0));
                }
                self.text(name);
                return;
            }
        }
    }
}
