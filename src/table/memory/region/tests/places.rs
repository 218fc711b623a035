//! Space on the disk: all of it is reserved when a file is made or opened, or the call fails.

use super::super::system::Fd;
use super::*;
use std::os::unix::fs::MetadataExt;

const MIB: usize = 1 << 20;

fn allocated(path: &Path) -> u64 {
    fs::metadata(path).unwrap().blocks() * 512
}

/// Whether the filesystem of `dir` can reserve space.
fn can_reserve(dir: &Dir) -> bool {
    let path = dir.path("probe");
    fs::write(&path, b"x").unwrap();
    let reserved = Fd::open(libc::AT_FDCWD, &c(&path), libc::O_RDWR).unwrap().reserve(MIB as u64);
    fs::remove_file(&path).unwrap();
    reserved == Ok(true)
}

/// A file with the content of a table, but without the blocks that hold only zeroes.
fn sparse(path: &Path, len: usize) {
    let mut head = [0; 16];
    head[..8].copy_from_slice(&MAGIC.to_ne_bytes());
    head[8..].copy_from_slice(&(len as u64).to_ne_bytes());
    fs::write(path, head).unwrap();
    fs::File::options().write(true).open(path).unwrap().set_len(len as u64).unwrap();
}

#[test]
fn all_space_is_reserved_when_a_file_is_made() {
    let dir = Dir::new();
    for way in WAYS {
        // More than one part of `Fd::reserve`, and not a whole number of parts.
        let len = 40 * MIB + 64;
        let path = dir.path("t");
        let untouched = |region: &Region| {
            word(region, 0).store(MAGIC, Ordering::Relaxed);
            word(region, 1).store(region.len() as u64, Ordering::Relaxed);
            Ok(())
        };
        file::open_or_create(&c(&path), len, owners(0o600), way, &inspect, &untouched, None)
            .unwrap();
        assert!(allocated(&path) >= len as u64);
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_sparse_copy_gets_its_blocks_when_it_is_opened() {
    let dir = Dir::new();
    if !can_reserve(&dir) {
        return skipped(
            "a_sparse_copy_gets_its_blocks_when_it_is_opened: the file system of the temporary directory cannot reserve space",
        );
    }
    let (path, len) = (dir.path("t"), 40 * MIB + 64);
    sparse(&path, len);
    fs::File::options().write(true).open(&path).unwrap().set_len(len as u64).unwrap();
    let before = fs::read(&path).unwrap();
    assert!(allocated(&path) < len as u64);
    attach(&path).unwrap();
    assert!(allocated(&path) >= len as u64);
    assert!(fs::read(&path).unwrap() == before);
}

#[test]
fn write_zeroes_overwrites_exactly_the_length() {
    let dir = Dir::new();
    for len in [1, 4095, 4096, 4097, 100_000] {
        let path = dir.path(&len.to_string());
        fs::write(&path, std::vec![0xff_u8; 100_001]).unwrap();
        let fd = Fd::open(libc::AT_FDCWD, &c(&path), libc::O_RDWR).unwrap();
        assert_eq!(fd.write_zeroes(len as u64), Ok(()));
        let bytes = fs::read(&path).unwrap();
        assert_eq!(bytes.iter().take_while(|&&byte| byte == 0).count(), len);
        assert_eq!(bytes.len(), 100_001);
    }
}

/// A limit on the size of files stands for a disk that is too small, and needs no privileges. It
/// fails at another step and with another errno than a full disk, which
/// [`a_full_disk_is_an_error_at_once`] tests.
#[test]
fn a_file_above_the_size_limit_is_an_error() {
    for way in WAYS {
        let dir = Dir::new();
        in_child(|| {
            let limit = libc::rlimit { rlim_cur: MIB as _, rlim_max: MIB as _ };
            // SAFETY: the limit is valid. E9: the signal of a write beyond it would kill the child,
            // so there is no such write.
            unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &limit) };
            same!(
                make(&dir.path("t"), 2 * MIB, 0o600, way).err(),
                Some(refused(Call::Allocate, libc::EFBIG))
            );
            same!(dir.names(), Vec::<String>::new());
            same!(system::sealed(2 * MIB as u64).err(), Some(refused(Call::Allocate, libc::EFBIG)));
            same!(make(&dir.path("t"), MIB, 0o600, way).map(|(_, how)| how), Ok(Opened::Created));
            Ok(())
        });
    }
}

