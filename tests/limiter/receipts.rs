//! Receipts: an estimate now, the real cost later.

use crate::common::Rng;
use std::path::PathBuf;
use tollbar::algorithm::Charge;
use tollbar::table::{Keep, Options, PolicyId, Receipt, Refund, RequestError, Settled, Table};
use tollbar::{Policy, Verdict};

const SECOND: u64 = 1_000_000_000;
const NOW: u64 = 1000 * SECOND;
const KEY: &[u8] = b"192.0.2.7";
const FIRST: PolicyId = PolicyId::FIRST;

fn table(text: &str) -> Table {
    Table::private(&Options::new(1000), &[text.parse().unwrap()]).unwrap()
}

fn take(table: &Table, key: &[u8], now: u64, cost: u64) -> Option<Receipt> {
    let (decision, receipt) = table.take_at(FIRST, key, now, cost).unwrap();
    assert_eq!(decision.is_allowed(), receipt.is_some());
    receipt
}

/// Takes an estimate of 5 of 10 permits, and 7 more two seconds later. The 5 are settled at a cost
/// of 0, and a request for 5 does not pass.
#[test]
fn a_settlement_does_not_give_what_time_has_brought_back() {
    let table = table("1/s burst 10");
    let five = take(&table, KEY, NOW, 5).unwrap();
    assert!(take(&table, KEY, NOW + 2 * SECOND, 7).is_some());
    let settled = table.settle_at(&five, NOW + 2 * SECOND, 0, Refund::Safe).unwrap();
    assert_eq!(settled, Settled { first: true, given_back: 3, rest: 0 });
    assert!(take(&table, KEY, NOW + 2 * SECOND, 5).is_none());
    // A receipt is settled once.
    let again = table.settle_at(&five, NOW + 2 * SECOND, 0, Refund::Full).unwrap();
    assert_eq!(again, Settled { first: false, given_back: 0, rest: 0 });
    assert!(take(&table, KEY, NOW + 2 * SECOND, 3).is_some());
}

/// `settle_in_full` returns the refilled permits, too.
#[test]
fn a_full_refund_gives_all() {
    let table = table("1/s burst 10");
    let five = take(&table, KEY, NOW, 5).unwrap();
    assert!(take(&table, KEY, NOW + 2 * SECOND, 7).is_some());
    assert_eq!(table.settle_at(&five, NOW + 2 * SECOND, 1, Refund::Full).unwrap().given_back, 4);
    assert!(take(&table, KEY, NOW + 2 * SECOND, 4).is_some());
}

/// A cost above the estimate leaves a debt of one burst at most, and the call returns the rest.
#[test]
fn more_than_the_estimate_is_charged() {
    let table = table("1/s burst 10");
    let two = take(&table, KEY, NOW, 2).unwrap();
    assert_eq!(
        table.settle_at(&two, NOW, 12, Refund::Safe).unwrap(),
        Settled { first: true, given_back: 0, rest: 0 }
    );
    assert_eq!(table.peek_at(FIRST, KEY, NOW, 1).retry_after, 3 * SECOND);
    // A second call charges the cost above the estimate again.
    let again = table.settle_at(&two, NOW, 22, Refund::Safe).unwrap();
    assert_eq!(again, Settled { first: false, given_back: 0, rest: 12 });
}

/// A receipt of another table, or a damaged one, changes nothing.
#[test]
fn a_strangers_receipt_is_an_error() {
    let (ours, theirs) = (table("1/s burst 10"), table("1/s burst 10"));
    let receipt = take(&ours, KEY, NOW, 5).unwrap();
    let before = ours.peek_at(FIRST, KEY, NOW, 1);
    assert_eq!(theirs.settle_at(&receipt, NOW, 0, Refund::Safe), Err(RequestError::Receipt));
    let mut rng = Rng(5);
    for _ in 0..10_000 {
        let mut words = receipt.words();
        words[rng.below(4) as usize] ^= 1 << rng.below(64);
        assert_eq!(
            ours.settle_at(&Receipt::from_words(words), NOW, 0, Refund::Safe),
            Err(RequestError::Receipt),
            "{words:x?}"
        );
    }
    assert_eq!(
        ours.settle_at(&Receipt::default(), NOW, 0, Refund::Safe),
        Err(RequestError::Receipt)
    );
    assert_eq!(ours.peek_at(FIRST, KEY, NOW, 1), before);
    assert_eq!(ours.take_at(FIRST, KEY, NOW, 1 << 56), Err(RequestError::Receipt));
    assert_eq!(
        ours.settle_at(&Receipt::from_words(receipt.words()), NOW, 0, Refund::Safe)
            .unwrap()
            .given_back,
        5
    );
}

