//! Dates of the Gregorian calendar, and the times that logs are written with.

/// A day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date {
    /// From 1 on.
    pub year: i64,
    /// 1 to 12.
    pub month: i64,
    /// 1 to 31.
    pub day: i64,
}

/// The day and the second of that day, UTC, of a Unix time.
pub fn of_unix(seconds: u64) -> (Date, u64) {
    // Days from 1 March of year 0, in eras of 400 years: a leap day is then the last day of its
    // year.
    let days = (seconds / 86_400) as i64 + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (Date { year, month, day }, seconds % 86_400)
}

fn month_days(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn days_since_1970(date: Date) -> i64 {
    let before = date.year - 1;
    let years = 365 * before + before / 4 - before / 100 + before / 400 - 719_162;
    years + (1..date.month).map(|month| month_days(date.year, month)).sum::<i64>() + date.day - 1
}

/// A day and a time of day with its zone, read from text.
#[derive(Clone, Copy, Debug)]
pub struct Stamp {
    /// The day in that zone.
    pub date: Date,
    /// Seconds since the day began; a leap second is the first of the next minute.
    pub second: i64,
    /// Nanoseconds of that second.
    pub ns: u64,
    /// Seconds that the zone is ahead of UTC.
    pub zone: i64,
}

/// Why a time is wrong; the text completes "found …, expected …" in a message of its own.
pub type WrongTime = &'static str;

impl Stamp {
    /// Nanoseconds since 1970.
    pub fn unix_ns(&self) -> Result<u64, WrongTime> {
        let seconds = days_since_1970(self.date) * 86_400 + self.second - self.zone;
        let seconds = u64::try_from(seconds).map_err(|_| "the time is before 1970")?;
        match seconds.checked_mul(1_000_000_000).and_then(|ns| ns.checked_add(self.ns)) {
            Some(ns) if seconds < u64::MAX / 1_000_000_000 => Ok(ns),
            _ => Err("the time does not fit 64 bits of nanoseconds"),
        }
    }
}

/// The unread rest of a text.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    /// Exactly `digits` digits.
    fn number(&mut self, digits: usize) -> Option<i64> {
        let head = self.0.get(..digits)?;
        let mut value = 0;
        for &byte in head {
            value = value * 10 + i64::from(byte.checked_sub(b'0').filter(|&digit| digit < 10)?);
        }
        self.0 = &self.0[digits..];
        Some(value)
    }

    fn next(&mut self, byte: u8) -> bool {
        match self.0.split_first() {
            Some((&first, rest)) if first == byte => {
                self.0 = rest;
                true
            }
            _ => false,
        }
    }

    /// `.123` and the like, after the point, as nanoseconds.
    fn fraction(&mut self) -> u64 {
        let (mut ns, mut place) = (0, 1_000_000_000);
        while let Some((&byte @ b'0'..=b'9', rest)) = self.0.split_first() {
            place /= 10;
            ns += place * u64::from(byte - b'0');
            self.0 = rest;
        }
        ns
    }

    fn month_name(&mut self) -> Option<i64> {
        const NAMES: &[u8; 36] = b"JanFebMarAprMayJunJulAugSepOctNovDec";
        let name = self.0.get(..3)?;
        let at = NAMES.chunks_exact(3).position(|month| month == name)?;
        self.0 = &self.0[3..];
        Some(at as i64 + 1)
    }

    /// `10:05:03`, perhaps with a fraction.
    fn time_of_day(&mut self) -> Result<(i64, u64), WrongTime> {
        let hour = self.number(2).filter(|&hour| hour < 24);
        let hour =
            hour.filter(|_| self.next(b':')).ok_or("the hour is not 00 to 23 and a colon")?;
        let minute = self.number(2).filter(|&minute| minute < 60);
        let minute =
            minute.filter(|_| self.next(b':')).ok_or("the minute is not 00 to 59 and a colon")?;
        // 60 is a leap second: it has the Unix time of the second after it.
        let second =
            self.number(2).filter(|&second| second <= 60).ok_or("the second is not 00 to 60")?;
        let ns = if self.next(b'.') { self.fraction() } else { 0 };
        Ok((hour * 3_600 + minute * 60 + second, ns))
    }

    /// The hours and minutes of a zone, with a colon between them if `colon`.
    fn zone(&mut self, colon: bool) -> Result<i64, WrongTime> {
        let east = self.next(b'+');
        if !east && !self.next(b'-') {
            return Err("the zone does not start with + or -");
        }
        let hour = self.number(2).filter(|&hour| hour < 24);
        let hour = hour.ok_or("the zone is not a sign and four digits such as +0200")?;
        if colon {
            self.next(b':');
        }
        let minute = self.number(2).filter(|&minute| minute < 60);
        let minute = minute.ok_or("the zone is not a sign and four digits such as +0200")?;
        let ahead = hour * 3_600 + minute * 60;
        Ok(if east { ahead } else { -ahead })
    }
}

/// `17/May/2015:10:05:03 +0000`, and what follows it.
pub fn clf(text: &[u8]) -> Result<(Stamp, &[u8]), WrongTime> {
    let (mut stamp, text) = haproxy(text)?;
    let mut rest = Rest(text);
    if !rest.next(b' ') {
        return Err("no blank and zone follow the time of day");
    }
    stamp.zone = rest.zone(false)?;
    Ok((stamp, rest.0))
}

