//! Results and errors.
//!
//! This is the only list of errors. `cargo xtask lists` writes each binding's list from a
//! constant's name, number and comment and from the line of its group.

use core::ffi::{c_char, CStr};

/// Of a decision: the request may pass, and its cost has been charged. Of another call: it has
/// succeeded.
pub const TOLLBAR_ALLOWED: i32 = 0;
/// Of a decision: the request is refused now and may pass later. Nothing has been charged.
pub const TOLLBAR_DENIED: i32 = 1;
/// Of a decision: the request can never pass, because its cost is more than the policy can have at
/// once. Nothing has been charged.
pub const TOLLBAR_NEVER: i32 = 2;

/// The answer "no" of a call that answers a question.
pub const TOLLBAR_NO: i32 = 0;
/// The answer "yes" of a call that answers a question.
pub const TOLLBAR_YES: i32 = 1;

// Errors of arguments.

/// A pointer is NULL that must not be.
pub const TOLLBAR_E_NULL: i32 = -1;
/// A pointer is not aligned for what it should point to.
pub const TOLLBAR_E_MISALIGNED: i32 = -2;
/// `struct_size` is smaller than any version of the struct, or absurdly large.
pub const TOLLBAR_E_STRUCT_SIZE: i32 = -3;
/// A field or flag that this version does not know is not zero.
pub const TOLLBAR_E_RESERVED: i32 = -4;
/// A number that stands for a choice (algorithm, clock, mode, anchor, unit) is out of range.
pub const TOLLBAR_E_OUT_OF_RANGE: i32 = -5;
/// A call has no limits or too many, or a limit that does not name exactly one limiter or one
/// table.
pub const TOLLBAR_E_LIMITS: i32 = -6;
/// The queue was closed. A call that takes returns it once the queue is empty, too.
pub const TOLLBAR_E_CLOSED: i32 = -7;

// Errors of policies. An error in a text has a column.

/// The policy's text does not follow the grammar.
pub const TOLLBAR_E_SYNTAX: i32 = -10;
/// A number in the policy's text does not fit 64 bits.
pub const TOLLBAR_E_NUMBER_TOO_LARGE: i32 = -11;
/// There is no algorithm of that name.
pub const TOLLBAR_E_ALGORITHM: i32 = -12;
/// An option is given twice.
pub const TOLLBAR_E_DUPLICATE_OPTION: i32 = -13;

/// The period is 0.
pub const TOLLBAR_E_PERIOD_ZERO: i32 = -20;
/// The burst is 0. (To deny every request, set the limit to 0.)
pub const TOLLBAR_E_BURST_ZERO: i32 = -21;
/// The rate is higher than the algorithm can count exactly.
pub const TOLLBAR_E_RATE_TOO_HIGH: i32 = -22;
/// The burst takes longer to refill than a state word can hold.
pub const TOLLBAR_E_BURST_TOO_LARGE: i32 = -23;
/// `init` is above the burst.
pub const TOLLBAR_E_INIT_ABOVE_BURST: i32 = -24;
/// The algorithm does not have this option.
pub const TOLLBAR_E_OPTION_MISMATCH: i32 = -25;
/// The number of segments is not from 1 to 1024, or a segment would not be a whole number of
/// nanoseconds.
pub const TOLLBAR_E_SEGMENTS: i32 = -26;
/// A warm-up has no time, or a cold factor that is not 1 to 1000.
pub const TOLLBAR_E_WARM_UP: i32 = -27;
/// A sliding log has more than 2^24 entries, or in a table more than its key's word can count in
/// the period.
pub const TOLLBAR_E_LOG_TOO_LARGE: i32 = -28;
/// The algorithm needs more than one state word: use a limiter, not a cell.
pub const TOLLBAR_E_NOT_ONE_WORD: i32 = -29;
/// A ban has no time, or a time that a state word cannot hold; or `after` is above 1000, or given
/// without `ban`.
pub const TOLLBAR_E_BAN: i32 = -30;
/// The policies of a list do not fit one state word together. Two of gcra without init, borrow and
/// ban do, unless one is much faster than the other.
pub const TOLLBAR_E_LIST: i32 = -31;
/// A quota has another period than TOLLBAR_FOREVER, or the text gives `forever` to another
/// algorithm.
pub const TOLLBAR_E_QUOTA: i32 = -32;
/// A policy has more than four classes, two of one name, a name that is not a letter followed by
/// letters, digits, `-` and `_`, or a reserve that is not below the burst. Or the policy lends, or
/// threads of the limiter would have credit.
pub const TOLLBAR_E_CLASSES: i32 = -33;
/// The policy has no class of that name or number.
pub const TOLLBAR_E_NO_SUCH_CLASS: i32 = -34;
/// Knots of a curve that fall, or do not rise to 100 % of the limit; or bands of a level-refill
/// that are more than 4, whose levels do not rise from 0, or whose rates are not 1 % to 100 %.
pub const TOLLBAR_E_KNOTS: i32 = -35;
/// A calendar's period is not TOLLBAR_DAY, _WEEK, _MONTH or _YEAR, its first day is not one of that
/// period, its zone is none; or the text gives `month` or `year` to another algorithm.
pub const TOLLBAR_E_CALENDAR: i32 = -36;
/// A calendar with a clock other than TOLLBAR_CLOCK_WALL.
pub const TOLLBAR_E_WALL_CLOCK: i32 = -37;

