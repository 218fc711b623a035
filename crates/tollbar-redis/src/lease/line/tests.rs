//! Tests of a line in one thread.

use super::*;

const KEY: u64 = 0x1111;
const OTHER: u64 = 0x2222;
const UNIT: u64 = 1 << word::UNIT_BITS;

fn line() -> Line {
    // SAFETY: a line is atomic words, for which all zeroes are valid; a node's memory begins
    // so.
    unsafe { core::mem::zeroed() }
}

fn claimed(lines: &[Line; 2], hash: u64, now: u64) -> Option<&Line> {
    claim(&[&lines[0], &lines[1], &lines[0], &lines[1]], hash, now, hash)
}

/// A key keeps its line while it waits for an answer, has permits to spend or a used right, or
/// is dry or shut. After that another key may claim the line.
#[test]
fn a_line_is_given_up_when_its_key_is_done() {
    let one = line();
    let claim = |hash, now| claim(&[&one; 4], hash, now, hash).is_some();
    assert!(claim(KEY, 0) && claim(KEY, 0) && claim(OTHER, 0) && claim(KEY, 0));
    assert!(one.ask(KEY, 0, 2 * UNIT) && !one.ask(KEY, UNIT, 9 * UNIT));
    assert!(!claim(OTHER, UNIT));
    one.install(KEY, word::lease(2, 5 * UNIT), UNIT);
    one.heard(KEY, &Said { granted: 2, ..Said::default() }, UNIT, 0);
    assert!(!claim(OTHER, UNIT));
    // An answer about another key changes nothing here.
    one.heard(
        OTHER,
        &Said { confirmed: 1, dry: Some((99 * UNIT, true)), ..Said::default() },
        UNIT,
        0,
    );
    assert_eq!((one.left(KEY, UNIT), one.left(OTHER, UNIT)), (2, 0));
    assert!(one.take(KEY, UNIT, 2).is_some() && claim(OTHER, UNIT) && claim(KEY, UNIT));
    assert_eq!((one.use_right(KEY, UNIT, 2, 3), one.use_right(KEY, UNIT, 2, 3)), (Some(1), None));
    assert!(!claim(OTHER, 9 * UNIT));
    let said =
        Said { confirmed: 2, shut: Some(20 * UNIT), dry: Some((15 * UNIT, true)), granted: 0 };
    one.heard(KEY, &said, 9 * UNIT, 0);
    assert_eq!(one.state_of(KEY).map(|state| state.phase_at(14 * UNIT)), Some(KeyPhase::Firm));
    assert_eq!(one.use_right(KEY, 19 * UNIT, 1, 3), None);
    assert!(!claim(OTHER, 14 * UNIT) && !claim(OTHER, 19 * UNIT));
    assert_eq!(one.use_right(KEY, 20 * UNIT, 1, 3), Some(2));
    one.return_right(KEY, 1);
    assert!(claim(OTHER, 20 * UNIT));
}

#[test]
fn a_key_is_in_one_of_its_lines() {
    let lines = [line(), line()];
    let first = claimed(&lines, KEY, 0).expect("room");
    assert!(first.use_right(KEY, 0, 1, 1).is_some());
    let second = claimed(&lines, OTHER, 0).expect("room");
    assert!(second.use_right(OTHER, 0, 1, 1).is_some());
    assert!(!core::ptr::eq(first, second) && claimed(&lines, 0x3333, 0).is_none());
    assert!(core::ptr::eq(claimed(&lines, OTHER, 0).expect("its line"), second));
    // The key whose debt is confirmed leaves; the other stays where it is.
    first.heard(KEY, &Said { confirmed: 1, shut: Some(0), ..Said::default() }, 0, 0);
    assert!(core::ptr::eq(claimed(&lines, 0x3333, 0).expect("room"), first));
    assert!(core::ptr::eq(claimed(&lines, OTHER, 0).expect("its line"), second));
}

/// A caller that was killed between its claim and its second look does not keep the line.
#[test]
fn an_abandoned_claim_ends() {
    let lines = [line(), line()];
    let claim = SlotPair { key: KEY, state: state::claim(0, 1) };
    assert!(lines[0].state().swap(SlotPair { key: 0, state: 0 }, claim).is_ok());
    let other = claimed(&lines, OTHER, 0).expect("the second line");
    assert!(core::ptr::eq(other, &lines[1]) && other.use_right(OTHER, 0, 1, 1).is_some());
    assert!(claimed(&lines, 0x3333, 0).is_none());
    assert!(claimed(&lines, KEY, 0).is_some_and(|line| core::ptr::eq(line, &lines[0])));
    assert!(claimed(&lines, 0x3333, 2_000_000_000).is_some());
}

/// A lease that finds no empty slot joins another, until the earlier end of both. It does not
/// end a long one early for the sake of a few permits.
#[test]
fn a_third_lease_keeps_the_most() {
    for (leases, kept) in [
        ([(5, 9), (3, 7), (4, 8)], [(6, 12), (7, 5), (9, 0)]),
        // The third joins the first, and the permit that ends soon stays.
        ([(116, 900), (1, 2), (235, 900)], [(1, 352), (2, 351), (899, 351)]),
        ([(116, 900), (235, 900), (1, 2)], [(1, 352), (2, 351), (899, 351)]),
        // The first ends soon, too. The permit is lost.
        ([(116, 9), (1, 2), (235, 900)], [(1, 351), (8, 351), (9, 235)]),
    ] {
        let one = line();
        assert!(claim(&[&one; 4], KEY, 0, 1).is_some());
        for (permits, until) in leases {
            one.install(KEY, word::lease(permits, until * UNIT), 0);
        }
        assert_eq!(kept.map(|(at, _)| (at, one.left(KEY, at * UNIT))), kept, "{leases:?}");
    }
}

/// If nobody will report a debt, the sweep frees the used right. If the client still knows the
/// debt, the right stays used.
#[test]
fn a_sweep_frees_what_nobody_reports() {
    let lines = [line(), line()];
    let line = claimed(&lines, KEY, 0).expect("room");
    assert!(line.use_right(KEY, 5 * UNIT, 1, 1).is_some());
    line.sweep(5 * UNIT, |_| false);
    line.sweep(6 * UNIT, |hash| hash == KEY);
    assert_eq!(line.use_right(KEY, 6 * UNIT, 1, 1), None);
    line.sweep(6 * UNIT, |_| false);
    assert_eq!(line.use_right(KEY, 6 * UNIT, 1, 1), Some(0));
}
