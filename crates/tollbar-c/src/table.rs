//! Tables: keyed limits in memory that processes share. Their decisions are in [`super::check`].

use super::boundary::*;
use super::policy::tollbar_policy_spec;
use super::status::*;
use super::table_options::{any_table, new_table, tollbar_table_options};
use core::ffi::{c_char, c_int, c_void, CStr};
use core::ptr::NonNull;
use tollbar::internal::set_errno;
use tollbar::policy::Policy;
use tollbar::table::{Call, Options, RequestError, Table, TableError};

/// This process's view of a table. Any number of threads may use it at once, on both sides of a
/// fork, in all calls but tollbar_table_close and tollbar_table_repair.
pub struct tollbar_table {
    pub(super) table: Table,
}

/// Writes to `*bytes` the size of a table with these options and policies. A table's size never
/// changes.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_bytes(
    policies: *const *const tollbar_policy_spec,
    count: usize,
    options: *const tollbar_table_options,
    bytes: *mut u64,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (out, new) = unsafe { (place(bytes)?, new_table(options, policies, count)?) };
        out.write(Table::bytes_for(&new.options, &new.policies).map_err(table_code)?);
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Makes a table in this process's own memory. `policies` points to `count` specs, 1 to 128. A
/// request names a policy by its index. The caller frees `*out` with tollbar_table_close.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_new(
    policies: *const *const tollbar_policy_spec,
    count: usize,
    options: *const tollbar_table_options,
    out: *mut *mut tollbar_table,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe { make(options, policies, count, out, &Table::private) }
}

/// tollbar_table_new in memory that this process shares with the processes that it forks later.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_new_shared(
    policies: *const *const tollbar_policy_spec,
    count: usize,
    options: *const tollbar_table_options,
    out: *mut *mut tollbar_table,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe { make(options, policies, count, out, &Table::shared) }
}

/// Opens the table in the file at `path`, or makes the file if there is none. If several processes
/// call at once, one makes the file and the others open it. With `count` 0 and `options` NULL or of
/// capacity 0, the call makes no file and opens any table.
///
/// In /run and /dev/shm a table lasts as long as the machine runs. On a disk it survives a restart
/// of the machine, and its times go on by the wall clock. If the file has another table, the call
/// returns an error that says why, and the file stays as it is. The call reserves all of the file's
/// space at once.
///
/// Give the file a directory of the service's own, such as /run/SERVICE. The call returns
/// TOLLBAR_E_OWNER if the file belongs to another user than the caller or root, if a user may write
/// it whom `mode` does not let write, or if another user may replace it, unless the flags have
/// TOLLBAR_TABLE_TRUST_ANYONE. To share a table with processes that you do not trust, use
/// tollbar_table_new_sealed.
///
/// Without /proc/sys (systemd's ProcSubset=pid) the file must be in tmpfs, as /dev/shm and /run
/// are, or the clock must be TOLLBAR_CLOCK_WALL: otherwise TOLLBAR_E_BOOT_ID. Without all of /proc,
/// before Linux 6.11, the clock must be TOLLBAR_CLOCK_WALL: otherwise TOLLBAR_E_TIME_NAMESPACE,
/// from tollbar_table_attach and tollbar_table_open_fd, too.
///
/// # Safety
/// Pointers are NULL or as said; `path` is NUL-terminated.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_open(
    path: *const c_char,
    policies: *const *const tollbar_policy_spec,
    count: usize,
    options: *const tollbar_table_options,
    out: *mut *mut tollbar_table,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let out = unsafe { place(out) }?;
        if path.is_null() {
            return Err(TOLLBAR_E_NULL);
        }
        // SAFETY: not null, and NUL-terminated by the caller's promise.
        let path = unsafe { CStr::from_ptr(path) };
        // SAFETY: by the caller's promise.
        let table = if let (0, Some(any)) = (count, unsafe { any_table(options) }?) {
            let table = Table::open_at(path, any.mode, any.trust)
                .and_then(|table| table.with_hot_keys(any.hot_keys));
            table.map(|table| table.with_waiters(any.waiters))
        } else {
            // SAFETY: by the caller's promise.
            let new = unsafe { new_table(options, policies, count) }?;
            Table::file_at(path, &new.options, &new.policies)
        };
        out.write(boxed(tollbar_table { table: table.map_err(table_code)? })?);
        Ok(TOLLBAR_ALLOWED)
    })
}

