//! A process changes a policy while others decide, as `tollbar table set-policy` does.

use crate::children::{board, forked, wait};
use crate::common::{policy, SEC};
use std::sync::atomic::Ordering;
use tollbar::table::{OnFull, Options, PolicyId, Table};
use tollbar::Verdict;

const FIRST: PolicyId = PolicyId::FIRST;
const NOW: u64 = 1_000 * SEC;

/// A1: a table that has all the keys for which it was made, and each key has 40 permits left. The
/// clock stands still. Two processes ask for all keys in opposite orders while a third one raises
/// and lowers the rate and the burst: each key gets 40 permits, and is refused before by none of
/// the processes.
#[test]
fn a1_a_change_by_another_process_refuses_no_key_that_has_permits_left() {
    const KEYS: u64 = 5_000;
    const LEFT: u64 = 40;
    // Fewer than half of the numbers that versions have: a process may sleep through all of them.
    const CHANGES: u64 = 100;
    let (low, high) = (policy("100/h burst 100"), policy("200/h burst 200"));
    for on_full in [OnFull::Deny, OnFull::EvictNearest, OnFull::Inherit] {
        let table = Table::shared(&Options::new(KEYS).with_on_full(on_full).with_seed(7), &[low])
            .expect("memory");
        (0..KEYS).for_each(|key| {
            assert_eq!(
                table.admit_at(FIRST, &key.to_le_bytes(), NOW, 100 - LEFT),
                Verdict::Allowed
            );
        });
        // For each key what it got, and then: the refusals that came too early, and the requests.
        let board = board(KEYS as usize + 2);
        let (early, asked) = (&board[KEYS as usize], &board[KEYS as usize + 1]);
        let asks = |forwards: bool| {
            let table = &table;
            forked(move || {
                for n in 0..(LEFT + 2) * KEYS / 2 {
                    let key = if forwards { n % KEYS } else { KEYS - 1 - n % KEYS };
                    let got = &board[key as usize];
                    match table.admit_at(FIRST, &key.to_le_bytes(), NOW, 1) {
                        Verdict::Allowed => {
                            got.fetch_add(1, Ordering::SeqCst);
                        }
                        // Read after the refusal, or a process that was stopped between the two
                        // would compare with an old count. The other process may have got the last
                        // permit, and not have counted it yet.
                        _ if got.load(Ordering::SeqCst) + 1 < LEFT => {
                            early.fetch_add(1, Ordering::SeqCst);
                        }
                        _ => {}
                    }
                    asked.fetch_add(1, Ordering::SeqCst);
                }
            })
        };
        let children = [asks(true), asks(false)];
        for n in 1..=CHANGES {
            while asked.load(Ordering::SeqCst) < n * (LEFT + 1) * KEYS / CHANGES {
                std::thread::yield_now();
            }
            table.set_policy(FIRST, if n % 2 == 1 { &high } else { &low }).expect("a record");
        }
        children.into_iter().for_each(wait);
        let rest = |key: u64| table.take_up_to_at(FIRST, &key.to_le_bytes(), NOW, LEFT);
        let got = |key: u64| board[key as usize].load(Ordering::SeqCst) + rest(key);
        let other = (0..KEYS).filter(|key| got(*key) != LEFT).count();
        let early = early.load(Ordering::SeqCst);
        println!("A1, {on_full:?}: {CHANGES} changes, {early} early refusals, {other} keys of {KEYS} got more or less than they had left");
        assert_eq!((early, other), (0, 0), "{on_full:?}");
    }
}

/// Any algorithm becomes any other while processes ask and are killed, at any instruction of a
/// conversion. The clock stands still, so a key gets the permits that it had left, whatever its
/// algorithm becomes. A killed process may have taken one permit that it did not count, and no
/// later call waits for it.
#[test]
fn a_process_that_is_killed_while_it_converts_keys_loses_and_invents_nothing() {
    const KEYS: u64 = 300;
    const LEFT: u64 = 40;
    let policies = [
        "100/h burst 100",
        "90/min algo sliding-window segments 6",
        "120/h algo sliding-log",
        "80/h algo fixed-window",
        "70/min algo sliding-log",
        "110/h algo sliding-window segments 10 mode interpolated",
    ]
    .map(policy);
    let table = Table::shared(
        &Options::new(KEYS).with_on_full(OnFull::Deny).with_room(120).with_seed(7),
        &policies[..1],
    )
    .expect("memory");
    (0..KEYS).for_each(|key| {
        let used = 100 - LEFT;
        assert_eq!(table.admit_at(FIRST, &key.to_le_bytes(), NOW, used), Verdict::Allowed);
    });
    let board = board(KEYS as usize + 2);
    let (early, asked) = (&board[KEYS as usize], &board[KEYS as usize + 1]);
    let asks = |from: u64| {
        let table = &table;
        forked(move || {
            for n in from.. {
                let key = n.wrapping_mul(7) % KEYS;
                let got = &board[key as usize];
                match table.admit_at(FIRST, &key.to_le_bytes(), NOW, 1) {
                    Verdict::Allowed => {
                        got.fetch_add(1, Ordering::SeqCst);
                    }
                    // As above. Each killed process may have one permit more.
                    _ if got.load(Ordering::SeqCst) + 30 < LEFT => {
                        early.fetch_add(1, Ordering::SeqCst);
                    }
                    _ => {}
                }
                asked.fetch_add(1, Ordering::SeqCst);
            }
        })
    };
    let kill = |child| {
        // SAFETY: a number only, of a child that no other thread waits for.
        assert_eq!(unsafe { libc::kill(child, libc::SIGKILL) }, 0);
        wait(child);
    };
    let mut children = [asks(0), asks(1)];
    let (mut killed, mut changes) = (0, 0);
    // About as many requests as there are permits, so that most conversions have some left.
    while asked.load(Ordering::SeqCst) < KEYS * LEFT {
        changes += 1;
        table.set_policy(FIRST, &policies[changes % policies.len()]).expect("room");
        let until = asked.load(Ordering::SeqCst) + KEYS / 4;
        while asked.load(Ordering::SeqCst) < until {
            std::thread::yield_now();
        }
        if changes % 4 == 0 {
            kill(std::mem::replace(&mut children[changes / 4 % 2], asks(changes as u64)));
            killed += 1;
        }
    }
    children.into_iter().for_each(kill);
    killed += 2;
    let rest = |key: u64| table.take_up_to_at(FIRST, &key.to_le_bytes(), NOW, 1_000);
    let got: Vec<u64> =
        (0..KEYS).map(|key| board[key as usize].load(Ordering::SeqCst) + rest(key)).collect();
    let most = got.iter().max().copied().unwrap_or(0);
    let lost: u64 = got.iter().map(|got| LEFT.saturating_sub(*got)).sum();
    let early = early.load(Ordering::SeqCst);
    println!("S36: {changes} changes, {killed} processes killed, {early} early refusals; {lost} permits not counted, at most {most} of {LEFT}");
    assert_eq!(most, LEFT);
    assert!(lost <= killed && early == 0, "{lost} lost, {early} early");
    assert!(table.validate(NOW).is_sound());
}