// Errors of memory.

/// Out of memory.
pub const TOLLBAR_E_NO_MEMORY: i32 = -40;
/// The buffer is too small.
pub const TOLLBAR_E_BUFFER_TOO_SMALL: i32 = -41;
/// The limiter has been changed to 4,096 different policies, as many as it keeps. Change it to one
/// of those, or make another limiter.
pub const TOLLBAR_E_POLICY_CHANGES: i32 = -42;

// Errors of hierarchies.

/// The hierarchy has no class of that number, or the class has children and takes no requests.
pub const TOLLBAR_E_CLASS_NUMBER: i32 = -44;
/// A rate is not LIMIT/PERIOD, from 1 in 9 minutes to 1,000,000 a second.
pub const TOLLBAR_E_CLASS_RATE: i32 = -45;
/// The guaranteed rate is above the ceiling, or the guaranteed rates of a class's children are
/// together above its own.
pub const TOLLBAR_E_GUARANTEE: i32 = -46;
/// The class would be below seven others or below a class with keys, or its name is empty or that
/// of another child of its parent.
pub const TOLLBAR_E_CLASS_TREE: i32 = -47;

// Errors of tables.

/// The capacity is 0, or more keys than a table can hold.
pub const TOLLBAR_E_CAPACITY: i32 = -50;
/// The number of policies is not 1 to 128.
pub const TOLLBAR_E_POLICY_COUNT: i32 = -51;
/// The table has no policy of that number.
pub const TOLLBAR_E_NO_SUCH_POLICY: i32 = -52;
/// In a table without room (tollbar_table_options.room) a sliding window or a sliding log must be
/// the only policy.
pub const TOLLBAR_E_MIXED_POLICIES: i32 = -53;
/// All 255 versions of the table's policies are in use: each policy has one, and so has each
/// override that differs from the others. Give several keys the same override, end some, or let
/// tollbar_table_repair free those that killed processes left unfinished.
pub const TOLLBAR_E_POLICY_VERSIONS: i32 = -54;
/// The set of exempt keys is full.
pub const TOLLBAR_E_EXEMPTIONS_FULL: i32 = -55;
/// The request has no key, and the table reports such requests.
pub const TOLLBAR_E_MISSING_KEY: i32 = -56;
/// The processor has no 16-byte compare-and-swap.
pub const TOLLBAR_E_UNSUPPORTED: i32 = -57;

/// The argument is not a network address.
pub const TOLLBAR_E_ADDRESS: i32 = -58;
/// The receipt is not one of this table, or the estimate is more than a receipt can hold.
pub const TOLLBAR_E_RECEIPT: i32 = -59;

