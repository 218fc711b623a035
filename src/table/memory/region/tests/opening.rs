//! Opening existing files: which are refused, and that a refused file stays unchanged.

use super::*;
use std::os::unix::fs::{symlink, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;

/// The results of `open` and `open_or_create` for an existing file.
fn answers(path: &Path) -> [Option<TableError>; 2] {
    [attach(path).err(), make(path, LEN, 0o600, Way::Unnamed).err()]
}

#[test]
fn a_file_that_is_no_table_is_refused_and_stays_unchanged() {
    let dir = Dir::new();
    let path = dir.path("t");
    make(&path, LEN, 0o600, Way::Unnamed).unwrap();
    let table = fs::read(&path).unwrap();
    let mut longer = table.clone();
    longer.resize(LEN + 4096, 0);

    let cases: [(&[u8], TableError); 7] = [
        (b"", TableError::NotATable),
        (b"x", TableError::NotATable),
        (&[0; LEN], TableError::NotATable),
        (&table[..15], TableError::NotATable),
        (&table[..16], TableError::Truncated),
        (&table[..LEN - 1], TableError::Truncated),
        (&longer, TableError::Truncated),
    ];
    for (bytes, error) in cases {
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let before = fs::metadata(&path).unwrap();
        assert_eq!(answers(&path), [Some(error); 2], "{} bytes", bytes.len());
        let after = fs::metadata(&path).unwrap();
        assert!(fs::read(&path).unwrap() == bytes);
        assert_eq!((before.ino(), before.mode()), (after.ino(), after.mode()));
        assert_eq!((before.mtime(), before.mtime_nsec()), (after.mtime(), after.mtime_nsec()));
    }
    fs::write(&path, &table).unwrap();
    assert_eq!(answers(&path), [None; 2]);
    assert_eq!(dir.names(), ["t"]);
}

#[test]
fn inspect_gets_the_head_and_its_error_is_returned() {
    let dir = Dir::new();
    for (name, len) in [("long", LEN), ("head", HEAD), ("short", HEAD - 64)] {
        let path = dir.path(name);
        make(&path, len, 0o600, Way::Unnamed).unwrap();
        let bytes = fs::read(&path).unwrap();
        let refused = Region::open(&c(&path), owners(0), &|head: &[u8]| {
            assert!(head == &bytes[..len.min(HEAD)]);
            Err(TableError::OtherCapacity)
        });
        assert_eq!(refused.err(), Some(TableError::OtherCapacity));
    }
    // An empty file cannot be mapped, which is an error.
    fs::write(dir.path("empty"), b"").unwrap();
    let empty = Region::open(&c(dir.path("empty")), owners(0), &|_| Ok(0));
    assert_eq!(empty.err(), Some(refused(Call::Map, libc::EINVAL)));
}

#[test]
fn only_regular_files_without_symbolic_links_are_opened() {
    let dir = Dir::new();
    let outside = Dir::new();
    make(&outside.path("table"), LEN, 0o600, Way::Unnamed).unwrap();
    fs::create_dir(dir.path("directory")).unwrap();
    symlink(outside.path("table"), dir.path("link")).unwrap();
    symlink(outside.path("none"), dir.path("dangling")).unwrap();
    symlink(dir.path("loop"), dir.path("loop")).unwrap();
    let _socket = UnixListener::bind(dir.path("socket")).unwrap();
    // SAFETY: the path is 0-terminated.
    assert_eq!(unsafe { libc::mkfifo(c(dir.path("fifo")).as_ptr(), 0o600) }, 0);

    let before = dir.names();
    // In a child, which the alarm kills if an open waits.
    in_child(|| {
        for name in ["directory", "link", "dangling", "loop", "socket", "fifo"] {
            let path = dir.path(name);
            same!((name, answers(&path)), (name, [Some(TableError::NotATable); 2]));
        }
        same!(answers(Path::new("/dev/null")), [Some(TableError::NotATable); 2]);
        same!(answers(&dir.path(".")), [Some(TableError::NotATable); 2]);
        same!(answers(&dir.path("..")), [Some(TableError::NotATable); 2]);
        Ok(())
    });
    assert_eq!(dir.names(), before);
    assert_eq!(outside.names(), ["table"]);

    // Symbolic links to a directory of the path are the administrator's, and are followed.
    symlink(&outside.0, dir.path("way")).unwrap();
    assert!(attach(&dir.path("way").join("table")).is_ok());
}

#[test]
fn paths_of_missing_files_and_bad_paths_are_errors() {
    let dir = Dir::new();
    let none = Some(refused(Call::Open, libc::ENOENT));
    assert_eq!(attach(&dir.path("t")).err(), none);
    assert_eq!(dir.names(), [""; 0]);
    for path in [dir.path("no/t"), PathBuf::from(""), dir.path("t/"), PathBuf::from("/")] {
        assert_eq!(answers(&path), [none; 2], "{path:?}");
    }
    fs::write(dir.path("file"), b"x").unwrap();
    assert_eq!(answers(&dir.path("file/t")), [Some(refused(Call::Open, libc::ENOTDIR)); 2]);
    let long = Some(refused(Call::Open, libc::ENAMETOOLONG));
    assert_eq!(answers(&dir.path(&"x".repeat(256))), [long; 2]);
    for slashes in [4000, 4095, 4096, 5000] {
        let path = format!("{}t", "/".repeat(slashes));
        let expected = if slashes < 4096 { none } else { long };
        assert_eq!(attach(Path::new(&path)).err(), expected, "{slashes}");
    }
}

#[test]
fn files_without_permission_are_errors() {
    let dir = Dir::new();
    let deep = dir.path("closed").join("t");
    fs::create_dir(dir.path("closed")).unwrap();
    make(&deep, LEN, 0o666, Way::Unnamed).unwrap();
    make(&dir.path("none"), LEN, 0, Way::Unnamed).unwrap();
    make(&dir.path("readable"), LEN, 0o444, Way::Unnamed).unwrap();
    make(&dir.path("all"), LEN, 0o666, Way::Unnamed).unwrap();
    fs::set_permissions(dir.path("closed"), fs::Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(&dir.0, fs::Permissions::from_mode(0o555)).unwrap();
    in_child(|| {
        become_nobody();
        let denied = Some(refused(Call::Open, libc::EACCES));
        for path in [dir.path("none"), dir.path("readable"), deep, dir.path("new")] {
            let [open, make] = answers(&path);
            let expected = if path.ends_with("new") {
                Some(refused(Call::Open, libc::ENOENT))
            } else {
                denied
            };
            same!((&path, open), (&path, expected));
            same!((&path, make), (&path, denied));
        }
        same!(attach(&dir.path("all")).err(), Some(TableError::Owner));
        same!(make(&dir.path("all"), LEN, 0o666, Way::Unnamed).err(), None);
        Ok(())
    });
    fs::set_permissions(dir.path("closed"), fs::Permissions::from_mode(0o700)).unwrap();
    fs::set_permissions(&dir.0, fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(dir.names(), ["all", "closed", "none", "readable"]);
}

#[test]
fn a_directory_may_be_writable_without_being_readable() {
    let dir = Dir::new();
    let below = dir.path("below");
    fs::create_dir(&below).unwrap();
    for (path, mode) in [(&below, 0o1333), (&dir.0, 0o711)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    in_child(|| {
        become_nobody();
        for (name, way) in [("t", Way::Unnamed), ("u", Way::Named)] {
            let made = make(&below.join(name), LEN, 0o600, way);
            same!(made.as_ref().map(|(_, how)| *how), Ok(Opened::Created));
            same!(made.map(|(region, _)| region.exclusively(|| 1)), Ok(Ok(1)));
            same!(answers(&below.join(name)), [None; 2]);
        }
        Ok(())
    });
    fs::set_permissions(&below, fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn an_existing_table_is_shared_unchanged() {
    let dir = Dir::new();
    let path = dir.path("t");
    let (first, _) = make(&path, LEN, 0o600, Way::Unnamed).unwrap();
    word(&first, 900).store(77, Ordering::Relaxed);
    let (second, how) = make(&path, 9 * LEN, 0o644, Way::Unnamed).unwrap();
    assert_eq!((how, second.len()), (Opened::Attached, LEN));
    assert_ne!(first.base(), second.base());
    assert_eq!(word(&second, 900).load(Ordering::Relaxed), 77);
    in_child(|| {
        let third = attach(&path).map_err(|error| error.to_string())?;
        same!(word(&third, 900).swap(78, Ordering::Relaxed), 77);
        Ok(())
    });
    assert_eq!(word(&first, 900).load(Ordering::Relaxed), 78);
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    // The memory outlives the name.
    fs::remove_file(&path).unwrap();
    assert_eq!((first.sync(), is_whole(&first)), (Ok(()), true));
}