/// tollbar_table_new in memory with a descriptor (Linux: a memfd). A process that gets the
/// descriptor `*fd`, by inheritance or through a socket, opens the table with
/// tollbar_table_open_fd. An exec closes the descriptor. The caller may close it at any time,
/// because the table does not need it.
///
/// The memory is sealed: no process can truncate it and so end the others by SIGBUS, as the owner
/// of a file can. A process that has the descriptor can still write to the memory, and so grant
/// permits.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_new_sealed(
    policies: *const *const tollbar_policy_spec,
    count: usize,
    options: *const tollbar_table_options,
    fd: *mut c_int,
    out: *mut *mut tollbar_table,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (out, fd, new) =
            unsafe { (place(out)?, place(fd)?, new_table(options, policies, count)?) };
        let (table, descriptor) = Table::sealed(&new.options, &new.policies).map_err(table_code)?;
        match boxed(tollbar_table { table }) {
            Ok(table) => out.write(table),
            Err(error) => {
                // SAFETY: nobody else has it yet.
                unsafe { libc::close(descriptor) };
                return Err(error);
            }
        };
        fd.write(descriptor);
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Opens the table behind a descriptor of tollbar_table_new_sealed, of this process or another. The
/// descriptor stays the caller's, who may close it afterwards. Returns TOLLBAR_E_UNSEALED for a
/// file that a process could truncate.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_open_fd(fd: c_int, out: *mut *mut tollbar_table) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let out = unsafe { place(out) }?;
        let table = Table::open_descriptor(fd).map_err(table_code)?;
        out.write(boxed(tollbar_table { table })?);
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Makes a table in the caller's memory, which other processes may share. The table takes as many
/// of the `size` bytes as tollbar_table_bytes says, and overwrites them. `memory` must be aligned
/// to 64 bytes and must outlive `*out`.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_init_in(
    memory: *mut c_void,
    size: usize,
    policies: *const *const tollbar_policy_spec,
    count: usize,
    options: *const tollbar_table_options,
    out: *mut *mut tollbar_table,
) -> i32 {
    let in_memory = |options: &Options, policies: &[Policy]| {
        let memory = NonNull::new(memory.cast::<u8>()).ok_or(TableError::Room)?;
        // SAFETY: by the caller's promise.
        unsafe { Table::init_in(memory, size, options, policies) }
    };
    if memory.is_null() {
        return TOLLBAR_E_NULL;
    }
    // SAFETY: by the caller's promise.
    unsafe { make(options, policies, count, out, &in_memory) }
}

/// Opens the table that tollbar_table_init_in has made in the caller's memory, in this process or
/// another, at this address or another.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_attach(
    memory: *mut c_void,
    size: usize,
    out: *mut *mut tollbar_table,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let out = unsafe { place(out) }?;
        let memory = NonNull::new(memory.cast::<u8>()).ok_or(TOLLBAR_E_NULL)?;
        // SAFETY: by the caller's promise.
        let table = unsafe { Table::attach_in(memory, size) }.map_err(table_code)?;
        out.write(boxed(tollbar_table { table })?);
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Sets the option `hot_keys` of a view that came without options, from tollbar_table_attach or
/// tollbar_table_open_fd. Credit that threads have through this view is lost. No other call may use
/// the view at the same time.
///
/// # Safety
/// `table` is NULL or live, and only this call uses it.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_set_hot_keys(table: *mut tollbar_table, keys: u32) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let table = unsafe { exclusive(table) }?;
        table.table.set_hot_keys(keys).map_err(table_code)?;
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Ends this process's view of a table that no call is using. A table in a file, in the caller's
/// memory or in use by other processes stays as it is. With NULL the call does nothing.
///
/// # Safety
/// `table` is NULL or has not been freed.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_close(table: *mut tollbar_table) {
    // SAFETY: by the caller's promise.
    unsafe { unboxed(table) };
}