/// The file or memory is not a table.
pub const TOLLBAR_E_NOT_A_TABLE: i32 = -60;
/// Another version of this library made the table.
pub const TOLLBAR_E_TABLE_VERSION: i32 = -61;
/// The file or memory is shorter or longer than its table.
pub const TOLLBAR_E_TRUNCATED: i32 = -62;
/// The table's header is damaged.
pub const TOLLBAR_E_CORRUPT: i32 = -63;
/// The file has a table of another capacity.
pub const TOLLBAR_E_OTHER_CAPACITY: i32 = -64;
/// The file has a table with other policies.
pub const TOLLBAR_E_OTHER_POLICIES: i32 = -65;
/// The file has a table with other options.
pub const TOLLBAR_E_OTHER_OPTIONS: i32 = -66;
/// Nothing that this process can read tells whether the file's content is of this boot of the
/// machine: /proc/sys/kernel/random/boot_id cannot be read, and the file is not in tmpfs (/dev/shm,
/// /run).
pub const TOLLBAR_E_BOOT_ID: i32 = -67;
/// Slots of the table name an unknown version of a policy, or two slots hold one key.
pub const TOLLBAR_E_SLOTS_INVALID: i32 = -68;
/// As many keys have a policy of their own as the table's options allow, or the options ask for
/// more than 524,288.
pub const TOLLBAR_E_OVERRIDES_FULL: i32 = -69;

/// The file belongs to another user than the caller and root, or other users may write or replace
/// it (TOLLBAR_TABLE_TRUST_ANYONE takes it).
pub const TOLLBAR_E_OWNER: i32 = -78;
/// The memory behind the descriptor is not sealed against shrinking.
pub const TOLLBAR_E_UNSEALED: i32 = -79;

// Errors of the system. After one of these, errno has the system's reason.

/// The file cannot be opened. After this error and those down to TOLLBAR_E_SYNC, errno has the
/// system's reason.
pub const TOLLBAR_E_OPEN: i32 = -70;
/// The file cannot be read.
pub const TOLLBAR_E_READ: i32 = -71;
/// There is no room for the file.
pub const TOLLBAR_E_NO_SPACE: i32 = -72;
/// The memory cannot be mapped.
pub const TOLLBAR_E_MAP: i32 = -73;
/// The new file cannot be given its name.
pub const TOLLBAR_E_LINK: i32 = -74;
/// The file cannot be locked.
pub const TOLLBAR_E_LOCK: i32 = -75;
/// The system gives no random numbers.
pub const TOLLBAR_E_RANDOM: i32 = -76;
/// The file cannot be written to the disk.
pub const TOLLBAR_E_SYNC: i32 = -77;

// Errors of leases, which libtollbar-redis makes.

/// Only a single gcra can be leased, without `borrow`, `ban`, `init` and `reserve`.
pub const TOLLBAR_E_LEASE_ALGORITHM: i32 = -80;
/// The number of machines is not 1 to 65,535.
pub const TOLLBAR_E_LEASE_NODES: i32 = -81;
/// The life of a lease is not 1 ms to 10 min.
pub const TOLLBAR_E_LEASE_LIFE: i32 = -82;
/// The overdrafts of all machines leave nothing of the burst.
pub const TOLLBAR_E_LEASE_BURST: i32 = -83;
/// Burst and period are too large for the store to count exactly.
pub const TOLLBAR_E_LEASE_TOO_LARGE: i32 = -84;
/// The name is not 1 to 64 visible ASCII characters without braces.
pub const TOLLBAR_E_LEASE_NAME: i32 = -85;
/// The memory holds no node of this version.
pub const TOLLBAR_E_NOT_A_LEASE: i32 = -86;
/// The store's URL does not follow the grammar, or asks for a feature that the client lacks (TLS,
/// Sentinel, Cluster).
pub const TOLLBAR_E_URL: i32 = -87;
/// A thread drives this client.
pub const TOLLBAR_E_RUNNING: i32 = -88;
/// The client ended before it had reported all admissions to the store.
pub const TOLLBAR_E_UNREPORTED: i32 = -89;
/// The client has 128 leases, or one of this limit, or not this lease.
pub const TOLLBAR_E_CLIENT_LEASES: i32 = -91;
/// The scripts of a store have gcra, interval, fixed-window, weighted-window, sliding-window and
/// sliding-log, without `borrow`, `ban`, `init`, `reserve` and a second rate. Their windows of
/// segments do not begin with a key's first request.
pub const TOLLBAR_E_STORE_ALGORITHM: i32 = -92;
/// The policy's numbers exceed 2^53, or its period is no whole number of microseconds: the store
/// could not count exactly.
pub const TOLLBAR_E_STORE_NUMBERS: i32 = -93;
/// The key in the store has a value that the limit's script did not write: another algorithm's
/// under the same name, or another program's.
pub const TOLLBAR_E_STORE_VALUE: i32 = -94;
/// The reply of the store is not one of the script's.
pub const TOLLBAR_E_STORE_REPLY: i32 = -95;
/// A key in a store has 1 to 512 bytes.
pub const TOLLBAR_E_STORE_KEY: i32 = -96;

