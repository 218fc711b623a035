//! Making files: a file is complete before it has its name, one process makes it, and it has the
//! permissions that the caller asks for.

use super::*;
use std::os::unix::fs::MetadataExt;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn permissions_do_not_depend_on_the_umask() {
    for way in WAYS {
        let dir = Dir::new();
        in_child(|| {
            for umask in [0o777, 0, 0o022] {
                // SAFETY: integer arguments only, in a process that ends with this.
                unsafe { libc::umask(umask) };
                for asked in [0o600, 0o666, 0o640, 0o777, 0] {
                    let path = dir.path(&format!("{umask:o}-{asked:o}"));
                    same!(make(&path, LEN, asked, way).map(|(_, how)| how), Ok(Opened::Created));
                    same!(mode(&path), asked);
                }
            }
            // The set-user-ID, set-group-ID and sticky bits are dropped.
            same!(
                make(&dir.path("more"), LEN, 0o7600, way).map(|(_, how)| how),
                Ok(Opened::Created)
            );
            same!(mode(&dir.path("more")), 0o600);
            Ok(())
        });
    }
}

#[test]
fn a_file_has_no_name_before_it_is_complete() {
    for way in WAYS {
        let dir = Dir::new();
        let path = dir.path("t");
        let fill = |region: &Region| {
            assert!(!path.exists());
            assert_eq!(dir.names().len(), usize::from(way == Way::Named));
            fill(region)
        };
        let made = file::open_or_create(&c(&path), LEN, owners(0o600), way, &inspect, &fill, None);
        let (region, how) = made.unwrap();
        assert!(how == Opened::Created && is_whole(&region));
        assert_eq!((dir.names(), region.len()), (Vec::from(["t".to_string()]), LEN));
        let bytes = fs::read(&path).unwrap();
        assert_eq!((bytes.len(), inspect(&bytes)), (LEN, Ok(LEN as u64)));
        assert_eq!(fs::metadata(&path).unwrap().nlink(), 1);
    }
}

#[test]
fn a_file_whose_fill_fails_is_removed() {
    for way in WAYS {
        let dir = Dir::new();
        let refuse = |_: &Region| Err(TableError::Versions);
        let made = file::open_or_create(
            &c(dir.path("t")),
            LEN,
            owners(0o600),
            way,
            &inspect,
            &refuse,
            None,
        );
        assert_eq!(made.err(), Some(TableError::Versions));
        assert_eq!(dir.names(), [""; 0]);
    }
}

#[test]
fn a_killed_maker_leaves_no_file() {
    let dir = Dir::new();
    let path = dir.path("t");
    let killed = Child::new(|| {
        let fill = |region: &Region| {
            fill(region)?;
            // SAFETY: integer arguments only; does not return.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
            Ok(())
        };
        let _ = file::open_or_create(
            &c(&path),
            LEN,
            owners(0o600),
            Way::Unnamed,
            &inspect,
            &fill,
            None,
        );
        Ok(())
    });
    assert_eq!(killed.wait(), -libc::SIGKILL);
    assert_eq!(dir.names(), [""; 0]);
    assert_eq!(make(&path, LEN, 0o600, Way::Unnamed).unwrap().1, Opened::Created);
}

#[test]
fn the_second_maker_opens_the_first_one_s_file() {
    for way in WAYS {
        let dir = Dir::new();
        let path = dir.path("t");
        let late = |region: &Region| {
            let (first, how) = make(&path, 2 * LEN, 0o600, Way::Unnamed)?;
            assert_eq!(how, Opened::Created);
            word(&first, 5).store(55, Ordering::Relaxed);
            fill(region)
        };
        let (region, how) =
            file::open_or_create(&c(&path), LEN, owners(0o644), way, &inspect, &late, None)
                .unwrap();
        assert_eq!((how, region.len()), (Opened::Attached, 2 * LEN));
        assert_eq!(word(&region, 5).load(Ordering::Relaxed), 55);
        assert_eq!((dir.names(), mode(&path)), (Vec::from(["t".to_string()]), 0o600));

        // The file that another process made first may be no table.
        let path = dir.path("u");
        let late = |region: &Region| {
            fs::write(&path, b"letters").unwrap();
            fill(region)
        };
        let made = file::open_or_create(&c(&path), LEN, owners(0o644), way, &inspect, &late, None);
        assert_eq!(made.err(), Some(TableError::NotATable));
        assert_eq!(fs::read(&path).unwrap(), b"letters");
        assert_eq!(dir.names(), ["t", "u"]);
    }
}

