//! The hot calls of the C library, as it ships.

use crate::library::{Library, LimiterCheck, LimiterCheckAt};
use crate::rust_calls::{call, key, BATCH, CAPACITY, KEYED, OPEN, PAIR, SEED, SHUT, WARM};
use crate::{Call, START};
use std::ffi::{c_void, OsStr};
use std::hint::black_box;
use std::ptr::null_mut;

type CellCheckAt = unsafe extern "C" fn(*mut u64, *const c_void, u64, u64, *mut c_void) -> i32;
type TableSetOverride =
    unsafe extern "C" fn(*mut c_void, u32, *const u8, usize, *const Spec, u32) -> i32;
type SpecParse = unsafe extern "C" fn(*const u8, usize, *mut Spec, *mut c_void) -> i32;
type TableNew =
    unsafe extern "C" fn(*const *const Spec, usize, *const Options, *mut *mut c_void) -> i32;
type TableCheckAt =
    unsafe extern "C" fn(*const c_void, u32, *const u8, usize, u64, u64, *mut Decision) -> i32;
type TakeManyAt = unsafe extern "C" fn(*const Limit, usize, u64, *mut Decision, *mut c_void) -> i32;
type TableCheckManyAt =
    unsafe extern "C" fn(*const c_void, *const Request, usize, u64, *mut i32) -> i32;

/// `tollbar_policy_spec`, larger than the library's, which fills the rest with zeroes.
#[repr(C)]
struct Spec {
    struct_size: u32,
    algorithm: u32,
    rest: [u64; 63],
}

/// `tollbar_table_options`.
#[repr(C)]
struct Options {
    struct_size: u32,
    on_full: u32,
    capacity: u64,
    seed: u64,
    missing_key: u32,
    clock: u32,
    mode: u32,
    flags: u32,
    waiters: u32,
    hot_keys: u32,
    overrides: u32,
    reserved: u32,
}

/// TOLLBAR_TABLE_HAS_SEED.
const SEEDED: u32 = 1;

/// `tollbar_decision`.
#[repr(C)]
struct Decision {
    struct_size: u32,
    verdict: u32,
    times_and_counts: [u64; 3],
    reason: u32,
    reserved: u32,
}

/// `tollbar_request`.
#[repr(C)]
struct Request {
    key: *const u8,
    length: usize,
    cost: u64,
    policy: u32,
    reserved: u32,
}

/// `tollbar_limit`.
#[repr(C)]
struct Limit {
    limiter: *const c_void,
    table: *const c_void,
    request: Request,
    in_flight: *const c_void,
    ticket: *mut u64,
    class_name: *const u8,
}

