use super::*;
use crate::policy::Policy;
use crate::table::policies::terms::Terms;
use crate::table::Keep;

fn version(stamp: u64) -> Version {
    let policy = Policy { limit: stamp, ..Policy::new(1, 1_000_000_000) };
    Version::of(&policy, Terms::of_policy(Keep::Count), stamp, false).expect("a version")
}

/// A handler does not replace the version that the interrupted call is using.
#[test]
fn a_version_in_use_is_not_replaced() {
    let locals = Locals::new().expect("memory");
    let local = locals.get(3, true).expect("a place");
    let is = |scratch: &Scratch<'_>, stamp: u64| {
        scratch.holds(stamp)
            && scratch.version().is_some_and(|version| version.policy.limit == stamp)
    };
    let (mut call, mut handler, mut second) = (Scratch::new(), Scratch::new(), Scratch::new());
    assert!(!call.share(local, 1));
    call.put(version(1), Some(local));
    assert!(is(&call, 1));
    // A handler under the same version uses the place, too. Under another version it compiles on
    // its stack.
    assert!(handler.share(local, 1) && is(&handler, 1));
    assert!(!handler.share(local, 2));
    handler.put(version(2), Some(local));
    assert!(is(&handler, 2) && is(&call, 1) && local.stamp.load(Ordering::Relaxed) == 1);
    // The same holds if the interrupted call is writing the version (stamp 0).
    local.stamp.store(0, Ordering::Relaxed);
    assert!(!second.share(local, 1));
    second.put(version(1), Some(local));
    assert!(is(&second, 1) && local.stamp.load(Ordering::Relaxed) == 0);
    local.stamp.store(1, Ordering::Relaxed);
    drop((call, handler, second));
    assert_eq!(local.users.load(Ordering::Relaxed), 0);
    // After the last use the next version gets the place.
    let mut call = Scratch::new();
    assert!(!call.share(local, 2));
    call.put(version(2), Some(local));
    assert!(is(&call, 2) && local.stamp.load(Ordering::Relaxed) == 2);
}
