//! The counters of limiters and tables as text for Prometheus, and how long decisions take.

use super::boundary::*;
use super::limiter::tollbar_limiter;
use super::status::*;
use super::table::tollbar_table;
use core::ffi::c_char;
use core::mem::{align_of, size_of};
use tollbar::metrics::{
    write_each as print, write_each_times as print_times, Format, Source, Times,
};

/// Prometheus' text format 0.0.4, of the media type `text/plain; version=0.0.4`.
pub const TOLLBAR_METRICS_PROMETHEUS: u32 = 0;
/// OpenMetrics 1.0, of the media type `application/openmetrics-text; version=1.0.0; charset=utf-8`.
/// The text ends with the line `# EOF`, after which the format allows no further metrics.
pub const TOLLBAR_METRICS_OPENMETRICS: u32 = 1;

/// The most sources of tollbar_metrics and of tollbar_times_metrics.
pub const TOLLBAR_METRICS_MOST: u32 = 1024;

/// For tollbar_metrics_source.flags: the texts of policies leave out the burst. For a table whose
/// policies have a greater burst than any limit, because its callers leave the difference
/// untouched.
pub const TOLLBAR_METRICS_RATES_ONLY: u64 = 1;
/// For tollbar_metrics_source.flags: the table's first policy has no series, because no request
/// asks for it.
pub const TOLLBAR_METRICS_WITHOUT_FIRST: u64 = 2;

/// A limiter or a table, and the name of its series.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_metrics_source {
    /// The value of the label `limit` of its series, in UTF-8. The sources of a call must have
    /// different names.
    pub name: *const c_char,
    /// The bytes of the name.
    pub name_length: usize,
    /// The limiter. NULL if the source is a table.
    pub limiter: *const tollbar_limiter,
    /// The table, whose counters count the decisions of all processes that share it. NULL if the
    /// source is a limiter.
    pub table: *const tollbar_table,
    /// TOLLBAR_METRICS_RATES_ONLY and TOLLBAR_METRICS_WITHOUT_FIRST, or 0. Other bits are ignored.
    pub flags: u64,
}

/// Writes the metrics of `count` sources into `buffer`, and a NUL: decisions by policy and verdict,
/// sizes, evictions, clock steps.
///
/// `format` is TOLLBAR_METRICS_PROMETHEUS or TOLLBAR_METRICS_OPENMETRICS. There are at most
/// TOLLBAR_METRICS_MOST sources (TOLLBAR_E_OUT_OF_RANGE). TOLLBAR_E_LIMITS: a source has neither a
/// limiter nor a table, or both. TOLLBAR_E_OUT_OF_RANGE: a name is not UTF-8. The call writes the
/// text's length without the NUL to `*length`, unless `length` is NULL. If the buffer is too small,
/// the call still writes `*length`, and returns TOLLBAR_E_BUFFER_TOO_SMALL. Counters may gain
/// digits until the next call, so make the next buffer a little larger.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_metrics(
    sources: *const tollbar_metrics_source,
    count: usize,
    format: u32,
    buffer: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> i32 {
    call(|| {
        let format = format_of(format)?;
        if count > TOLLBAR_METRICS_MOST as usize {
            return Err(TOLLBAR_E_OUT_OF_RANGE);
        }
        array(sources, count)?;
        // SAFETY: by the caller's promise there are `count` sources, which are aligned.
        let source = |n: usize| unsafe { source_of(&*sources.add(n)) };
        (0..count).try_for_each(|n| source(n).map(|_| ()))?;
        // Each of them is sound, so none is left out.
        let each = |with: &mut dyn FnMut(&Source<'_>)| {
            (0..count).filter_map(|n| source(n).ok()).for_each(|one| with(&one))
        };
        // SAFETY: by the caller's promise.
        unsafe { fill(buffer, capacity, length, |out| print(&each, format, out)) }
    })
}

/// The format of a TOLLBAR_METRICS_ number.
pub fn format_of(format: u32) -> Result<Format, i32> {
    match format {
        TOLLBAR_METRICS_PROMETHEUS => Ok(Format::Prometheus),
        TOLLBAR_METRICS_OPENMETRICS => Ok(Format::OpenMetrics),
        _ => Err(TOLLBAR_E_OUT_OF_RANGE),
    }
}

/// # Safety
/// The source's pointers are NULL or as said.
#[inline(never)]
unsafe fn source_of(source: &tollbar_metrics_source) -> Result<Source<'_>, i32> {
    // SAFETY: by the caller's promise.
    let name = unsafe { name_of(source.name, source.name_length) }?;
    let read = match (source.limiter.is_null(), source.table.is_null()) {
        (true, false) => {
            // SAFETY: by the caller's promise.
            Ok(Source::table(name, &unsafe { reference(source.table) }?.table))
        }
        (false, true) => {
            // SAFETY: by the caller's promise.
            let limiter = unsafe { reference(source.limiter) }?;
            let policy = limiter.limiter.changed_policy().unwrap_or(&limiter.policy);
            Ok(Source::limiter(name, policy, &limiter.limiter.snapshot()))
        }
        _ => Err(TOLLBAR_E_LIMITS),
    };
    let mut read = read?;
    if source.flags & TOLLBAR_METRICS_RATES_ONLY != 0 {
        read = read.rates_only();
    }
    if source.flags & TOLLBAR_METRICS_WITHOUT_FIRST != 0 {
        read = read.without_first_policy();
    }
    Ok(read)
}