#[test]
fn eight_processes_make_one_file() {
    const PROCESSES: usize = 8;
    const ROUNDS: usize = 100;
    for way in WAYS {
        let dir = Dir::new();
        // Words for each round: the number of processes that have arrived, the number that have
        // made the file, then the inode that each process saw.
        let board = Region::shared((2 + PROCESSES) * ROUNDS * 8).unwrap();
        let children: Vec<_> = (0..PROCESSES)
            .map(|process| {
                let (board, dir) = (&board, &dir);
                Child::new(move || {
                    for round in 0..ROUNDS {
                        let path = dir.path(&round.to_string());
                        word(board, round).fetch_add(1, Ordering::SeqCst);
                        while word(board, round).load(Ordering::SeqCst) < PROCESSES as u64 {
                            std::hint::spin_loop();
                            std::thread::yield_now();
                        }
                        let (region, how) =
                            make(&path, LEN, 0o600, way).map_err(|error| error.to_string())?;
                        same!(is_whole(&region), true);
                        word(&region, 3).fetch_add(1, Ordering::SeqCst);
                        let inode = fs::metadata(&path).map_err(|error| error.to_string())?.ino();
                        word(board, (2 + process) * ROUNDS + round).store(inode, Ordering::SeqCst);
                        word(board, ROUNDS + round)
                            .fetch_add(u64::from(how == Opened::Created), Ordering::SeqCst);
                    }
                    Ok(())
                })
            })
            .collect();
        for child in children {
            assert_eq!(child.wait(), 0);
        }
        for round in 0..ROUNDS {
            let path = dir.path(&round.to_string());
            let inode = fs::metadata(&path).unwrap().ino();
            for process in 0..PROCESSES {
                assert_eq!(
                    word(&board, (2 + process) * ROUNDS + round).load(Ordering::SeqCst),
                    inode
                );
            }
            assert_eq!(
                word(&board, ROUNDS + round).load(Ordering::SeqCst),
                1,
                "made more than once, or never"
            );
            // All processes have written to the same memory.
            assert_eq!(word(&attach(&path).unwrap(), 3).load(Ordering::SeqCst), PROCESSES as u64);
        }
        assert_eq!(dir.names().len(), ROUNDS, "something else was left");
    }
}

/// The open descriptors of this process.
#[cfg(target_os = "linux")]
fn descriptors() -> Vec<c_int> {
    // SAFETY: integer arguments only; one that is not open is an error.
    (0..1024).filter(|&fd| unsafe { libc::fcntl(fd, libc::F_GETFD) } != -1).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn descriptors_are_close_on_exec_and_none_stays_open() {
    let dir = Dir::new();
    let path = dir.path("t");
    in_child(|| {
        let before = descriptors();
        let inherited = || {
            let new = descriptors().into_iter().filter(|fd| !before.contains(fd));
            // SAFETY: integer arguments only.
            let flags: Vec<_> = new.map(|fd| unsafe { libc::fcntl(fd, libc::F_GETFD) }).collect();
            assert!(!flags.is_empty());
            flags.iter().any(|flags| flags & libc::FD_CLOEXEC == 0)
        };
        for way in WAYS {
            let seen =
                |region: &Region| if inherited() { Err(TableError::Corrupt) } else { fill(region) };
            let made =
                file::open_or_create(&c(&path), LEN, owners(0o600), way, &inspect, &seen, None);
            same!(made.as_ref().map(|(_, how)| *how), Ok(Opened::Created));
            let made = made.map_err(|error| error.to_string())?.0;
            let opened = Region::open(&c(&path), owners(0), &|head| {
                if inherited() {
                    Ok(0)
                } else {
                    inspect(head)
                }
            });
            same!(opened.is_ok(), true);
            same!(made.exclusively(inherited), Ok(false));
            same!(
                Region::open(&c(&path), owners(0), &|_| Ok(1)).err(),
                Some(TableError::Truncated)
            );
            same!(random_u64().is_ok(), true);
            boot_id();
            same!(descriptors(), before);
            fs::remove_file(&path).map_err(|error| error.to_string())?;
        }
        Ok(())
    });
}

#[test]
fn a_length_that_no_file_can_have_is_refused() {
    let dir = Dir::new();
    for way in WAYS {
        assert_eq!(make(&dir.path("t"), usize::MAX, 0o600, way).err(), Some(TableError::Capacity));
        assert!(make(&dir.path("t"), isize::MAX as usize - 4096, 0o600, way).is_err());
        assert_eq!(dir.names(), [""; 0]);
    }
}