/// For a child: mounts a filesystem that only the child sees and that ends with it. `false` if the
/// system does not let it.
#[cfg(target_os = "linux")]
fn mount(kind: &str, options: &str, on: &Path) -> bool {
    let (kind, options, on) = (c(kind), c(options), c(on));
    // SAFETY: the calls take no argument.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    let flags = if user == 0 { libc::CLONE_NEWNS } else { libc::CLONE_NEWNS | libc::CLONE_NEWUSER };
    // SAFETY: integer arguments only; the child has one thread.
    if unsafe { libc::unshare(flags) } != 0 {
        return false;
    }
    if user != 0 {
        let _ = fs::write("/proc/self/setgroups", "deny");
        let _ = fs::write("/proc/self/uid_map", format!("0 {user} 1"));
        let _ = fs::write("/proc/self/gid_map", format!("0 {group} 1"));
    }
    let null = std::ptr::null();
    // SAFETY: all texts are 0-terminated. The first call makes the second's mount private to the
    // child.
    unsafe {
        libc::mount(null, c"/".as_ptr(), null, libc::MS_REC | libc::MS_PRIVATE, null.cast()) == 0
            && libc::mount(kind.as_ptr(), on.as_ptr(), kind.as_ptr(), 0, options.as_ptr().cast())
                == 0
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_at_once() {
    let dir = Dir::new();
    in_child(|| {
        if !mount("tmpfs", "size=20m", &dir.0) {
            return Ok(());
        }
        let full = Some(refused(Call::Allocate, libc::ENOSPC));
        for way in WAYS {
            same!(make(&dir.path("t"), 40 * MIB, 0o600, way).err(), full);
            same!(dir.names(), Vec::<String>::new());
        }
        // A sparse file that needs more blocks than the disk has.
        sparse(&dir.path("t"), 40 * MIB);
        let before = allocated(&dir.path("t"));
        same!(attach(&dir.path("t")).err(), full);
        same!(allocated(&dir.path("t")), before);
        fs::remove_file(dir.path("t")).map_err(|error| error.to_string())?;

        // A file that has all its blocks can be opened on a full disk, and every byte of it can be
        // written.
        let (region, _) = make(&dir.path("t"), MIB / 2, 0o600, Way::Unnamed)
            .map_err(|error| error.to_string())?;
        while fs::write(dir.path(&dir.names().len().to_string()), [1; 4096]).is_ok() {}
        let again = attach(&dir.path("t")).map_err(|error| error.to_string())?;
        // SAFETY: the region's bytes, which only this thread uses.
        unsafe { again.base().as_ptr().write_bytes(7, again.len()) };
        same!(word(&region, MIB / 16 - 1).load(Ordering::Relaxed), 0x0707_0707_0707_0707);
        Ok(())
    });
}

#[cfg(target_os = "linux")]
#[test]
fn a_filesystem_that_cannot_reserve_gets_zeroes_written() {
    let dir = Dir::new();
    in_child(|| {
        if !mount("ramfs", "", &dir.0) {
            return Ok(());
        }
        same!(can_reserve(&dir), false);
        for way in WAYS {
            // The call has written zeroes, so the pages exist before `fill` uses them.
            let path = dir.path("t");
            let here = |region: &Region| {
                let pages = resident(region.base().as_ptr(), region.len());
                if pages == Some(LEN.div_ceil(PAGE)) {
                    fill(region)
                } else {
                    Err(TableError::Room)
                }
            };
            let made =
                file::open_or_create(&c(&path), LEN, owners(0o600), way, &inspect, &here, None);
            same!(made.map(|(_, how)| how), Ok(Opened::Created));
            same!(attach(&path).map(|region| is_whole(&region)), Ok(true));
            fs::remove_file(&path).map_err(|error| error.to_string())?;
        }
        Ok(())
    });
}

#[cfg(target_os = "linux")]
#[test]
fn without_proc_a_temporary_name_is_used() {
    let dir = Dir::new();
    in_child(|| {
        // The mount hides /proc.
        if !mount("tmpfs", "", Path::new("/proc")) {
            return Ok(());
        }
        let path = dir.path("t");
        same!(make(&path, LEN, 0o600, Way::Unnamed).map(|(_, how)| how), Ok(Opened::Created));
        same!(dir.names(), ["t"]);
        same!(attach(&path).map(|region| region.exclusively(|| 1)), Ok(Ok(1)));
        same!(boot_id(), None);
        Ok(())
    });
}