// Errors of permits in flight.

/// Not a ticket that this view of the table can release.
pub const TOLLBAR_E_TICKET: i32 = -100;
/// No slot of the in-flight table is free for the key: its capacity is too small.
pub const TOLLBAR_E_IN_FLIGHT_FULL: i32 = -101;
/// The in-flight table has 1,024 owners.
pub const TOLLBAR_E_OWNERS_FULL: i32 = -102;
/// Processes of another PID namespace use the in-flight table, or the system does not say in which
/// one this process is.
pub const TOLLBAR_E_PID_NAMESPACE: i32 = -103;
/// The system does not say in which time namespace this process is, or the process that made the
/// table was.
pub const TOLLBAR_E_TIME_NAMESPACE: i32 = -104;
/// The in-flight table's file is in use by processes whose system gives another boot id: in a
/// container that has one of its own, or on another machine.
pub const TOLLBAR_E_OTHER_BOOT: i32 = -105;
/// The window has more segments, or the log more permits, than the table's slots have room for
/// (tollbar_table_options.room).
pub const TOLLBAR_E_SLOT_ROOM: i32 = -106;

// Errors of the library itself.

/// The library itself has a fault. It was stopped before it reached the caller.
pub const TOLLBAR_E_INTERNAL: i32 = -90;

/// A time that never comes.
pub const TOLLBAR_NO_TIME: u64 = 0xffff_ffff_ffff_ffff;

/// Returns one line in English for a result. The string is static and never NULL. Unknown numbers
/// give "unknown result".
#[no_mangle]
pub extern "C" fn tollbar_strerror(code: i32) -> *const c_char {
    lookup(code).1.as_ptr()
}

/// Returns the name of a result's macro, such as "TOLLBAR_E_NULL". The string is static and never
/// NULL. Unknown numbers give "TOLLBAR_E_UNKNOWN".
#[no_mangle]
pub extern "C" fn tollbar_errname(code: i32) -> *const c_char {
    lookup(code).0.as_ptr()
}

