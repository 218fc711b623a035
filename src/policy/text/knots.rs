//! The text of knots and bands: pairs of percents such as `0:0 50%:80% 100%:100%` and
//! `0:0 12.5%:40.25% 100%:100%`.

use super::names::{find, name, Name};
use super::Reader;
use crate::policy::{Fault, Knots, SyntaxError};
use crate::writer::Writer;
use core::ffi::CStr;

/// Hundredths of a percent in a percent.
const PERCENT: u16 = Knots::WHOLE / 100;

/// The curves that have a name.
pub(super) const CURVES: [(Name, Knots); 5] = [
    (name("linear"), Knots::NONE),
    (name("ln"), Knots::LN),
    (name("log2"), Knots::LOG2),
    (name("front"), Knots::FRONT),
    (name("step"), Knots::STEP),
];

const SHAPE: &CStr =
    c"`linear`, `ln`, `log2`, `front`, `step` or knots such as `0:0 50%:80% 100%:100%`";
const KNOT: &CStr = c"a knot such as `50%:80%`, later or higher than the knot before it, and neither earlier nor lower";
const KNOTS_MOST: &CStr = c"at most 64 knots";
const KNOTS_END: &CStr = c"another knot: a curve ends at 100% of the limit, as in `100%:100%`";
const BAND: &CStr = c"a band such as `50%:100%`: a level above that of the band before it, and a rate of 1% to 100%";
const BAND_FIRST: &CStr = c"bands such as `0:50% 50%:100%`, from level 0 on";
const PERCENTS: &CStr = c"percents with at most two decimals, 0% to 100%";
const WHOLE_PERCENTS: &CStr = c"a whole number of percents, 0% to 100%";
const BANDS_MOST: &CStr = c"at most 4 bands";

/// Writes `knots` as pairs. `origin` writes the curve's beginning too, which the list does not
/// have.
pub(super) fn print(writer: &mut Writer<'_>, knots: &Knots, origin: bool) {
    if origin && knots.pairs().next().is_some_and(|[at, _]| at != 0) {
        writer.text(" 0:0");
    }
    for [left, right] in knots.pairs() {
        writer.text(" ");
        percent(writer, left);
        writer.text(":");
        percent(writer, right);
    }
}

fn percent(writer: &mut Writer<'_>, share: u16) {
    writer.number(u64::from(share / 100));
    let (tenth, hundredth) = (share / 10 % 10, share % 10);
    if tenth != 0 || hundredth != 0 {
        writer.text(".");
        writer.number(u64::from(tenth));
    }
    if hundredth != 0 {
        writer.number(u64::from(hundredth));
    }
    if share != 0 {
        writer.text("%");
    }
}

impl Reader<'_> {
    /// A curve: its name, or its knots.
    #[inline(never)]
    pub(super) fn curve(&mut self) -> Result<Knots, SyntaxError> {
        if !matches!(self.peek(), Some(b'0'..=b'9')) {
            let column = self.at;
            let curve = find(&CURVES, self.name());
            return curve.ok_or_else(|| {
                self.at = column;
                self.wrong(SHAPE)
            });
        }
        let mut knots = [[0; 2]; Knots::MOST];
        let (mut last, mut begun) = ([0; 2], false);
        let mut places = knots.iter_mut();
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            let column = self.at + 1;
            let fault = |expected| SyntaxError { column, expected, fault: Fault::Syntax };
            let pair = self.pair(KNOT, 1)?;
            // Each curve begins at 0:0, so only the list's first pair may say so.
            if begun || pair != [0, 0] {
                let [at, share] = last;
                let [next_at, next_share] = pair;
                if next_at < at || next_share < share || pair == last {
                    return Err(fault(KNOT));
                }
                *places.next().ok_or(fault(KNOTS_MOST))? = pair;
                last = pair;
            }
            begun = true;
            self.blanks();
        }
        match last {
            [_, Knots::WHOLE] => Ok(Knots::of_hundredths(&knots)),
            _ => Err(self.wrong(KNOTS_END)),
        }
    }

    /// The bands of a `level-refill`.
    #[inline(never)]
    pub(super) fn bands(&mut self) -> Result<Knots, SyntaxError> {
        let mut bands = [[0; 2]; Knots::BANDS_MOST];
        let mut last = None;
        let mut places = bands.iter_mut();
        while last.is_none() || matches!(self.peek(), Some(b'0'..=b'9')) {
            let column = self.at + 1;
            let fault = |expected| SyntaxError { column, expected, fault: Fault::Syntax };
            let pair = self.pair(if last.is_none() { BAND_FIRST } else { BAND }, PERCENT)?;
            let [level, rate] = pair;
            match last {
                None if level != 0 => return Err(fault(BAND_FIRST)),
                Some(last) if level <= last => return Err(fault(BAND)),
                _ if rate == 0 || level == Knots::WHOLE => return Err(fault(BAND)),
                _ => {}
            }
            *places.next().ok_or(fault(BANDS_MOST))? = pair;
            last = Some(level);
            self.blanks();
        }
        Ok(Knots::of_hundredths(&bands))
    }

    /// A word that may hold digits, as `log2` does.
    fn name(&mut self) -> &[u8] {
        let start = self.at;
        while matches!(self.peek(), Some(b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_')) {
            self.at += 1;
        }
        self.text.get(start..self.at).unwrap_or_default()
    }

    /// Two percents with a colon between them.
    #[inline(never)]
    fn pair(&mut self, expected: &'static CStr, finest: u16) -> Result<[u16; 2], SyntaxError> {
        let left = self.share(expected, finest)?;
        if self.peek() != Some(b':') {
            return Err(self.wrong(c"`:`, as in `50%:80%`"));
        }
        self.at += 1;
        Ok([left, self.share(expected, finest)?])
    }

    /// Percents up to 100, in hundredths of a percent: a multiple of `finest`. Only 0 may stand
    /// without its sign.
    #[inline(never)]
    fn share(&mut self, expected: &'static CStr, finest: u16) -> Result<u16, SyntaxError> {
        let column = self.at + 1;
        let number = self.digits(expected)?;
        // More than 100 % stays more.
        let mut share = number.min(101) as u16 * PERCENT;
        let (mut weight, mut exact) = (PERCENT, true);
        if self.peek() == Some(b'.') {
            self.at += 1;
            exact = matches!(self.peek(), Some(b'0'..=b'9'));
            while let Some(digit @ b'0'..=b'9') = self.peek() {
                weight /= 10;
                share += weight * u16::from(digit - b'0');
                exact &= weight != 0 || digit == b'0';
                self.at += 1;
            }
        }
        if share > Knots::WHOLE || !exact || share % finest.max(1) != 0 {
            let expected = if finest == 1 { PERCENTS } else { WHOLE_PERCENTS };
            return Err(SyntaxError { column, expected, fault: Fault::Syntax });
        }
        match self.peek() {
            Some(b'%') => self.at += 1,
            _ if share != 0 => return Err(self.wrong(c"`%`")),
            _ => {}
        }
        Ok(share)
    }
}

/// The name of a curve, if it has one.
pub(super) fn name_of(knots: &Knots) -> Option<&'static Name> {
    CURVES.iter().find(|(_, curve)| curve == knots).map(|(name, _)| name)
}
