use super::*;

#[test]
fn offsets_are_of_whole_seconds_and_more_of_either_sign() {
    let text = b"monotonic    86400         7\nboottime        -2 500000000\n";
    assert_eq!(
        parse_offsets(text),
        Some(Ahead { monotonic: 86_400 * SECOND + 7, boottime: -1_500_000_000 })
    );
    // Names instead of numbers, as the kernel takes them when they are written; too much for 64
    // bits; a line that is missing.
    for broken in [
        &b""[..],
        b"monotonic 1 2\n",
        b"monotonic 1\nboottime 1 2\n",
        b"monotonic x 0\nboottime 0 0\n",
        b"monotonic 9223372037 0\nboottime 0 0\n",
        b"monotonic 99999999999999999999 0\nboottime 0 0\n",
    ] {
        assert_eq!(parse_offsets(broken), None);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn both_sources_give_one_number() {
    for (kind, link) in
        [(NamespaceKind::Pid, c"/proc/self/ns/pid"), (NamespaceKind::Time, c"/proc/self/ns/time")]
    {
        let known = number(kind);
        assert_eq!(known, link_number(link), "{kind:?}");
        assert!(known.is_some_and(|number| number != 0), "{kind:?}");
        // `None` before Linux 6.11.
        assert!(by_pidfd(kind).is_none() || by_pidfd(kind) == known, "{kind:?}");
    }
    assert_eq!(link_number(c"/proc/self/ns"), None);
    assert_eq!(link_number(c"/nowhere"), None);
}
