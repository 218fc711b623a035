use super::*;

#[test]
fn every_day_of_four_centuries_comes_back() {
    let (mut year, mut month, mut of_month) = (1970, 1, 1);
    for n in 0..150_000 {
        assert_eq!((date(n), day(year, month, of_month)), ((year, month, of_month), n));
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let days = [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
            [month as usize - 1];
        assert_eq!(length(year, month), days);
        (year, month, of_month) = match (of_month < days, month < 12) {
            (true, _) => (year, month, of_month + 1),
            (false, true) => (year, month + 1, 1),
            (false, false) => (year + 1, 1, 1),
        };
    }
    // 1970-01-01 was a Thursday. Month 0 is December of the year before.
    assert_eq!((weekday(0), weekday(-3), day(1970, 0, 31)), (3, 0, -1));
}
