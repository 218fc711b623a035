//! Trust in files: a stranger may have put another file where a service looks for its table.

use super::*;
use std::os::unix::fs::{chown, MetadataExt, PermissionsExt};

const STRANGER: u32 = 65534;

fn anyone(path: &Path) -> Result<Region, TableError> {
    Region::open(&c(path), Access::new(0, Trust::Anyone), &inspect)
}

fn permit(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// `open` and `open_or_create` refuse the file and do not change it. [`Trust::Anyone`] opens it.
#[track_caller]
fn is_refused(path: &Path) {
    let seen = |path: &Path| {
        let status = fs::metadata(path).unwrap();
        (
            status.ino(),
            status.mode(),
            status.uid(),
            status.mtime_nsec(),
            status.blocks(),
            fs::read(path).unwrap(),
        )
    };
    let before = seen(path);
    assert_eq!(attach(path).err(), Some(TableError::Owner));
    assert_eq!(make(path, LEN, 0o600, Way::Unnamed).err(), Some(TableError::Owner));
    assert!(seen(path) == before);
    assert_eq!(anyone(path).err(), None);
}

#[test]
fn a_file_of_another_user_is_refused() {
    if !is_root() {
        return std::println!("needs root, to give a file away");
    }
    let dir = Dir::new();
    permit(&dir.0, 0o1777);
    let path = dir.path("t");
    make(&path, LEN, 0o600, Way::Unnamed).unwrap();
    assert_eq!(attach(&path).err(), None);
    chown(&path, Some(STRANGER), None).unwrap();
    is_refused(&path);

    // A user opens its own file, and a file of root that the mode lets it write.
    let owned = dir.path("owned");
    make(&owned, LEN, 0o666, Way::Unnamed).unwrap();
    permit(&owned, 0o660);
    chown(&owned, Some(0), Some(STRANGER)).unwrap();
    in_child(|| {
        become_nobody();
        same!(attach(&path).err(), None);
        same!(attach(&owned).err(), Some(TableError::Owner));
        same!(make(&owned, LEN, 0o660, Way::Unnamed).err(), None);
        Ok(())
    });
}

#[test]
fn a_file_that_others_may_write_is_refused_unless_the_mode_says_so() {
    let dir = Dir::new();
    let path = dir.path("t");
    make(&path, LEN, 0o600, Way::Unnamed).unwrap();
    for mode in [0o620, 0o602, 0o622, 0o660, 0o666] {
        permit(&path, mode);
        is_refused(&path);
        assert_eq!(make(&path, LEN, mode, Way::Unnamed).err(), None);
    }
    permit(&path, 0o660);
    assert_eq!(make(&path, LEN, 0o606, Way::Unnamed).err(), Some(TableError::Owner));
    for mode in [0o600, 0o640, 0o644] {
        permit(&path, mode);
        assert_eq!(attach(&path).err(), None);
    }
}

#[test]
fn a_directory_where_others_may_replace_the_file_is_refused() {
    let dir = Dir::new();
    let path = dir.path("t");
    make(&path, LEN, 0o600, Way::Unnamed).unwrap();
    permit(&dir.0, 0o777);
    is_refused(&path);
    assert_eq!(make(&dir.path("new"), LEN, 0o600, Way::Unnamed).err(), Some(TableError::Owner));
    permit(&dir.0, 0o1777);
    assert_eq!(attach(&path).err(), None);
    if is_root() {
        chown(&dir.0, Some(STRANGER), None).unwrap();
        is_refused(&path);
        permit(&dir.0, 0o755);
        is_refused(&path);
        assert_eq!(make(&dir.path("new"), LEN, 0o600, Way::Unnamed).err(), Some(TableError::Owner));
        chown(&dir.0, Some(0), None).unwrap();
    }
    permit(&dir.0, 0o755);
    assert_eq!(dir.names(), ["t"]);
}

#[test]
fn a_linked_file_in_a_directory_that_strangers_can_write_is_refused() {
    let dir = Dir::new();
    let path = dir.path("t");
    make(&path, LEN, 0o600, Way::Unnamed).unwrap();
    fs::hard_link(&path, dir.path("copy")).unwrap();
    // In a directory that only the service can write, the administrator has made the link.
    assert_eq!(attach(&path).err(), None);
    permit(&dir.0, 0o1777);
    is_refused(&path);
    fs::remove_file(dir.path("copy")).unwrap();
    assert_eq!(attach(&path).err(), None);
}

#[test]
fn sealed_memory_is_shared_by_its_descriptor_and_cannot_be_truncated() {
    let (region, fd) = Region::sealed(LEN).unwrap();
    fill(&region).unwrap();
    let status = |fd| {
        // SAFETY: a stat is numbers, of which all may be 0.
        let mut stat: libc::stat = unsafe { core::mem::zeroed() };
        // SAFETY: `stat` is writable during the call.
        assert_eq!(unsafe { libc::fstat(fd, &mut stat) }, 0);
        (stat.st_size, stat.st_blocks * 512)
    };
    let (size, blocks) = status(fd);
    assert_eq!(size, LEN as i64);
    assert!(blocks >= size, "all of it is there, so that no touch of it fails later");

    in_child(|| {
        become_nobody();
        // SAFETY: integer arguments only.
        unsafe {
            same!(libc::ftruncate(fd, 0), -1);
            same!(libc::ftruncate(fd, 2 * LEN as i64), -1);
            same!(libc::fcntl(fd, libc::F_ADD_SEALS, libc::F_SEAL_WRITE), -1);
        }
        let other = Region::of_descriptor(fd, &inspect).map_err(|error| error.to_string())?;
        same!(other.len(), LEN);
        word(&other, 900).store(7, Ordering::Relaxed);
        Ok(())
    });
    assert_eq!(word(&region, 900).load(Ordering::Relaxed), 7);

    // The descriptor is still open, and its position is still 0.
    assert!(is_whole(&Region::of_descriptor(fd, &inspect).unwrap()));
    assert!(is_whole(&Region::of_descriptor(fd, &inspect).unwrap()));
    // SAFETY: the descriptor is from `sealed`, and only this line closes it.
    unsafe { libc::close(fd) };
    assert!(is_whole(&region));

    let dir = Dir::new();
    make(&dir.path("t"), LEN, 0o600, Way::Unnamed).unwrap();
    let file = fs::File::options().read(true).write(true).open(dir.path("t")).unwrap();
    let raw = std::os::fd::AsRawFd::as_raw_fd(&file);
    assert_eq!(Region::of_descriptor(raw, &inspect).err(), Some(TableError::Unsealed));
    assert_eq!(Region::of_descriptor(-1, &inspect).err(), Some(refused(Call::Read, libc::EBADF)));
}