/// A receipt is data, so another process can settle it. Here that process is another mapping of the
/// file.
#[test]
fn a_receipt_crosses_processes() {
    let path =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("receipts-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let policies = ["1/s burst 10".parse::<Policy>().unwrap()];
    let one = Table::file(&path, &Options::new(1000), &policies).unwrap();
    let other = Table::open(&path).unwrap();
    let receipt = take(&one, KEY, NOW, 5).unwrap();
    let copy = Receipt::from_words(receipt.words());
    assert_eq!(other.settle_at(&copy, NOW, 1, Refund::Safe).unwrap().given_back, 4);
    assert!(!one.settle_at(&receipt, NOW, 1, Refund::Safe).unwrap().first);
    std::fs::remove_file(&path).unwrap();
}

/// If there are more receipts than places, the oldest cannot be settled. Nor can a receipt of a
/// policy that was changed.
#[test]
fn an_old_receipt_gives_nothing_back() {
    let table = table("1000000/s burst 1000000");
    let first = take(&table, KEY, NOW, 5).unwrap();
    let others: Vec<Receipt> = (0..8184).map(|_| take(&table, KEY, NOW, 5).unwrap()).collect();
    assert_eq!(
        table.settle_at(&first, NOW, 0, Refund::Safe).unwrap(),
        Settled { first: false, given_back: 0, rest: 0 }
    );
    assert!(others.iter().all(|receipt| table
        .settle_at(receipt, NOW, 0, Refund::Safe)
        .unwrap()
        .given_back
        == 5));
    let last = take(&table, KEY, NOW, 5).unwrap();
    table.set_policy(FIRST, &"1000000/s burst 500000".parse().unwrap()).unwrap();
    assert!(!table.settle_at(&last, NOW, 0, Refund::Safe).unwrap().first);
}

/// An estimate of 0 gets a receipt that can be settled.
#[test]
fn an_estimate_of_nothing_is_settled_too() {
    let table = table("1/s burst 10");
    let receipt = take(&table, KEY, NOW, 0).unwrap();
    assert_eq!(
        table.settle_at(&receipt, NOW, 25, Refund::Safe).unwrap(),
        Settled { first: true, given_back: 0, rest: 5 }
    );
    assert!(!table.settle_at(&receipt, NOW, 0, Refund::Safe).unwrap().first);
    // A key that a full table admits without storing it is charged nothing, and its real cost
    // cannot be charged.
    let mut options = Options::new(1);
    options.on_full = tollbar::table::OnFull::Allow;
    let full = Table::private(&options, &["1/h burst 10".parse().unwrap()]).unwrap();
    let keys = (0..100_000_u64).map(u64::to_le_bytes);
    let unreported = keys
        .map(|key| take(&full, &key, NOW, 9).unwrap())
        .find(|receipt| receipt.charged() == 0)
        .unwrap();
    assert_eq!(full.settle_at(&unreported, NOW, 50, Refund::Safe).unwrap().rest, 50);
}

/// A policy that comes back after 255 changes, in the same record, is another version.
#[test]
fn a_receipt_does_not_survive_255_changes() {
    let table = table("100/s burst 20");
    let receipt = take(&table, KEY, NOW, 20).unwrap();
    for change in 0..1020 {
        let policy = if change % 2 == 0 { "1/day burst 20" } else { "100/s burst 20" };
        table.set_policy(FIRST, &policy.parse().unwrap()).unwrap();
        if change % 51 == 49 || change > 1000 {
            let settled = table.settle_at(&receipt, NOW, 0, Refund::Safe).unwrap();
            assert!(
                !settled.first && settled.given_back == 0,
                "after {change} changes: {settled:?}"
            );
        }
    }
}

/// Takes of an exempt or missing key charge nothing, so their receipts return and charge nothing.
#[test]
fn what_was_not_charged_is_not_settled() {
    let mut options = Options::new(1000);
    options.missing = tollbar::table::Missing::Allow;
    let table = Table::private(&options, &["1/s burst 10".parse().unwrap()]).unwrap();
    table.exempt(FIRST, b"us").unwrap();
    for key in [b"us".as_slice(), b""] {
        let receipt = take(&table, key, NOW, 7).unwrap();
        assert_eq!(receipt.charged(), 0);
        assert_eq!(
            table.settle_at(&receipt, NOW, 70, Refund::Safe).unwrap(),
            Settled { first: true, given_back: 0, rest: 0 }
        );
    }
}

/// The permits that a request has used, and the time from which on they count.
#[derive(Clone, Copy, Debug)]
struct Used {
    at: u64,
    permits: u64,
}

/// The permits of the policy that one permit of the traces stands for. A give-back may return a
/// part of a permit that it does not report.
const UNIT: u64 = 1_000_000;

/// Checks each window against the policy's bound plus `surplus`: the greatest sum by which the
/// receipts that were open at one time exceeded their estimates. Returns how much of its bound the
/// fullest window longer than an instant holds.
fn within(used: &[Used], burst: u64, surplus: u64) -> Result<f64, String> {
    let mut fullest = 0.0_f64;
    let mut used = used.to_vec();
    used.sort_by_key(|used| used.at);
    for (n, first) in used.iter().enumerate() {
        let mut sum = 0;
        for last in &used[n..] {
            sum += last.permits;
            let time = u128::from(last.at - first.at) * u128::from(UNIT) / u128::from(SECOND);
            // Each charge may have got a part of a permit more than the call reported.
            let bound = burst + time as u64 + surplus + used.len() as u64;
            if sum > bound {
                return Err(format!("{sum} of {bound} from {} to {}", first.at, last.at));
            }
            if last.at != first.at {
                fullest = fullest.max(sum as f64 / bound as f64);
            }
        }
    }
    Ok(fullest)
}

/// 10^5 traces of takes, bookings, cancelled bookings, and settlements below and above the
/// estimate, some late and some repeated: no window ever holds more than its bound. With full
/// refunds many windows do.
#[test]
fn no_trace_is_above_the_bound() {
    let (over, given, full) = traces(100_000, Refund::Safe);
    assert_eq!(over, None);
    assert!(given / UNIT > 100_000, "{given} permits came back");
    // With a rule that gives too little back, fewer windows come near their bound.
    println!("{full} traces after a give-back have a window that holds 99 % of its bound");
    assert!(full > 1_000, "{full} traces come near the bound");
    let (over, _, _) = traces(2_000, Refund::Full);
    assert!(over.is_some(), "a full refund is not above the bound");
}

/// The first window above its bound, the permits that went back, and the number of traces with
/// give-backs that come within 1 % of the bound.
fn traces(count: u64, refund: Refund) -> (Option<String>, u64, u64) {
    let burst = 8 * UNIT;
    let table =
        Table::private(&Options::new(200_000), &["1000000/s burst 8000000".parse().unwrap()])
            .unwrap();
    let (mut given, mut full) = (0, 0);
    for trace in 0..count {
        let given_before = given;
        let (mut rng, key) = (Rng(trace), trace.to_le_bytes());
        let mut now = NOW;
        let mut used: Vec<Used> = Vec::new();
        // Receipts that may be settled: the index of the use, the estimate, the real cost, and the
        // number of settlements to come.
        let mut open: Vec<(usize, Receipt, u64, u64)> = Vec::new();
        let mut bookings: Vec<(usize, Charge)> = Vec::new();
        let (mut surplus, books) = (0, trace % 3 == 0);
        for _ in 0..14 {
            match rng.below(8) {
                0..=2 => {
                    let estimate = UNIT * rng.within(1, 8);
                    if let Some(receipt) = take(&table, &key, now, estimate) {
                        let real = if rng.one_in(3) {
                            estimate + UNIT * rng.within(0, 3)
                        } else {
                            rng.within(0, estimate)
                        };
                        used.push(Used { at: now, permits: estimate });
                        open.push((used.len() - 1, receipt, real, 1 + rng.below(2)));
                        let above: u64 = open
                            .iter()
                            .map(|(_, r, real, _)| real.saturating_sub(r.charged()))
                            .sum();
                        surplus = surplus.max(above);
                    }
                }
                3 if books => {
                    let cost = UNIT * rng.within(1, 3);
                    if let Ok(booked) = table.reserve_at(FIRST, &key, now, cost, now + 20 * SECOND)
                    {
                        used.push(Used { at: booked.at, permits: cost });
                        bookings.push((used.len() - 1, booked));
                    }
                }
                4 if !bookings.is_empty() => {
                    let (place, charge) =
                        bookings.swap_remove(rng.below(bookings.len() as u64) as usize);
                    let back = table.give_back_at(FIRST, &key, now, charge, charge.cost).unwrap();
                    used[place].permits -= back;
                    given += back;
                }
                5 | 6 if !open.is_empty() => {
                    let n = rng.below(open.len() as u64) as usize;
                    let (place, receipt, real, times) = open[n];
                    let settled = table.settle_at(&receipt, now, real, refund).unwrap();
                    if settled.first {
                        let charged = real.saturating_sub(receipt.charged()) - settled.rest;
                        // The request was admitted in the past: its use counts from that time, and
                        // returned permits are subtracted there.
                        used[place].permits += charged;
                        used[place].permits -= settled.given_back;
                    } else {
                        assert_eq!(settled.given_back, 0);
                    }
                    given += settled.given_back;
                    match times {
                        1 => drop(open.swap_remove(n)),
                        _ => open[n].3 -= 1,
                    }
                }
                _ => now += rng.below(5) * SECOND,
            }
        }
        match within(&used, burst, surplus) {
            Err(why) => return (Some(format!("trace {trace}: {why}: {used:?}")), given, full),
            Ok(fullest) => full += u64::from(fullest > 0.99 && given != given_before),
        }
    }
    (None, given, full)
}

/// 20,000 traces of takes and settlements, late and doubled ones too: no window keeps more than its
/// limit, unless receipts cost more than their estimates.
#[test]
fn no_window_keeps_more_than_its_limit() {
    for text in
        ["8/s algo fixed-window", "6/s algo fixed-window anchor first", "8/s algo weighted-window"]
    {
        let table = Table::private(&Options::new(200_000), &[text.parse().unwrap()]).unwrap();
        let (limit, mut back, mut refused, mut doubled) =
            (if text.starts_with('8') { 8 } else { 6 }, 0, 0, 0);
        for trace in 0..20_000_u64 {
            let (mut rng, key) = (Rng(trace), trace.to_le_bytes());
            let mut now = NOW;
            // For each request its time, the permits that it kept, and its receipt.
            let mut kept: Vec<(u64, u64)> = Vec::new();
            let mut open: Vec<(usize, Receipt)> = Vec::new();
            for _ in 0..14 {
                match rng.below(5) {
                    0 | 1 => match take(&table, &key, now, rng.within(1, limit)) {
                        None => refused += 1,
                        Some(receipt) => {
                            kept.push((now, receipt.charged()));
                            open.push((kept.len() - 1, receipt));
                        }
                    },
                    2 | 3 if !open.is_empty() => {
                        let (place, receipt) = open[rng.below(open.len() as u64) as usize];
                        let cost = rng.within(0, receipt.charged());
                        let settled = table.settle_at(&receipt, now, cost, Refund::Safe).unwrap();
                        assert!(settled.first || settled.given_back == 0);
                        doubled += u64::from(!settled.first);
                        kept[place].1 -= settled.given_back;
                        back += settled.given_back;
                    }
                    _ => now += rng.below(3) * SECOND / 2,
                }
            }
            // A period overlaps two windows, and the whole trace overlaps all of them.
            for &(from, _) in &kept {
                let sum = |to: u64| {
                    kept.iter()
                        .filter(|(at, _)| (from..to).contains(at))
                        .map(|kept| kept.1)
                        .sum::<u64>()
                };
                assert!(sum(from + SECOND) <= 2 * limit, "{text}, trace {trace}: {kept:?}");
                // Aligned to time 0 a window begins at each second.
                let aligned = from % SECOND == 0 && !text.contains("first");
                assert!(!aligned || sum(from + SECOND) <= limit, "{text}, trace {trace}: {kept:?}");
            }
        }
        assert!(
            back > 20_000 && refused > 20_000 && doubled > 20_000,
            "{text}: {back} {refused} {doubled}"
        );
    }
}

/// 10^5 requests like those of a language model: the real cost is 0.3 to 3 times the estimate. The
/// permits really used in any window stay within the bound.
#[test]
fn estimates_that_err_keep_the_bound() {
    let (burst, rate) = (100_000, 1000);
    let table =
        Table::private(&Options::new(1000), &["1000/s burst 100000".parse().unwrap()]).unwrap();
    let mut rng = Rng(11);
    let mut now = NOW;
    let mut open: Vec<(usize, Receipt, u64)> = Vec::new();
    let mut used: Vec<Used> = Vec::new();
    let (mut surplus, mut refused, mut back, mut debt) = (0, 0, 0, 0);
    for _ in 0..100_000 {
        // About twice the load that the limit admits.
        now += rng.below(2 * SECOND);
        while !open.is_empty() && (rng.one_in(2) || open.len() > 8) {
            let (place, receipt, real) = open.swap_remove(rng.below(open.len() as u64) as usize);
            let settled = table.settle_at(&receipt, now, real, Refund::Safe).unwrap();
            assert!(settled.first && settled.rest == 0, "{settled:?}");
            used[place].permits = real;
            back += settled.given_back;
            debt += real.saturating_sub(receipt.charged());
        }
        let estimate = rng.within(100, 3900);
        match take(&table, KEY, now, estimate) {
            None => refused += 1,
            Some(receipt) => {
                used.push(Used { at: now, permits: estimate });
                open.push((used.len() - 1, receipt, estimate * rng.within(30, 300) / 100));
                let above: u64 =
                    open.iter().map(|(_, r, real)| real.saturating_sub(r.charged())).sum();
                surplus = surplus.max(above);
            }
        }
    }
    // Real use above an estimate counts; unused permits of an estimate do not.
    let (mut fullest, mut sums) = (0.0_f64, vec![0_u64]);
    used.iter().for_each(|used| sums.push(sums[sums.len() - 1] + used.permits));
    for first in 0..used.len() {
        for last in (first..used.len()).step_by(1 + used.len() / 200) {
            let sum = sums[last + 1] - sums[first];
            let bound = burst + (used[last].at - used[first].at) / SECOND * rate + rate + surplus;
            assert!(sum <= bound, "{sum} of {bound} from {first} to {last}");
            fullest = fullest.max(sum as f64 / bound as f64);
        }
    }
    assert!(refused > 10_000 && back > 1_000_000 && debt > 1_000_000, "{refused} {back} {debt}");
    // Real use comes near the bound.
    assert!(fullest > 0.9, "{fullest}");
    println!("{refused} refused; {back} permits came back, {debt} were charged as debt; at most {surplus} open above estimates; {fullest:.3} of the bound");
    assert_eq!(table.check_at(FIRST, KEY, now, 1 << 40).verdict, Verdict::Never);
}

/// E9: a receipt gives back while its key is under the policy of the charge: not under an override,
/// and again when that is cleared.
#[test]
fn e9_a_receipt_from_before_an_override_gives_back_after_it() {
    let table = table("10/h burst 10");
    let receipt = take(&table, b"k", NOW, 6).expect("permits");
    let during = take(&table, b"k", NOW, 1).expect("a permit");
    table.set_override(FIRST, b"k", &"20/h burst 10".parse().unwrap(), Keep::Time).unwrap();
    assert_eq!(table.settle_at(&during, NOW, 0, Refund::Safe).unwrap().given_back, 0);
    table.clear_override(FIRST, b"k").unwrap();
    assert_eq!(table.settle_at(&receipt, NOW, 0, Refund::Safe).unwrap().given_back, 6);
}
