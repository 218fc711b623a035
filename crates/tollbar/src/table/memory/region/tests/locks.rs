//! One at a time, whether threads, children or strangers.

use super::*;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

/// Adds one to a word in a way that loses an addition if two do it at a time.
fn add_carelessly(region: &Region) {
    let seen = word(region, 100).load(Ordering::SeqCst);
    std::thread::sleep(Duration::from_micros(50));
    word(region, 100).store(seen + 1, Ordering::SeqCst);
}

#[test]
fn threads_children_and_strangers_take_turns() {
    const TURNS: u64 = 50;
    let dir = Dir::new();
    let path = dir.path("t");
    let (region, _) = make(&path, LEN, 0o600, Way::Unnamed).unwrap();
    let many = &|region: &Region| (0..TURNS).all(|_| region.exclusively(|| add_carelessly(region)).is_ok());
    let mut children: Vec<_> = (0..3)
        .map(|i| {
            let (region, path) = (&region, &path);
            Child::new(move || {
                // One has its parent's region, the others open the file themselves.
                let own = attach(path).map_err(|error| error.to_string())?;
                same!(many(if i == 0 { region } else { &own }), true);
                Ok(())
            })
        })
        .collect();
    let second = attach(&path).unwrap();
    std::thread::scope(|scope| {
        let threads = [&region, &region, &second].map(|region| scope.spawn(move || many(region)));
        for thread in threads {
            assert!(thread.join().unwrap());
        }
    });
    for child in children.drain(..) {
        assert_eq!(child.wait(), 0);
    }
    assert_eq!(word(&region, 100).load(Ordering::SeqCst), 6 * TURNS);
}

#[test]
fn a_lock_goes_with_the_one_who_is_killed() {
    let dir = Dir::new();
    let (region, _) = make(&dir.path("t"), LEN, 0o600, Way::Unnamed).unwrap();
    let killed = Child::new(|| {
        let _ = region.exclusively(|| {
            // SAFETY: numbers only; does not return.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) }
        });
        Ok(())
    });
    assert_eq!(killed.wait(), -libc::SIGKILL);
    // In a child, which the alarm ends if it waits in vain.
    in_child(|| {
        same!(region.exclusively(|| 1), Ok(1));
        Ok(())
    });
}

#[test]
fn a_lock_ends_with_the_call_even_if_a_child_was_forked_during_it() {
    let dir = Dir::new();
    let (region, _) = make(&dir.path("t"), LEN, 0o600, Way::Unnamed).unwrap();
    let child = region.exclusively(|| {
        Child::new(|| {
            // SAFETY: waits for the signal below.
            unsafe { libc::pause() };
            Ok(())
        })
    });
    let child = child.unwrap();
    let other = Child::new(|| {
        same!(region.exclusively(|| 1), Ok(1));
        Ok(())
    });
    // Killed in any case, so that a failure does not leave it behind.
    let other = other.wait();
    // SAFETY: the child's id, which it keeps until it is waited for.
    unsafe { libc::kill(child.0, libc::SIGKILL) };
    child.wait();
    assert_eq!(other, 0);
}

#[test]
fn a_panic_gives_the_lock_back() {
    let dir = Dir::new();
    let (region, _) = make(&dir.path("t"), LEN, 0o600, Way::Unnamed).unwrap();
    in_child(|| {
        let panicked =
            std::panic::catch_unwind(|| region.exclusively(|| std::panic::resume_unwind(std::boxed::Box::new(0))));
        same!(panicked.is_err(), true);
        same!(region.exclusively(|| 1), Ok(1));
        Ok(())
    });
}

#[test]
fn the_lock_is_the_mapped_files_or_none() {
    let dir = Dir::new();
    let path = dir.path("t");
    let (region, _) = make(&path, LEN, 0o600, Way::Unnamed).unwrap();
    let never = || panic!("called without the lock");
    fs::rename(&path, dir.path("elsewhere")).unwrap();
    assert_eq!(region.exclusively(never), Err(refused(Call::Lock, libc::ENOENT)));
    make(&path, LEN, 0o600, Way::Unnamed).unwrap();
    assert_eq!(region.exclusively(never), Err(refused(Call::Lock, libc::ESTALE)));
    fs::rename(dir.path("elsewhere"), &path).unwrap();
    assert_eq!(region.exclusively(|| 1), Ok(1));
}

#[test]
fn who_may_not_open_the_file_may_not_lock_it() {
    let dir = Dir::new();
    let path = dir.path("t");
    let (region, _) = make(&path, LEN, 0o600, Way::Unnamed).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    in_child(|| {
        become_nobody();
        same!(region.exclusively(|| ()), Err(refused(Call::Lock, libc::EACCES)));
        // The memory is still its own.
        same!(is_whole(&region), true);
        Ok(())
    });
}

#[test]
fn a_relative_path_stays_the_same_file() {
    let dir = Dir::new();
    fs::create_dir(dir.path("below")).unwrap();
    in_child(|| {
        for (from, to, path) in [(".", "below", "t"), ("below", "..", "../u"), ("below", "/", "./v")] {
            std::env::set_current_dir(dir.path(from)).map_err(|error| error.to_string())?;
            let (region, _) = make(Path::new(path), LEN, 0o600, Way::Unnamed).map_err(|error| error.to_string())?;
            std::env::set_current_dir(to).map_err(|error| error.to_string())?;
            same!(region.exclusively(|| 1), Ok(1));
        }
        Ok(())
    });
    assert_eq!(dir.names(), ["below", "t", "u"]);
    // In the root there is a slash too many, which is none.
    assert_eq!(attach(&PathBuf::from("//").join(dir.path("t"))).unwrap().exclusively(|| 1), Ok(1));
}
