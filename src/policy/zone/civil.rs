//! Days of the Gregorian calendar, counted from 1970-01-01.

/// The year, the month (from 1) and the day of the month (from 1) of a day.
pub(crate) const fn date(day: i64) -> (i64, i64, i64) {
    // Days from 1 March of year 0, in eras of 400 years: a leap day is then the last day of its
    // year.
    let days = day + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (year + era * 400 + (month <= 2) as i64, month, of_year - (153 * from_march + 2) / 5 + 1)
}

/// The day of that date. The month may lie outside 1 to 12, and then belongs to another year.
pub(crate) const fn day(year: i64, month: i64, day: i64) -> i64 {
    // Months from March of year 0.
    let months = year * 12 + month - 3;
    let (year, from_march) = (months.div_euclid(12), months.rem_euclid(12));
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * from_march + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The number of days of a month.
pub(crate) const fn length(year: i64, month: i64) -> i64 {
    day(year, month + 1, 1) - day(year, month, 1)
}

/// The day of the week, from Monday (0) to Sunday (6).
pub(crate) const fn weekday(day: i64) -> i64 {
    (day + 3).rem_euclid(7)
}

#[cfg(all(test, not(loom)))]
mod tests;
