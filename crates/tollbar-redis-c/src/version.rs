//! The version of the linked libtollbar-redis.

/// Returns the version of the linked libtollbar-redis, `major << 16 | minor << 8 | patch`. Compare
/// it with TOLLBAR_VERSION: both libraries have the same version.
#[no_mangle]
pub extern "C" fn tollbar_redis_version() -> u32 {
    tollbar_c::version::tollbar_version()
}

/// The ABI that tollbar_redis.h describes, as tollbar_abi_1 is that of tollbar.h. Always 1.
#[no_mangle]
pub static tollbar_redis_abi_1: u32 = 1;
