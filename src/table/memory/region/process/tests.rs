use super::*;

#[test]
fn fields_are_counted_from_the_last_bracket() {
    let text = b"7 (a) Z 1 (b)) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 3 0 987654 1 2";
    let stat = parse_stat(text, Some(0)).expect("a stat");
    assert_eq!((stat.start, stat.zombie), (987_654, false));
    let text = b"7 (a) Z 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 16777216 1 2";
    let stat = parse_stat(text, Some(0)).expect("a stat");
    // The word keeps the start modulo 2^24 ticks and uses 0 for an unknown start, so a start of
    // 2^24 ticks must not be stored as 0.
    assert_eq!((stat.start, stat.zombie), (1, true));
    // The first thread has ended, and others run.
    let text = b"7 (a) Z 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 2 0 5 1 2";
    assert!(!parse_stat(text, Some(0)).expect("a stat").zombie);
    for broken in
        [&b""[..], b")", b"7 (a) S", b"7 (a) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 x 0 5 1"]
    {
        assert!(parse_stat(broken, Some(0)).is_none());
    }
}

/// E3: /proc shows a start in the reader's time namespace.
#[test]
fn a_start_is_on_the_machines_scale() {
    let text = b"7 (a) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 3 0 8640123 1 2";
    let start = |ahead| parse_stat(text, ahead).expect("a stat").start;
    assert_eq!(
        (start(Some(86_400_000_000_000)), start(Some(-TICK)), start(None)),
        (123, 8_640_124, 0)
    );
    // The kernel rounds after it has added the distance, so a part of a tick makes a tick's
    // difference at most.
    for nanoseconds in [1, TICK / 2, TICK - 1] {
        assert_eq!(start(Some(86_400_000_000_000 + nanoseconds)), 123);
        assert_eq!(start(Some(86_400_000_000_000 - nanoseconds)), 124);
    }
    for (one, other, differ) in
        [(5, 5, false), (5, 6, false), (6, 5, false), (5, 8, true), (0, 9, false), (9, 0, false)]
    {
        assert_eq!(is_other_start(one, other), differ, "{one} {other}");
    }
    assert!(!is_other_start(STARTS - 1, 1) && is_other_start(STARTS - 1, 2));
}

#[test]
fn this_process_has_not_ended() {
    let number = process() as u32;
    let start = start_of(number);
    assert_ne!(start, 0);
    assert!(!has_ended(number, start, true) && !has_ended(number, start, false));
    // Another process has the number now.
    assert!(has_ended(number, start ^ 4, true));
    assert!(!has_ended(number, start ^ 4, false));
    assert!(!has_ended(number, 0, true));
}

#[test]
fn a_zombie_has_ended() {
    let mut child = std::process::Command::new("sleep").arg("100").spawn().expect("sleep");
    let start = start_of(child.id());
    assert!(!has_ended(child.id(), start, false));
    child.kill().expect("killed");
    let zombie = || stat(child.id()).is_some_and(|stat| stat.zombie);
    while !zombie() {
        std::thread::yield_now();
    }
    assert!(!is_process_gone(child.id()));
    assert!(has_ended(child.id(), start, false));
    child.wait().expect("reaped");
    assert!(has_ended(child.id(), start, false));
}