/// All hot calls of the C library.
pub fn all(path: &OsStr) -> Vec<Call> {
    let library = Library::open(path);
    // SAFETY: the symbols have these signatures in tollbar.h.
    let (cell_at, limiter_at, limiter, check_at, peek_at, take_many_at, many_at) = unsafe {
        (
            std::mem::transmute::<*mut c_void, CellCheckAt>(
                library.symbol("tollbar_cell_check_at"),
            ),
            std::mem::transmute::<*mut c_void, LimiterCheckAt>(
                library.symbol("tollbar_limiter_check_at"),
            ),
            std::mem::transmute::<*mut c_void, LimiterCheck>(
                library.symbol("tollbar_limiter_check"),
            ),
            std::mem::transmute::<*mut c_void, TableCheckAt>(
                library.symbol("tollbar_table_check_at"),
            ),
            std::mem::transmute::<*mut c_void, TableCheckAt>(
                library.symbol("tollbar_table_peek_at"),
            ),
            std::mem::transmute::<*mut c_void, TakeManyAt>(library.symbol("tollbar_take_many_at")),
            std::mem::transmute::<*mut c_void, TableCheckManyAt>(
                library.symbol("tollbar_table_check_many_at"),
            ),
        )
    };
    let policy = library.made("tollbar_policy_from_text", OPEN);
    let word: &'static mut u64 = Box::leak(Box::new(0));
    let word: *mut u64 = word;
    let [open, clocked] = [0, 1].map(|_| library.made("tollbar_limiter_from_text", OPEN));
    let [credited, credited_at] = [0, 1].map(|_| crate::credit::limiter(&library, OPEN));
    let paired = library.made("tollbar_limiter_from_text", PAIR);
    let paired_key = half_full(&library, check_at, 0, PAIR);
    let shut = library.made("tollbar_limiter_from_text", SHUT);
    // SAFETY: a live limiter.
    assert_eq!(unsafe { limiter_at(shut, 1, START - 1, null_mut()) }, 0);
    let [known, decided, peeked, fresh, batched, several] =
        [0, 1, 2, 3, 4, 5].map(|_| table(&library, check_at));
    let key: &'static [[u8; 8]; BATCH] =
        Box::leak(Box::new(std::array::from_fn(|index| key(index as u64))));
    let requests = key.each_ref().map(|key| Request {
        key: key.as_ptr(),
        length: 8,
        cost: 1,
        policy: 0,
        reserved: 0,
    });
    let (mut new_key, full, mut latecomer) = (CAPACITY, flooded(&library, check_at), 8 * CAPACITY);
    let mut passer = CAPACITY;
    let beside = with_overrides(&library, check_at);
    let [hot, hot_decided] = [0, 1].map(|_| {
        let hot = half_full(&library, check_at, 256, KEYED);
        let ask = |_| {
            // SAFETY: a live table and key.
            assert_eq!(unsafe { check_at(hot, 0, key[0].as_ptr(), 8, 1, START - 1, null_mut()) }, 0)
        };
        (0..WARM).for_each(ask);
        hot
    });
    // Each call asserts its verdict, because a refusal may cost less than an admission.
    let expect = |wanted: i32, code: i32| assert!(code == wanted, "{code}");
    vec![
        call("C tollbar_cell_check_at", 1, move |now| {
            // SAFETY: live objects and keys; the places for answers outlive the call.
            expect(0, unsafe { cell_at(black_box(word), policy, 1, now, null_mut()) });
        }),
        call("C tollbar_limiter_check_at, allowed", 1, move |now| {
            // SAFETY: live objects and keys; the places for answers outlive the call.
            expect(0, unsafe { limiter_at(black_box(open), 1, now, null_mut()) });
        }),
        call("C tollbar_limiter_check_at, denied", 1, move |now| {
            // SAFETY: live objects and keys; the places for answers outlive the call.
            expect(1, unsafe { limiter_at(black_box(shut), 1, now, null_mut()) });
        }),
        call("C tollbar_limiter_check, TSC", 1, move |_| {
            // SAFETY: live objects and keys; the places for answers outlive the call.
            expect(0, unsafe { limiter(black_box(clocked), 1, null_mut()) });
        }),
        call("C tollbar_limiter_check, credit", 1, move |_| {
            // SAFETY: live objects and keys; the places for answers outlive the call.
            expect(0, unsafe { limiter(black_box(credited), 1, null_mut()) });
        }),
        call("C tollbar_limiter_check_at, credit", 1, move |now| {
            // SAFETY: live objects and keys; the places for answers outlive the call.
            expect(0, unsafe { limiter_at(black_box(credited_at), 1, now, null_mut()) });
        }),
        call("C tollbar_table_check_at, known key", 1, move |now| {
            // SAFETY: live objects and keys; the places for answers outlive the call.
            expect(0, unsafe {
                check_at(black_box(known), 0, key[0].as_ptr(), 8, 1, now, null_mut())
            });
        }),
        call("C tollbar_limiter_check_at, two rates", 1, move |now| {
            // SAFETY: live objects and keys; the places for answers outlive the call.
            expect(0, unsafe { limiter_at(black_box(paired), 1, now, null_mut()) });
        }),
        call("C tollbar_table_check_at, known key, two rates", 1, move |now| {
            // SAFETY: live objects and keys; the places for answers outlive the call.
            expect(0, unsafe {
                check_at(black_box(paired_key), 0, key[0].as_ptr(), 8, 1, now, null_mut())
            });
        }),
        call("C tollbar_table_check_at, known key beside overrides", 1, move |now| {
            // SAFETY: live objects and keys; the places for answers outlive the call.
            expect(0, unsafe {
                check_at(black_box(beside), 0, key[0].as_ptr(), 8, 1, now, null_mut())
            });
        }),
        call("C tollbar_table_check_at, full decision", 1, move |now| {
            let mut decision = decision();
            // SAFETY: live objects and keys; the places for answers outlive the call.
            expect(0, unsafe {
                check_at(black_box(decided), 0, key[0].as_ptr(), 8, 1, now, &mut decision)
            });
            black_box(decision);
        }),
        call("C tollbar_table_peek_at, known key", 1, move |now| {
            // SAFETY: live objects and keys; the places for answers outlive the call.
            expect(0, unsafe {
                peek_at(black_box(peeked), 0, key[0].as_ptr(), 8, 1, now, null_mut())
            });
        }),
        call("C tollbar_table_peek_at, fresh key", 1, move |now| {
            passer += 1;
            let key = crate::rust_calls::key(passer);
            // SAFETY: live objects and keys; the places for answers outlive the call.
            expect(0, unsafe {
                peek_at(black_box(peeked), 0, key.as_ptr(), 8, 1, now, null_mut())
            });
        }),
        call("C tollbar_table_check_at, fresh key", 1, move |now| {
            new_key += 1;
            let key = crate::rust_calls::key(new_key);
            // SAFETY: live objects and keys; the places for answers outlive the call.
            expect(0, unsafe {
                check_at(black_box(fresh), 0, key.as_ptr(), 8, 1, now, null_mut())
            });
        }),
        call("C tollbar_table_check_at, fresh key of a flood", 1, move |now| {
            latecomer += 1;
            let key = crate::rust_calls::key(latecomer);
            // SAFETY: live objects and keys; the places for answers outlive the call.
            expect(0, unsafe { check_at(black_box(full), 0, key.as_ptr(), 8, 1, now, null_mut()) });
        }),
        call("C tollbar_table_check_at, hot key", 1, move |now| {
            // SAFETY: live objects and keys.
            expect(0, unsafe {
                check_at(black_box(hot), 0, key[0].as_ptr(), 8, 1, now, null_mut())
            });
        }),
        call("C tollbar_table_check_at, hot key, full decision", 1, move |now| {
            let mut decision = decision();
            // SAFETY: live objects and keys; the places for answers outlive the call.
            expect(0, unsafe {
                check_at(black_box(hot_decided), 0, key[0].as_ptr(), 8, 1, now, &mut decision)
            });
            black_box(decision);
        }),
        call("C tollbar_take_many_at, two known keys", 1, move |now| {
            let limits = [0, 1].map(|n| Limit {
                limiter: null_mut(),
                table: black_box(several),
                request: Request {
                    key: key[n].as_ptr(),
                    length: 8,
                    cost: 1,
                    policy: 0,
                    reserved: 0,
                },
                in_flight: null_mut(),
                ticket: null_mut(),
                class_name: std::ptr::null(),
            });
            // SAFETY: live objects and keys; the places for answers outlive the call.
            expect(0, unsafe { take_many_at(limits.as_ptr(), 2, now, null_mut(), null_mut()) });
        }),
        call("C tollbar_table_check_many_at, a key of 32", BATCH as u64, move |now| {
            let mut results = [0; BATCH];
            let requests = requests.as_ptr();
            // SAFETY: live objects and keys; the places for answers outlive the call.
            expect(0, unsafe {
                many_at(black_box(batched), requests, BATCH, now, results.as_mut_ptr())
            });
            black_box(results);
        }),
    ]
}

