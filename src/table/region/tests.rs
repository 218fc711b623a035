//! Of the memory of tables.

use super::*;

#[test]
fn smoke() {
    let path = std::env::temp_dir().join(std::format!("h2-smoke-{}", std::process::id()));
    let c = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    let inspect = |head: &[u8]| if head.get(..3) == Some(b"abc") { Ok(10_000) } else { Err(TableError::NotATable) };
    let fill = |r: &Region| {
        // SAFETY: the region is longer.
        unsafe { r.base().as_ptr().copy_from(b"abc".as_ptr(), 3) };
        Ok(())
    };
    let (a, how) = Region::open_or_create(&c, 10_000, 0o640, inspect, fill).unwrap();
    assert_eq!(how, Opened::Created);
    let (b, how) = Region::open_or_create(&c, 20_000, 0o640, inspect, fill).unwrap();
    assert_eq!(how, Opened::Attached);
    assert_eq!((a.len(), b.len()), (10_000, 10_000));
    assert_eq!(a.exclusively(|| 5), Ok(5));
    assert_eq!(b.sync(), Ok(()));
    std::fs::remove_file(path).unwrap();
    assert_eq!(a.exclusively(|| 5), Err(TableError::System(Call::Lock, libc::ENOENT)));
}
