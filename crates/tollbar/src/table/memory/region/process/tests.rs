use super::*;

#[test]
fn fields_are_counted_from_the_last_bracket() {
    let text = b"7 (a) Z 1 (b)) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 3 0 987654 1 2";
    let stat = parse_stat(text).expect("a stat");
    assert_eq!((stat.start, stat.zombie), (987_654, false));
    let text = b"7 (a) Z 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 16777216 1 2";
    let stat = parse_stat(text).expect("a stat");
    // The word keeps the start modulo 2^24 ticks and uses 0 for an unknown start, so a start of 2^24 ticks must not be stored as 0.
    assert_eq!((stat.start, stat.zombie), (1, true));
    // The first thread has ended, and others run.
    let text = b"7 (a) Z 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 2 0 5 1 2";
    assert!(!parse_stat(text).expect("a stat").zombie);
    for broken in [&b""[..], b")", b"7 (a) S", b"7 (a) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 x 0 5 1"] {
        assert!(parse_stat(broken).is_none());
    }
}

#[test]
fn this_process_has_not_ended() {
    let number = process() as u32;
    let start = start_of(number);
    assert_ne!(start, 0);
    assert!(!has_ended(number, start, true) && !has_ended(number, start, false));
    // Another process has the number now.
    assert!(has_ended(number, start ^ 1, true));
    assert!(!has_ended(number, start ^ 1, false));
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