fn decision() -> Decision {
    Decision {
        struct_size: size_of::<Decision>() as u32,
        verdict: 0,
        times_and_counts: [0; 3],
        reason: 0,
        reserved: 0,
    }
}

/// A table that is half full.
fn table(library: &Library, check_at: TableCheckAt) -> *mut c_void {
    half_full(library, check_at, 0, KEYED)
}

/// A half full table in which a hundred other keys have a policy of their own.
fn with_overrides(library: &Library, check_at: TableCheckAt) -> *mut c_void {
    let table = table(library, check_at);
    let mut spec = Spec { struct_size: size_of::<Spec>() as u32, algorithm: 0, rest: [0; 63] };
    for index in CAPACITY..CAPACITY + 100 {
        // SAFETY: the symbols have these signatures in tollbar.h; the pointers are live.
        unsafe {
            let parse: SpecParse = std::mem::transmute(library.symbol("tollbar_policy_spec_parse"));
            let set: TableSetOverride =
                std::mem::transmute(library.symbol("tollbar_table_set_override"));
            assert_eq!(parse(KEYED.as_ptr(), KEYED.len(), &mut spec, null_mut()), 0);
            assert_eq!(set(table, 0, key(index).as_ptr(), 8, &spec, 0), 0);
        }
    }
    table
}

fn half_full(
    library: &Library,
    check_at: TableCheckAt,
    hot_keys: u32,
    policy: &str,
) -> *mut c_void {
    let table = empty(library, hot_keys, policy);
    for index in 0..CAPACITY / 2 {
        assert_eq!(
            // SAFETY: a live table and key.
            unsafe { check_at(table, 0, key(index).as_ptr(), 8, 1, START - 1, null_mut()) },
            0
        );
    }
    table
}

/// A table of which every slot has been used by a key that has expired since.
fn flooded(library: &Library, check_at: TableCheckAt) -> *mut c_void {
    let table = empty(library, 0, KEYED);
    for index in 0..8 * CAPACITY {
        // The keys come ten milliseconds apart, the last some minutes before `START`. About one in
        // some hundreds finds no slot; the others fill the table as well.
        let now = START / 5 + index * 10_000_000;
        assert!(matches!(
            // SAFETY: a live table and key.
            unsafe { check_at(table, 0, key(index).as_ptr(), 8, 1, now, null_mut()) },
            0 | 1
        ));
    }
    table
}

/// A seeded table.
fn empty(library: &Library, hot_keys: u32, policy: &str) -> *mut c_void {
    let mut spec = Spec { struct_size: size_of::<Spec>() as u32, algorithm: 0, rest: [0; 63] };
    let mut table = null_mut();
    let options = Options {
        struct_size: size_of::<Options>() as u32,
        on_full: 0,
        capacity: CAPACITY,
        seed: SEED,
        missing_key: 0,
        clock: 0,
        mode: 0,
        flags: SEEDED,
        waiters: 0,
        hot_keys,
        overrides: 0,
        reserved: 0,
    };
    // SAFETY: the symbols have these signatures in tollbar.h; the pointers are live.
    unsafe {
        let parse: SpecParse = std::mem::transmute(library.symbol("tollbar_policy_spec_parse"));
        let new: TableNew = std::mem::transmute(library.symbol("tollbar_table_new"));
        assert_eq!(parse(policy.as_ptr(), policy.len(), &mut spec, null_mut()), 0);
        let specs = [&raw const spec];
        assert_eq!(new(specs.as_ptr(), 1, &options, &mut table), 0);
    }
    table
}
