//! Memory without a file, random numbers, the boot id, and a file's status.

use super::super::system::{parse_uuid, Fd, PathText};
use super::*;

#[cfg(target_os = "linux")]
#[test]
fn mapped_memory_is_untouched_page_aligned_and_unmapped_by_the_drop() {
    // In a child with one thread: no other thread may map memory at the address after it is free.
    in_child(|| {
        for make in [Region::private, Region::shared] {
            let len = 64 << 20;
            let region = make(len).map_err(|error| error.to_string())?;
            let base = region.base().as_ptr();
            same!(base as usize % PAGE, 0);
            same!(region.len(), len);
            same!(resident(base, len), Some(0));
            same!(word(&region, 12345).load(Ordering::Relaxed), 0);
            word(&region, len / 8 - 1).store(1, Ordering::Relaxed);
            drop(region);
            same!(resident(base, len), None);
        }
        Ok(())
    });
}

#[test]
fn private_memory_is_copied_by_fork_and_shared_memory_is_not() {
    let (private, shared) = (Region::private(LEN).unwrap(), Region::shared(LEN).unwrap());
    word(&private, 7).store(1, Ordering::Relaxed);
    in_child(|| {
        same!(word(&private, 7).swap(2, Ordering::Relaxed), 1);
        same!(word(&shared, 7).swap(2, Ordering::Relaxed), 0);
        Ok(())
    });
    assert_eq!(word(&private, 7).load(Ordering::Relaxed), 1);
    assert_eq!(word(&shared, 7).load(Ordering::Relaxed), 2);
    // Without a file, `sync` and `exclusively` succeed at once.
    for region in [private, shared] {
        assert_eq!(region.sync(), Ok(()));
        assert_eq!(region.exclusively(|| 3), Ok(3));
    }
}

#[test]
fn a_length_that_cannot_be_mapped_is_refused() {
    for make in [Region::private, Region::shared] {
        assert_eq!(make(usize::MAX).err(), Some(TableError::Capacity));
        assert_eq!(make(isize::MAX as usize + 1).err(), Some(TableError::Capacity));
        assert_eq!(make(isize::MAX as usize - PAGE).err(), Some(TableError::NoMemory));
        assert_eq!(make(0).err(), Some(refused(Call::Map, libc::EINVAL)));
    }
}

#[test]
fn borrowed_memory_must_be_aligned_and_is_not_unmapped() {
    let owner = Region::private(LEN).unwrap();
    for offset in 0..=192 {
        // SAFETY: within the owner's memory.
        let memory = unsafe { NonNull::new_unchecked(owner.base().as_ptr().add(offset)) };
        // SAFETY: as above, and the owner outlives the loop.
        let region = unsafe { Region::borrowed(memory, LEN - offset) };
        if offset % 64 != 0 {
            assert_eq!(region.err(), Some(TableError::Misaligned), "{offset}");
            continue;
        }
        let region = region.unwrap();
        assert_eq!((region.base(), region.len()), (memory, LEN - offset));
        assert_eq!((region.sync(), region.exclusively(|| ())), (Ok(()), Ok(())));
        drop(region);
        word(&owner, offset / 8).store(1, Ordering::Relaxed);
    }
    // SAFETY: the call refuses the length before it touches the memory.
    let region = unsafe { Region::borrowed(owner.base(), usize::MAX) };
    assert_eq!(region.err(), Some(TableError::Capacity));
}

/// The mappings in `range` for which the system has taken the advice.
#[cfg(target_os = "linux")]
fn advised(range: std::ops::Range<usize>) -> Vec<(usize, usize)> {
    let maps = fs::read_to_string("/proc/self/smaps").unwrap();
    let mut mapping = (0, 0);
    let mut found = Vec::new();
    for line in maps.lines() {
        let first = line.split(' ').next().unwrap();
        if let Some((start, end)) = first.split_once('-') {
            let number = |text| usize::from_str_radix(text, 16).unwrap();
            mapping = (number(start), number(end));
        } else if first == "VmFlags:"
            && line.split(' ').any(|flag| flag == "hg")
            && range.contains(&mapping.0)
        {
            found.push(mapping);
        }
    }
    found
}