/// # Safety
/// `name` is NULL or has `length` readable bytes.
#[inline(never)]
unsafe fn name_of<'a>(name: *const c_char, length: usize) -> Result<&'a str, i32> {
    // SAFETY: by the caller's promise.
    let name = unsafe { bytes(name, length) }?;
    core::str::from_utf8(name).map_err(|_| TOLLBAR_E_OUT_OF_RANGE)
}

/// The number of calls between tollbar_times_begin and tollbar_times_end of which one is measured,
/// the first among them.
pub const TOLLBAR_TIMES_EVERY: u32 = 1024;

/// A histogram of the time that calls take. A struct of zeroes is an empty histogram, so `= {0}`, a
/// static variable and calloc make one. Threads may share a histogram; they then share its cache
/// lines, and if two threads count at the same instant, one count may be lost. While threads use a
/// histogram, only tollbar_times_begin, _end and _metrics may access it.
#[repr(C)]
pub struct tollbar_times {
    /// The calls that have begun.
    pub calls: u64,
    /// Nanoseconds of all measured calls.
    pub sum_ns: u64,
    /// The number of measured calls by their length. The first field counts calls of at most 256
    /// ns, each next one calls of at most twice as long, up to 2^24 ns (17 ms). The last field
    /// counts all longer calls.
    pub counts: [u64; 18],
}

// The Rust type is repr(C), and has a counter of 64 bits for each of these fields, in this order.
const _: () = assert!(
    size_of::<tollbar_times>() == size_of::<Times>()
        && align_of::<tollbar_times>() == align_of::<Times>()
        && TOLLBAR_TIMES_EVERY as u64 == Times::EVERY
);

/// Times, and the name of their series.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_times_source {
    /// The value of the label `limit` of their series, in UTF-8. The sources of a call must have
    /// different names.
    pub name: *const c_char,
    /// The bytes of the name.
    pub name_length: usize,
    /// The times.
    pub times: *const tollbar_times,
}

/// Begins a call, such as a decision. Returns the time in nanoseconds for tollbar_times_end if the
/// call is measured, otherwise 0. With NULL it returns 0. TOLLBAR_TIMES_BEGIN does the same, and
/// calls this function only for a call that is measured.
///
/// # Safety
/// `times` is NULL or all-zero at first.
#[no_mangle]
pub unsafe extern "C" fn tollbar_times_begin(times: *mut tollbar_times) -> u64 {
    // SAFETY: by the caller's promise.
    unsafe { times_of(times) }.map_or(0, Times::begin)
}

/// Ends a call. `begin_ns` is the result of tollbar_times_begin; with 0 this call does nothing, and
/// TOLLBAR_TIMES_END does not make it.
///
/// # Safety
/// As tollbar_times_begin.
#[no_mangle]
pub unsafe extern "C" fn tollbar_times_end(times: *mut tollbar_times, begin_ns: u64) {
    // SAFETY: by the caller's promise.
    if let Ok(times) = unsafe { times_of(times) } {
        times.end(begin_ns);
    }
}

/// Writes the histograms of `count` sources into `buffer`, and a NUL: tollbar_decision_nanoseconds
/// in Prometheus' text format. The text goes before that of tollbar_metrics, which may end with
/// `# EOF`.
///
/// There are at most TOLLBAR_METRICS_MOST sources (TOLLBAR_E_OUT_OF_RANGE). TOLLBAR_E_NULL: a
/// source has no times. TOLLBAR_E_OUT_OF_RANGE: a name is not UTF-8. `length` and a small buffer
/// are as for tollbar_metrics. Calls that are measured meanwhile may be in a part of the lines.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_times_metrics(
    sources: *const tollbar_times_source,
    count: usize,
    buffer: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> i32 {
    call(|| {
        if count > TOLLBAR_METRICS_MOST as usize {
            return Err(TOLLBAR_E_OUT_OF_RANGE);
        }
        array(sources, count)?;
        let source = |n: usize| {
            // SAFETY: by the caller's promise there are `count` sources, which are aligned, and
            // their pointers are NULL or as said.
            unsafe {
                let source = &*sources.add(n);
                Ok::<_, i32>((name_of(source.name, source.name_length)?, times_of(source.times)?))
            }
        };
        (0..count).try_for_each(|n| source(n).map(|_| ()))?;
        // Each of them is sound, so none is left out.
        let each = |with: &mut dyn FnMut(&str, &Times)| {
            (0..count).filter_map(|n| source(n).ok()).for_each(|(name, times)| with(name, times))
        };
        // SAFETY: by the caller's promise.
        unsafe { fill(buffer, capacity, length, |out| print_times(&each, out)) }
    })
}

/// # Safety
/// `times` is null or live, and only these calls access it while threads share it.
unsafe fn times_of<'a>(times: *const tollbar_times) -> Result<&'a Times, i32> {
    // SAFETY: both types have one layout (the assertion above), and each bit pattern is a value;
    // the rest is the caller's promise.
    unsafe { reference(times.cast::<Times>()) }
}
