//! Views of a file see each other as long as they have it mapped, and a file in tmpfs has a name
//! that no copy has.

use super::*;
use core::cell::Cell;

/// What [`Others::exist`] says to a process that opens the file now.
fn others(path: &Path) -> Result<Option<bool>, TableError> {
    let seen = Cell::new(None);
    Region::enter(&c(path), owners(0), &inspect, &|_, others| {
        seen.set(others.exist());
        Ok(())
    })?;
    Ok(seen.get())
}

/// A view, as an in-flight table has one.
fn view(path: &Path) -> Region {
    let make =
        || Region::enter_or_create(&c(path), LEN, owners(0o600), &inspect, &fill, &|_, _| Ok(()));
    make().expect("a view").0
}

fn until(mut done: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !done() {
        assert!(start.elapsed().as_secs() < 60, "it never came");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// E1: the maker's view, another of the same process, a child's after its parent's, and a killed
/// process's.
#[cfg(target_os = "linux")]
#[test]
fn a_view_is_seen_until_its_last_mapping_ends() {
    for dir in [Dir::new(), Dir::in_memory()] {
        let path = dir.path("t");
        let maker = view(&path);
        assert_eq!(others(&path), Ok(Some(true)));
        drop(maker);
        assert_eq!(others(&path), Ok(Some(false)));
        let (first, second) = (view(&path), view(&path));
        drop(first);
        assert_eq!(others(&path), Ok(Some(true)));
        // The child closes all descriptors, as a daemon does.
        let child = Child::new(|| {
            for fd in 3..64 {
                // SAFETY: integer arguments only, in a process that uses none of these.
                unsafe { libc::close(fd) };
            }
            loop {
                // SAFETY: it only waits.
                unsafe { libc::pause() };
            }
        });
        drop(second);
        assert_eq!(others(&path), Ok(Some(true)), "the child has it mapped");
        // SAFETY: a child that has not been waited for.
        unsafe { libc::kill(child.0, libc::SIGKILL) };
        // Not reaped yet.
        until(|| others(&path) == Ok(Some(false)));
        assert_eq!(child.wait(), -libc::SIGKILL);
        // A view without an `Enter`, as a table's, is none of them.
        let _table = attach(&path).unwrap();
        assert_eq!(others(&path), Ok(Some(false)));
    }
}

/// overlayfs loses the lock with the descriptor, so a call there does not say that there are no
/// other views.
#[cfg(target_os = "linux")]
#[test]
fn a_filesystem_that_loses_locks_says_nothing() {
    let dir = Dir::in_memory();
    let child = Child::new(|| {
        for name in ["lower", "upper", "work", "merged"] {
            fs::create_dir(dir.path(name)).map_err(|error| error.to_string())?;
        }
        let at = |name: &str| c(dir.path(name));
        let options = format!(
            "lowerdir={0}/lower,upperdir={0}/upper,workdir={0}/work",
            dir.path("").to_str().unwrap().trim_end_matches('/')
        );
        let options = CString::new(options).unwrap();
        // SAFETY: 0-terminated texts, in a namespace that ends with this process.
        let mounted = unsafe {
            let private = libc::MS_REC | libc::MS_PRIVATE;
            libc::unshare(libc::CLONE_NEWNS) == 0
                && libc::mount(
                    c"none".as_ptr(),
                    c"/".as_ptr(),
                    core::ptr::null(),
                    private,
                    core::ptr::null(),
                ) == 0
                && libc::mount(
                    c"overlay".as_ptr(),
                    at("merged").as_ptr(),
                    c"overlay".as_ptr(),
                    0,
                    options.as_ptr().cast(),
                ) == 0
        };
        if !mounted {
            skipped("no overlayfs could be mounted: a test of in-flight files on it; to run it: run as root");
            return Ok(());
        }
        let path = dir.path("merged").join("t");
        same!(others(&path), Err(refused(Call::Open, libc::ENOENT)));
        let first = view(&path);
        same!(others(&path), Ok(None));
        drop(first);
        same!(others(&path), Ok(None));
        Ok(())
    });
    assert_eq!(child.wait(), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_in_tmpfs_has_a_name_that_no_copy_has() {
    let (dir, disk) = (Dir::in_memory(), Dir::new());
    let inode = |path: &Path| attach(path).unwrap().boot().inode;
    let path = dir.path("t");
    drop(view(&path));
    let name = inode(&path);
    assert_ne!(name, 0);
    drop(make(&path, LEN, 0o600, Way::Unnamed).unwrap());
    // It is the file's, whatever its path and permissions are.
    let moved = dir.path("moved");
    fs::rename(&path, &moved).unwrap();
    fs::set_permissions(&moved, std::os::unix::fs::PermissionsExt::from_mode(0o640)).unwrap();
    assert_eq!(Region::open(&c(&moved), owners(0o640), &inspect).unwrap().boot().inode, name);
    fs::set_permissions(&moved, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    fs::copy(&moved, &path).unwrap();
    fs::copy(&moved, disk.path("t")).unwrap();
    assert!(inode(&path) != name && inode(&path) != 0);
    // Not in tmpfs, unless the directory for temporary files is.
    assert_ne!(inode(&disk.path("t")), name);
    assert_eq!(Region::private(LEN).unwrap().boot().inode, 0);
}