#[cfg(target_os = "linux")]
#[test]
fn huge_pages_are_advised_within_the_region_only() {
    let owner = Region::private(64 * PAGE).unwrap();
    let base = owner.base().as_ptr() as usize;
    let all = base..base + 64 * PAGE;
    // SAFETY: within the owner's memory, which outlives it.
    let region = unsafe {
        Region::borrowed(NonNull::new(owner.base().as_ptr().add(64)).unwrap(), 63 * PAGE).unwrap()
    };
    for beyond in [63 * PAGE, 63 * PAGE + 1, usize::MAX] {
        assert!(!region.advise_huge(beyond));
    }
    assert!(!region.advise_huge(62 * PAGE), "no whole page");
    assert!(advised(all.clone()).is_empty());
    if !region.advise_huge(PAGE) {
        assert!(
            !Path::new("/sys/kernel/mm/transparent_hugepage").exists(),
            "the kernel has huge pages"
        );
        return skipped(
            "huge_pages_are_advised_within_the_region_only: a kernel without huge pages",
        );
    }
    // From 64 bytes after page 1 to 64 bytes after page 63: pages 2 to 62.
    assert_eq!(advised(all), Vec::from([(base + 2 * PAGE, base + 63 * PAGE)]));
}

#[test]
fn a_region_says_what_it_is() {
    let text = format!("{:?}", Region::private(PAGE).unwrap());
    assert!(text.contains("len: 4096") && text.contains("anonymous"), "{text}");
}

#[test]
fn random_numbers_differ() {
    let mut numbers: Vec<_> = (0..64).map(|_| random_u64().unwrap()).collect();
    numbers.sort();
    numbers.dedup();
    assert_eq!(numbers.len(), 64);
    // Each bit is 1 in some number and 0 in another.
    assert_eq!(numbers.iter().fold(0, |all, n| all | n), u64::MAX);
    assert_eq!(numbers.iter().fold(u64::MAX, |all, n| all & n), 0);
}

#[test]
fn the_boot_id_is_the_kernel_s() {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
    let expected =
        text.map(|text| u128::from_str_radix(&text.trim().replace('-', ""), 16).unwrap());
    assert_eq!(boot_id().map(|[high, low]| u128::from(high) << 64 | u128::from(low)), expected);
}

#[test]
fn only_a_uuid_is_a_boot_id() {
    let good = b"01234567-89ab-cdef-FEDC-ba9876543210";
    let value = Some([0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210]);
    assert_eq!(parse_uuid(good), value);
    assert_eq!(parse_uuid(b"01234567-89ab-cdef-FEDC-ba9876543210\n"), value);
    for i in 0..good.len() {
        let mut bad = *good;
        bad[i] = if bad[i] == b'-' { b'0' } else { b'-' };
        assert_eq!(parse_uuid(&bad), None, "{i}");
        bad[i] = b'g';
        assert_eq!(parse_uuid(&bad), None, "{i}");
        assert_eq!(parse_uuid(&good[..i]), None, "{i}");
    }
    assert_eq!(parse_uuid(b"01234567-89ab-cdef-FEDC-ba98765432100"), None);
    assert_eq!(parse_uuid(b"01234567-89ab-cdef-FEDC-ba9876543210\n\n"), None);
}

#[test]
fn a_file_s_status_equals_that_of_std() {
    use std::os::unix::fs::MetadataExt;
    let dir = Dir::new();
    fs::write(dir.path("file"), std::vec![1; 100_001]).unwrap();
    for path in [dir.path("file"), dir.0.clone(), "/dev/null".into(), "/proc/self/maps".into()] {
        let status = Fd::open(libc::AT_FDCWD, &c(&path), libc::O_RDONLY).unwrap().status().unwrap();
        let expected = fs::metadata(&path).unwrap();
        assert_eq!((status.regular, status.len), (expected.is_file(), expected.len()), "{path:?}");
        assert_eq!(status.allocated, expected.blocks() * 512);
        assert_eq!(status.identity, (expected.dev(), expected.ino()));
    }
}

#[test]
fn short_texts() {
    for number in
        [0, 1, 9, 10, 11, 99, 100, 101_010, 999_999_999, 1_000_000_000, 1_000_000_001, u32::MAX]
    {
        let mut text = PathText::new(b"n");
        text.push_decimal(number);
        assert_eq!(text.as_c_str().to_str().unwrap(), format!("n{number}"));
    }
    for number in [0, 1, 0x0123_4567_89ab_cdef, u64::MAX] {
        let mut text = PathText::new(b"");
        text.push_hex(number);
        assert_eq!(text.as_c_str().to_str().unwrap(), format!("{number:016x}"));
    }
    // Bytes that do not fit are dropped; the 0 is still there.
    assert_eq!(PathText::new(&[b'x'; 500]).as_c_str().to_bytes(), [b'x'; 95]);
}
