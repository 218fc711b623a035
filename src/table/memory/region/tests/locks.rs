//! The lock of a file excludes other threads, forked children and unrelated processes.

use super::*;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

/// Adds one to a word by a load and a store, so that two callers at one time lose an addition.
fn add_carelessly(region: &Region) {
    let seen = word(region, 100).load(Ordering::SeqCst);
    std::thread::sleep(Duration::from_micros(50));
    word(region, 100).store(seen + 1, Ordering::SeqCst);
}

#[test]
fn threads_children_and_other_processes_take_turns() {
    const TURNS: u64 = 50;
    let dir = Dir::new();
    let path = dir.path("t");
    let (region, _) = make(&path, LEN, 0o600, Way::Unnamed).unwrap();
    let many = &|region: &Region| {
        (0..TURNS).all(|_| region.exclusively(|| add_carelessly(region)).is_ok())
    };
    let mut children: Vec<_> = (0..3)
        .map(|i| {
            let (region, path) = (&region, &path);
            Child::new(move || {
                // The first child uses its parent's region, the others open the file.
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
fn a_killed_process_s_lock_is_released() {
    let dir = Dir::new();
    let (region, _) = make(&dir.path("t"), LEN, 0o600, Way::Unnamed).unwrap();
    let killed = Child::new(|| {
        let _ = region.exclusively(|| {
            // SAFETY: integer arguments only; does not return.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) }
        });
        Ok(())
    });
    assert_eq!(killed.wait(), -libc::SIGKILL);
    // In a child, which the alarm kills if the lock is still held.
    in_child(|| {
        same!(region.exclusively(|| 1), Ok(1));
        Ok(())
    });
}

#[test]
fn the_lock_is_released_although_a_child_was_forked_meanwhile() {
    let dir = Dir::new();
    let (region, _) = make(&dir.path("t"), LEN, 0o600, Way::Unnamed).unwrap();
    let child = region.exclusively(|| {
        Child::new(|| {
            // SAFETY: pause waits for the signal below.
            unsafe { libc::pause() };
            Ok(())
        })
    });
    let child = child.unwrap();
    let other = Child::new(|| {
        same!(region.exclusively(|| 1), Ok(1));
        Ok(())
    });
    // The assertion comes last, so that the child is killed even if it fails.
    let other = other.wait();
    // SAFETY: the child keeps its id until the parent has waited for it.
    unsafe { libc::kill(child.0, libc::SIGKILL) };
    child.wait();
    assert_eq!(other, 0);
}

#[test]
fn a_panic_releases_the_lock() {
    let dir = Dir::new();
    let (region, _) = make(&dir.path("t"), LEN, 0o600, Way::Unnamed).unwrap();
    in_child(|| {
        let panicked = std::panic::catch_unwind(|| {
            region.exclusively(|| std::panic::resume_unwind(std::boxed::Box::new(0)))
        });
        same!(panicked.is_err(), true);
        same!(region.exclusively(|| 1), Ok(1));
        Ok(())
    });
}

#[test]
fn a_renamed_or_replaced_file_cannot_be_locked() {
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
fn a_process_that_may_not_open_the_file_cannot_lock_it() {
    let dir = Dir::new();
    let path = dir.path("t");
    let (region, _) = make(&path, LEN, 0o600, Way::Unnamed).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    in_child(|| {
        become_nobody();
        same!(region.exclusively(|| ()), Err(refused(Call::Lock, libc::EACCES)));
        // The process can still use the memory.
        same!(is_whole(&region), true);
        Ok(())
    });
}

#[test]
fn a_relative_path_stays_valid_in_another_directory() {
    let dir = Dir::new();
    fs::create_dir(dir.path("below")).unwrap();
    in_child(|| {
        for (from, to, path) in
            [(".", "below", "t"), ("below", "..", "../u"), ("below", "/", "./v")]
        {
            std::env::set_current_dir(dir.path(from)).map_err(|error| error.to_string())?;
            let (region, _) = make(Path::new(path), LEN, 0o600, Way::Unnamed)
                .map_err(|error| error.to_string())?;
            std::env::set_current_dir(to).map_err(|error| error.to_string())?;
            same!(region.exclusively(|| 1), Ok(1));
        }
        Ok(())
    });
    assert_eq!(dir.names(), ["below", "t", "u"]);
    // For a file in the root directory the joined path begins with two slashes, which mean one.
    assert_eq!(attach(&PathBuf::from("//").join(dir.path("t"))).unwrap().exclusively(|| 1), Ok(1));
}
