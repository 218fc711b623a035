//! Files over restarts of processes and of the machine.

use super::*;

#[test]
fn a_table_goes_on_after_a_restart() {
    let dir = Dir::new();
    let path = dir.path("t");
    let mut rng = Rng(10);
    let mut used = [0u64; 500];
    let mut now = DAY;
    for restart in 0..20 {
        let table = if restart % 2 == 0 { make(&path) } else { Table::open(&path).unwrap() };
        for key in 0..500u32 {
            let remaining = table.peek_at(FIRST, &key.to_le_bytes(), now, 1).remaining;
            assert_eq!(remaining, 20 - used[key as usize], "restart {restart}");
        }
        for _ in 0..400 {
            let key = rng.below(500) as usize;
            let cost = rng.within(1, 2);
            let admitted =
                table.admit_at(FIRST, &(key as u32).to_le_bytes(), now, cost) == Verdict::Allowed;
            used[key] += if admitted { cost } else { 0 };
        }
        // Less than a permit's time, in all.
        now += SEC;
        if restart % 3 == 0 {
            table.sync().unwrap();
        }
    }
}

/// Makes the file one of another boot, which ended at the table's time `then`, `downtime` ago by
/// the wall clock.
fn another_boot(path: &Path, then: u64, wall: u64) {
    let mut words = words(path);
    words[BOOT] ^= 0x5555;
    words[BOOT + 1] ^= 0x5555;
    words[INODE] ^= 0x5555;
    words[TABLE_TIME] = then;
    words[WALL_TIME] = wall;
    write(path, &words);
}

fn wall_clock() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.unwrap().as_nanos() as u64
}

/// Real time passes in this test, seconds of it on a busy machine: a permit comes every minute, so
/// that half a minute is enough for all of it.
#[test]
fn m10_times_go_on_after_a_boot_by_the_wall_clock() {
    let dir = Dir::new();
    // The clock of this boot is far ahead of the one before, or far behind it, or went on as if
    // nothing had happened.
    for then in [100 * DAY, HOUR, 3_000 * DAY] {
        let path = dir.path(&then.to_string());
        let table = make(&path);
        assert_eq!(table.take_up_to_at(FIRST, b"used up", then, 20), 20);
        assert_eq!(table.take_up_to_at(FIRST, b"used", then, 8), 8);
        drop(table);
        let remaining = |table: &Table| {
            [b"used up".as_slice(), b"used", b"never"]
                .map(|key| table.peek(FIRST, key, 1).remaining)
        };
        // Seven minutes and a half: seven permits.
        another_boot(&path, then, wall_clock() - 7 * MIN - 30 * SEC);
        let table = make(&path);
        let on = table.now() - then;
        assert!((7 * MIN + 30 * SEC..8 * MIN).contains(&on), "{on} ns have passed since {then}");
        assert_eq!(remaining(&table), [7, 19, 20]);
        // Others of this boot, now and after a restart, have the same time.
        let before = table.now();
        let again = Table::open(&path).unwrap();
        let now = again.now();
        assert!(now >= before && table.now() >= now, "{before} {now}");
        drop((table, again));
        assert_eq!(remaining(&Table::open(&path).unwrap()), [7, 19, 20]);
    }
}

/// The wall clock was set back during the downtime: the table's time stands still, and no key's
/// debt is forgiven.
#[test]
fn m10_a_wall_clock_that_went_back_forgives_nothing() {
    let dir = Dir::new();
    let path = dir.path("t");
    for ahead in [SEC, DAY, 10_000 * DAY] {
        let table = make(&path);
        let then = table.now() + DAY;
        table.take_up_to_at(FIRST, b"used up", then, 20);
        drop(table);
        another_boot(&path, then, wall_clock() + ahead);
        let table = make(&path);
        // Half a minute, as above.
        assert!(table.now() - then < 30 * SEC);
        assert_eq!(table.peek(FIRST, b"used up", 1).remaining, 0, "{ahead} ns ahead");
        drop(table);
        fs::remove_file(&path).unwrap();
    }
}

/// Processes that open the file at once, first after a boot, agree on the time.
#[test]
fn m10_many_come_first_after_a_boot() {
    let dir = Dir::new();
    let path = dir.path("t");
    for round in 0..20u64 {
        drop(make(&path));
        let then = (round + 1) * 50 * DAY;
        another_boot(&path, then, wall_clock() - HOUR);
        let tables = thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| make(&path))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        let mut last = then + HOUR;
        for n in 0..40 {
            // One clock with one offset never goes back, in no thread.
            let now = tables[n % 4].now();
            assert!(
                now >= last && now < then + HOUR + 30 * SEC,
                "round {round}: {now} after {last}"
            );
            last = now;
        }
        drop(tables);
        fs::remove_file(&path).unwrap();
    }
}