/// `17/May/2015:10:05:03.250`, which has no zone and is taken as UTC, and what follows it.
pub fn haproxy(text: &[u8]) -> Result<(Stamp, &[u8]), WrongTime> {
    let mut rest = Rest(text);
    let day = rest
        .number(2)
        .filter(|_| rest.next(b'/'))
        .ok_or("the day is not two digits and a slash")?;
    let month = rest.month_name();
    let month = month
        .filter(|_| rest.next(b'/'))
        .ok_or("the month is not one of Jan to Dec and a slash")?;
    let year = rest.number(4).filter(|&year| year > 0);
    let year = year.filter(|_| rest.next(b':')).ok_or("the year is not four digits and a colon")?;
    if day < 1 || day > month_days(year, month) {
        return Err("there is no such day in that month");
    }
    let (second, ns) = rest.time_of_day()?;
    Ok((Stamp { date: Date { year, month, day }, second, ns, zone: 0 }, rest.0))
}

/// Whether the text is a month's name, such as `Oct`.
pub fn is_month(text: &[u8]) -> bool {
    text.len() == 3 && Rest(text).month_name().is_some()
}

/// `2015-05-17T10:05:03.25+02:00`, also with a blank for the T and with Z for the zone. The whole
/// text.
pub fn rfc3339(text: &[u8]) -> Result<u64, WrongTime> {
    let mut rest = Rest(text);
    let year = rest.number(4).filter(|&year| year > 0);
    let year =
        year.filter(|_| rest.next(b'-')).ok_or("the year is not four digits and a hyphen")?;
    let month = rest.number(2).filter(|month| (1..=12).contains(month));
    let month =
        month.filter(|_| rest.next(b'-')).ok_or("the month is not 01 to 12 and a hyphen")?;
    let day = rest.number(2).ok_or("the day is not two digits")?;
    if day < 1 || day > month_days(year, month) {
        return Err("there is no such day in that month");
    }
    if !rest.next(b'T') && !rest.next(b't') && !rest.next(b' ') {
        return Err("no T follows the day");
    }
    let (second, ns) = rest.time_of_day()?;
    let zone = if rest.next(b'Z') || rest.next(b'z') { 0 } else { rest.zone(true)? };
    match rest.0 {
        [] => Stamp { date: Date { year, month, day }, second, ns, zone }.unix_ns(),
        _ => Err("something follows the time's zone"),
    }
}

/// Unix time as a decimal: seconds with or without a fraction or, by their size, whole milli-,
/// micro- or nanoseconds.
pub fn unix(text: &[u8]) -> Result<u64, WrongTime> {
    let point = text.iter().position(|&byte| byte == b'.').unwrap_or(text.len());
    let mut whole: u64 = 0;
    for &byte in &text[..point] {
        let digit =
            byte.checked_sub(b'0').filter(|&digit| digit < 10).ok_or("the time is not a number")?;
        whole = whole
            .checked_mul(10)
            .and_then(|n| n.checked_add(u64::from(digit)))
            .ok_or("the time does not fit 64 bits")?;
    }
    if point == 0 {
        return Err("the time is not a number");
    }
    if point < text.len() {
        let mut rest = Rest(&text[point + 1..]);
        let ns = rest.fraction();
        if !rest.0.is_empty() {
            return Err("the time is not a number");
        }
        return whole
            .checked_mul(1_000_000_000)
            .and_then(|n| n.checked_add(ns))
            .ok_or("the time does not fit 64 bits of nanoseconds");
    }
    // Seconds have 12 digits until the year 33658, and milliseconds had 12 digits in 1973 and have
    // 13 since 2001.
    let scale = match whole {
        0..=99_999_999_999 => 1_000_000_000,
        100_000_000_000..=99_999_999_999_999 => 1_000_000,
        100_000_000_000_000..=99_999_999_999_999_999 => 1_000,
        _ => 1,
    };
    whole.checked_mul(scale).ok_or("the time does not fit 64 bits of nanoseconds")
}

/// A time in any of the three forms.
pub fn any(text: &[u8]) -> Result<u64, WrongTime> {
    match text {
        [_, _, b'/', ..] => match clf(text)? {
            (stamp, []) => stamp.unix_ns(),
            _ => Err("something follows the time's zone"),
        },
        [_, _, _, _, b'-', ..] => rfc3339(text),
        _ => unix(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: u64 = 1_431_857_103_000_000_000;

    #[test]
    fn forms_of_one_time() {
        for text in [
            "17/May/2015:10:05:03 +0000",
            "17/May/2015:12:05:03 +0200",
            "2015-05-17T10:05:03Z",
            "2015-05-17T12:05:03+02:00",
            "2015-05-17 10:05:03.000Z",
            "1431857103",
            "1431857103.000",
            "1431857103000",
            "1431857103000000",
            "1431857103000000000",
        ] {
            assert_eq!(any(text.as_bytes()), Ok(AT), "{text}");
        }
        assert_eq!(any(b"2015-05-17T10:05:03.25Z"), Ok(AT + 250_000_000));
        assert_eq!(any(b"1431857103.25"), Ok(AT + 250_000_000));
    }

    #[test]
    fn wrong_times_are_refused() {
        for text in [
            "",
            ".",
            "x",
            "2015-13-17T10:05:03Z",
            "2015-02-29T10:05:03Z",
            "2015-05-17",
            "2015-05-17T10:05:03Zx",
            "1e9",
            "-1",
        ] {
            assert!(any(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn every_day_there_and_back() {
        for day in (0..400 * 366u64).step_by(1) {
            let (date, second) = of_unix(day * 86_400 + 5);
            assert_eq!((days_since_1970(date), second), (day as i64, 5));
        }
    }
}