/// # Safety
/// `table` is null or live.
#[inline(always)]
pub(super) unsafe fn table_of<'a>(table: *const tollbar_table) -> Result<&'a Table, i32> {
    // SAFETY: by the caller's promise.
    Ok(&unsafe { reference(table) }?.table)
}

/// The code of a request's error.
pub fn request_code(error: RequestError) -> i32 {
    match error {
        RequestError::NoSuchPolicy => TOLLBAR_E_NO_SUCH_POLICY,
        RequestError::MissingKey => TOLLBAR_E_MISSING_KEY,
        RequestError::Policy(error) => policy_code(error),
        RequestError::Receipt => TOLLBAR_E_RECEIPT,
        RequestError::Corrupt => TOLLBAR_E_CORRUPT,
    }
}

/// The code of a table's error; what the system said is in `errno`.
pub fn table_code(error: TableError) -> i32 {
    match error {
        TableError::Capacity => TOLLBAR_E_CAPACITY,
        TableError::Policies => TOLLBAR_E_POLICY_COUNT,
        TableError::Request(error) => request_code(error),
        TableError::Policy(error) => policy_code(error),
        TableError::Mixed => TOLLBAR_E_MIXED_POLICIES,
        TableError::SlotRoom { .. } => TOLLBAR_E_SLOT_ROOM,
        TableError::Versions => TOLLBAR_E_POLICY_VERSIONS,
        TableError::Exempt => TOLLBAR_E_EXEMPTIONS_FULL,
        TableError::Overrides => TOLLBAR_E_OVERRIDES_FULL,
        TableError::NoMemory => TOLLBAR_E_NO_MEMORY,
        TableError::Room => TOLLBAR_E_BUFFER_TOO_SMALL,
        TableError::Misaligned => TOLLBAR_E_MISALIGNED,
        TableError::Unsupported => TOLLBAR_E_UNSUPPORTED,
        TableError::NotATable => TOLLBAR_E_NOT_A_TABLE,
        TableError::Version => TOLLBAR_E_TABLE_VERSION,
        TableError::Truncated => TOLLBAR_E_TRUNCATED,
        TableError::Corrupt => TOLLBAR_E_CORRUPT,
        TableError::OtherCapacity => TOLLBAR_E_OTHER_CAPACITY,
        TableError::OtherPolicies => TOLLBAR_E_OTHER_POLICIES,
        TableError::OtherOptions => TOLLBAR_E_OTHER_OPTIONS,
        TableError::Boot => TOLLBAR_E_BOOT_ID,
        TableError::Owner => TOLLBAR_E_OWNER,
        TableError::Unsealed => TOLLBAR_E_UNSEALED,
        TableError::Namespace => TOLLBAR_E_PID_NAMESPACE,
        TableError::TimeNamespace => TOLLBAR_E_TIME_NAMESPACE,
        TableError::OtherBoot => TOLLBAR_E_OTHER_BOOT,
        TableError::System(call, errno) => {
            set_errno(errno);
            match call {
                Call::Open => TOLLBAR_E_OPEN,
                Call::Read => TOLLBAR_E_READ,
                Call::Allocate => TOLLBAR_E_NO_SPACE,
                Call::Map => TOLLBAR_E_MAP,
                Call::Link => TOLLBAR_E_LINK,
                Call::Lock => TOLLBAR_E_LOCK,
                Call::Random => TOLLBAR_E_RANDOM,
                Call::Sync => TOLLBAR_E_SYNC,
            }
        }
    }
}

/// Makes a table somewhere. A trait object, so that the library has [`make`] once.
type Make<'a> = dyn Fn(&Options, &[Policy]) -> Result<Table, TableError> + 'a;

/// # Safety
/// As the public calls.
unsafe fn make(
    options: *const tollbar_table_options,
    policies: *const *const tollbar_policy_spec,
    count: usize,
    out: *mut *mut tollbar_table,
    make: &Make<'_>,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (out, new) = unsafe { (place(out)?, new_table(options, policies, count)?) };
        let table = make(&new.options, &new.policies).map_err(table_code)?;
        out.write(boxed(tollbar_table { table })?);
        Ok(TOLLBAR_ALLOWED)
    })
}