fn lookup(code: i32) -> (&'static CStr, &'static CStr) {
    match code {
        TOLLBAR_ALLOWED => (c"TOLLBAR_ALLOWED", c"allowed"),
        TOLLBAR_DENIED => (c"TOLLBAR_DENIED", c"denied for now"),
        TOLLBAR_NEVER => (c"TOLLBAR_NEVER", c"never: the cost is more than the policy can have at once"),
        TOLLBAR_E_NULL => (c"TOLLBAR_E_NULL", c"a pointer is NULL that must not be"),
        TOLLBAR_E_MISALIGNED => (c"TOLLBAR_E_MISALIGNED", c"a pointer is not aligned"),
        TOLLBAR_E_STRUCT_SIZE => (c"TOLLBAR_E_STRUCT_SIZE", c"struct_size is that of no version"),
        TOLLBAR_E_RESERVED => (c"TOLLBAR_E_RESERVED", c"a field or flag unknown to this version is not zero"),
        TOLLBAR_E_OUT_OF_RANGE => (c"TOLLBAR_E_OUT_OF_RANGE", c"a number that stands for a choice is out of range"),
        TOLLBAR_E_LIMITS => {
            (c"TOLLBAR_E_LIMITS", c"not 1 to 16 limits, each a limiter, a table's key or a permit in flight")
        }
        TOLLBAR_E_CLOSED => (c"TOLLBAR_E_CLOSED", c"the queue was closed"),
        TOLLBAR_E_SYNTAX => (c"TOLLBAR_E_SYNTAX", c"the policy does not follow the grammar"),
        TOLLBAR_E_NUMBER_TOO_LARGE => (c"TOLLBAR_E_NUMBER_TOO_LARGE", c"a number in the policy does not fit 64 bits"),
        TOLLBAR_E_ALGORITHM => (c"TOLLBAR_E_ALGORITHM", c"no algorithm of that name"),
        TOLLBAR_E_DUPLICATE_OPTION => (c"TOLLBAR_E_DUPLICATE_OPTION", c"an option of the policy is given twice"),
        TOLLBAR_E_PERIOD_ZERO => (c"TOLLBAR_E_PERIOD_ZERO", c"the period is zero"),
        TOLLBAR_E_BURST_ZERO => (c"TOLLBAR_E_BURST_ZERO", c"the burst is zero (limit 0 denies all)"),
        TOLLBAR_E_RATE_TOO_HIGH => (c"TOLLBAR_E_RATE_TOO_HIGH", c"the rate is higher than the algorithm can count"),
        TOLLBAR_E_BURST_TOO_LARGE => {
            (c"TOLLBAR_E_BURST_TOO_LARGE", c"the burst is larger than a state word can hold at this rate")
        }
        TOLLBAR_E_INIT_ABOVE_BURST => (c"TOLLBAR_E_INIT_ABOVE_BURST", c"init is larger than the burst"),
        TOLLBAR_E_OPTION_MISMATCH => (c"TOLLBAR_E_OPTION_MISMATCH", c"an option does not belong to the algorithm"),
        TOLLBAR_E_SEGMENTS => (c"TOLLBAR_E_SEGMENTS", c"segments must be 1 to 1024 and divide the period"),
        TOLLBAR_E_WARM_UP => (c"TOLLBAR_E_WARM_UP", c"warm-up needs a time above zero and cold from 1 to 1000"),
        TOLLBAR_E_LOG_TOO_LARGE => (
            c"TOLLBAR_E_LOG_TOO_LARGE",
            c"a sliding log may have 16777216 entries at most, fewer in a table if its period is short",
        ),
        TOLLBAR_E_NOT_ONE_WORD => (c"TOLLBAR_E_NOT_ONE_WORD", c"the algorithm needs more than one state word"),
        TOLLBAR_E_BAN => {
            (c"TOLLBAR_E_BAN", c"a ban needs a time above zero that a state word can hold, and after from 1 to 1000")
        }
        TOLLBAR_E_LIST => (
            c"TOLLBAR_E_LIST",
            c"the list does not fit one state word: make a limit of each policy, and charge them by take_many",
        ),
        TOLLBAR_E_QUOTA => (c"TOLLBAR_E_QUOTA", c"a quota's period is forever, and no other algorithm has that period"),
        TOLLBAR_E_CLASSES => (
            c"TOLLBAR_E_CLASSES",
            c"a policy without borrow and credit has up to four classes, each with its own name and a reserve below the burst",
        ),
        TOLLBAR_E_NO_SUCH_CLASS => (c"TOLLBAR_E_NO_SUCH_CLASS", c"the policy has no class of that name"),
        TOLLBAR_E_KNOTS => (
            c"TOLLBAR_E_KNOTS",
            c"knots of a curve must rise to 100% of the limit, and bands rise from level 0 at rates of 1% to 100%",
        ),
        TOLLBAR_E_CALENDAR => (
            c"TOLLBAR_E_CALENDAR",
            c"a calendar has windows of a `day`, `week`, `month` or `year`, and no other algorithm has `month` and `year`",
        ),
        TOLLBAR_E_WALL_CLOCK => (
            c"TOLLBAR_E_WALL_CLOCK",
            c"calendar windows need the wall clock, which counts from 1970: choose it as the clock",
        ),
        TOLLBAR_E_NO_MEMORY => (c"TOLLBAR_E_NO_MEMORY", c"out of memory"),
        TOLLBAR_E_BUFFER_TOO_SMALL => (c"TOLLBAR_E_BUFFER_TOO_SMALL", c"the buffer is too small"),
        TOLLBAR_E_CAPACITY => (c"TOLLBAR_E_CAPACITY", c"the capacity is zero or more than a table can hold"),
        TOLLBAR_E_POLICY_COUNT => (c"TOLLBAR_E_POLICY_COUNT", c"a table has 1 to 128 policies"),
        TOLLBAR_E_NO_SUCH_POLICY => (c"TOLLBAR_E_NO_SUCH_POLICY", c"the table has no policy of that number"),
        TOLLBAR_E_MIXED_POLICIES => {
            (c"TOLLBAR_E_MIXED_POLICIES", c"a sliding window or log must be its table's only policy")
        }
        TOLLBAR_E_POLICY_VERSIONS => (
            c"TOLLBAR_E_POLICY_VERSIONS",
            c"all 255 versions of the table's policies are in use: end overrides, or give several keys the same",
        ),
        TOLLBAR_E_POLICY_CHANGES => (
            c"TOLLBAR_E_POLICY_CHANGES",
            c"the limiter has been changed to 4096 policies: change it to one of those, or make another",
        ),
        TOLLBAR_E_CLASS_NUMBER => (c"TOLLBAR_E_CLASS_NUMBER", c"the hierarchy has no such class, or the class has children"),
        TOLLBAR_E_CLASS_RATE => {
            (c"TOLLBAR_E_CLASS_RATE", c"the rate of a class is LIMIT/PERIOD, from 1 in 9 minutes to 1000000/s")
        }
        TOLLBAR_E_GUARANTEE => {
            (c"TOLLBAR_E_GUARANTEE", c"more is guaranteed than the ceiling or the parent's guaranteed rate")
        }
        TOLLBAR_E_CLASS_TREE => {
            (c"TOLLBAR_E_CLASS_TREE", c"a class needs a new name, at most 8 levels, and a parent without keys")
        }
        TOLLBAR_E_EXEMPTIONS_FULL => (c"TOLLBAR_E_EXEMPTIONS_FULL", c"the set of exempt keys is full"),
        TOLLBAR_E_OVERRIDES_FULL => (c"TOLLBAR_E_OVERRIDES_FULL", c"the table has no room for another override"),
        TOLLBAR_E_MISSING_KEY => (c"TOLLBAR_E_MISSING_KEY", c"the request has no key"),
        TOLLBAR_E_UNSUPPORTED => (c"TOLLBAR_E_UNSUPPORTED", c"the processor has no 16-byte compare-and-swap"),
        TOLLBAR_E_ADDRESS => (c"TOLLBAR_E_ADDRESS", c"not a network address"),
        TOLLBAR_E_RECEIPT => {
            (c"TOLLBAR_E_RECEIPT", c"the receipt is not of this table, or the estimate is 2^56 or more")
        }
        TOLLBAR_E_NOT_A_TABLE => (c"TOLLBAR_E_NOT_A_TABLE", c"not a tollbar table"),
        TOLLBAR_E_TABLE_VERSION => (c"TOLLBAR_E_TABLE_VERSION", c"the table has another version of the layout"),
        TOLLBAR_E_TRUNCATED => (c"TOLLBAR_E_TRUNCATED", c"the table is shorter or longer than its header says"),
        TOLLBAR_E_CORRUPT => (c"TOLLBAR_E_CORRUPT", c"the table's header is damaged"),
        TOLLBAR_E_OTHER_CAPACITY => (c"TOLLBAR_E_OTHER_CAPACITY", c"the table has another capacity"),
        TOLLBAR_E_OTHER_POLICIES => (c"TOLLBAR_E_OTHER_POLICIES", c"the table has other policies (tollbar table set-policy)"),
        TOLLBAR_E_OTHER_OPTIONS => (c"TOLLBAR_E_OTHER_OPTIONS", c"the table has other options"),
        TOLLBAR_E_BOOT_ID => {
            (c"TOLLBAR_E_BOOT_ID", c"the system does not say whether the file's content is of this boot")
        }
        TOLLBAR_E_SLOTS_INVALID => {
            (c"TOLLBAR_E_SLOTS_INVALID", c"slots of the table have an unknown policy, or one key twice")
        }
        TOLLBAR_E_OPEN => (c"TOLLBAR_E_OPEN", c"the file cannot be opened"),
        TOLLBAR_E_READ => (c"TOLLBAR_E_READ", c"the file cannot be read"),
        TOLLBAR_E_NO_SPACE => (c"TOLLBAR_E_NO_SPACE", c"there is no room for the file"),
        TOLLBAR_E_MAP => (c"TOLLBAR_E_MAP", c"the memory cannot be mapped"),
        TOLLBAR_E_LINK => (c"TOLLBAR_E_LINK", c"the new file cannot be given its name"),
        TOLLBAR_E_LOCK => (c"TOLLBAR_E_LOCK", c"the file cannot be locked"),
        TOLLBAR_E_RANDOM => (c"TOLLBAR_E_RANDOM", c"the system gives no random numbers"),
        TOLLBAR_E_SYNC => (c"TOLLBAR_E_SYNC", c"the file cannot be written to the disk"),
        TOLLBAR_E_OWNER => (c"TOLLBAR_E_OWNER", c"the file belongs to another user, or others may write or replace it"),
        TOLLBAR_E_UNSEALED => {
            (c"TOLLBAR_E_UNSEALED", c"the memory behind the descriptor is not sealed against shrinking")
        }
        TOLLBAR_E_LEASE_ALGORITHM => {
            (c"TOLLBAR_E_LEASE_ALGORITHM", c"only a single gcra can be leased, without borrow, ban, init and reserve")
        }
        TOLLBAR_E_LEASE_NODES => (c"TOLLBAR_E_LEASE_NODES", c"nodes must be 1 to 65535"),
        TOLLBAR_E_LEASE_LIFE => (c"TOLLBAR_E_LEASE_LIFE", c"the life of a lease must be 1 ms to 10 minutes"),
        TOLLBAR_E_LEASE_BURST => (
            c"TOLLBAR_E_LEASE_BURST",
            c"the burst has no room for a lease: the overdrafts of all nodes take it up",
        ),
        TOLLBAR_E_LEASE_TOO_LARGE => {
            (c"TOLLBAR_E_LEASE_TOO_LARGE", c"burst and period are too large to be counted exactly in the store")
        }
        TOLLBAR_E_LEASE_NAME => (c"TOLLBAR_E_LEASE_NAME", c"a name is 1 to 64 visible ASCII characters without braces"),
        TOLLBAR_E_NOT_A_LEASE => (c"TOLLBAR_E_NOT_A_LEASE", c"the memory holds no node of this version"),
        TOLLBAR_E_URL => (c"TOLLBAR_E_URL", c"the store's URL is invalid or asks for TLS, Sentinel or Cluster"),
        TOLLBAR_E_RUNNING => (c"TOLLBAR_E_RUNNING", c"a thread drives this client"),
        TOLLBAR_E_UNREPORTED => {
            (c"TOLLBAR_E_UNREPORTED", c"the client ended before it had reported all admissions to the store")
        }
        TOLLBAR_E_CLIENT_LEASES => {
            (c"TOLLBAR_E_CLIENT_LEASES", c"the client has 128 leases, or one of this limit, or not this lease")
        }
        TOLLBAR_E_STORE_ALGORITHM => (
            c"TOLLBAR_E_STORE_ALGORITHM",
            c"a store decides gcra, interval, fixed-window, weighted-window, sliding-log and aligned sliding-window, without borrow, ban, init, reserve, lists",
        ),
        TOLLBAR_E_STORE_NUMBERS => {
            (c"TOLLBAR_E_STORE_NUMBERS", c"numbers above 2^53, or parts of a microsecond, which a store cannot count exactly")
        }
        TOLLBAR_E_STORE_VALUE => {
            (c"TOLLBAR_E_STORE_VALUE", c"the key in the store has another algorithm's or another program's value")
        }
        TOLLBAR_E_STORE_REPLY => {
            (c"TOLLBAR_E_STORE_REPLY", c"the store's reply is not one of the script's")
        }
        TOLLBAR_E_STORE_KEY => (c"TOLLBAR_E_STORE_KEY", c"a key in a store has 1 to 512 bytes"),
        TOLLBAR_E_TICKET => (c"TOLLBAR_E_TICKET", c"the ticket has been released, or is another owner's"),
        TOLLBAR_E_IN_FLIGHT_FULL => (c"TOLLBAR_E_IN_FLIGHT_FULL", c"the in-flight table has no slot for the key"),
        TOLLBAR_E_OWNERS_FULL => (c"TOLLBAR_E_OWNERS_FULL", c"the in-flight table has 1024 owners"),
        TOLLBAR_E_PID_NAMESPACE => (
            c"TOLLBAR_E_PID_NAMESPACE",
            c"the table is used by processes of another PID namespace, or this one's is unknown",
        ),
        TOLLBAR_E_TIME_NAMESPACE => (
            c"TOLLBAR_E_TIME_NAMESPACE",
            c"the system does not say in which time namespace the table's processes are",
        ),
        TOLLBAR_E_OTHER_BOOT => {
            (c"TOLLBAR_E_OTHER_BOOT", c"the table is used by processes whose system gives another boot id")
        }
        TOLLBAR_E_SLOT_ROOM => (
            c"TOLLBAR_E_SLOT_ROOM",
            c"the table's slots have too little room for this window or log",
        ),
        TOLLBAR_E_INTERNAL => (c"TOLLBAR_E_INTERNAL", c"a fault of the library itself"),
        _ => (c"TOLLBAR_E_UNKNOWN", c"unknown result"),
    }
}
