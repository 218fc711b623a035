//! Meters: green, yellow and red packets.

use super::boundary::*;
use super::status::*;
use super::table::table_code;
use core::mem::{align_of, size_of};
use tollbar::clock::{Clock, Tsc};
use tollbar::meter::{Color, Meter, MeterState, Rate};

/// Within the committed rate and burst. Also the colour of a packet that no meter has coloured.
pub const TOLLBAR_COLOR_GREEN: u32 = 0;
/// Above the committed burst, and within the excess burst or the peak rate.
pub const TOLLBAR_COLOR_YELLOW: u32 = 1;
/// Above both.
pub const TOLLBAR_COLOR_RED: u32 = 2;

/// What a meter measures. Start from TOLLBAR_METER_INIT. With `peak_bytes` 0 it is RFC 2697's: one
/// rate with a committed and an excess burst. Otherwise it is RFC 2698's: a committed and a peak
/// rate.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_meter {
    /// sizeof(tollbar_meter), as the caller's compiler sees it.
    pub struct_size: u32,
    /// Must be 0.
    pub reserved: u32,
    /// The committed rate (CIR): bytes per `period_ns`, below 16 a nanosecond.
    pub committed_bytes: u64,
    /// The period of the rates in nanoseconds.
    pub period_ns: u64,
    /// The committed burst (CBS) in bytes, up to 2^62.
    pub committed_burst: u64,
    /// The peak rate (PIR): bytes per `period_ns`, at least `committed_bytes`. 0: one rate.
    pub peak_bytes: u64,
    /// The peak burst (PBS) in bytes, or with one rate the excess burst (EBS).
    pub second_burst: u64,
}

// SAFETY: repr(C), u32 first, u32 and u64 fields without holes.
unsafe impl Growable for tollbar_meter {
    const FIRST_SIZE: usize = 48;
}

const _: () = assert!(size_of::<tollbar_meter>() == 48);

/// The buckets of a meter: 24 bytes of the caller's memory. Threads may share it, and processes in
/// shared memory. If all bytes are 0, the buckets are full. The library uses the 16 bytes of it
/// that are aligned to 16, so do not move a state to another address.
#[repr(C)]
pub struct tollbar_meter_state {
    /// The library's own.
    pub words: [u64; 3],
}

const _: () = assert!(size_of::<MeterState>() == 16 && align_of::<MeterState>() == 16);

/// Returns TOLLBAR_ALLOWED if a meter can have these numbers. TOLLBAR_E_PERIOD_ZERO,
/// TOLLBAR_E_BURST_ZERO, TOLLBAR_E_BURST_TOO_LARGE; TOLLBAR_E_RATE_TOO_HIGH also if the peak rate
/// is below the committed one; TOLLBAR_E_UNSUPPORTED if the processor has no 16-byte
/// compare-and-swap.
///
/// # Safety
/// `meter` is NULL or points to a readable struct of its `struct_size`.
#[no_mangle]
pub unsafe extern "C" fn tollbar_meter_validate(meter: *const tollbar_meter) -> i32 {
    // SAFETY: by the caller's promise.
    call(|| unsafe { meter_of(meter) }.map(|_| TOLLBAR_ALLOWED))
}

/// Returns the colour of a packet of `bytes`, one of TOLLBAR_COLOR_*, and charges the bytes to the
/// buckets of that colour; a red packet charges nothing. `before` is the colour that an earlier
/// meter gave, or TOLLBAR_COLOR_GREEN; the result is never better. The call reads
/// TOLLBAR_CLOCK_TSC. It returns TOLLBAR_E_OUT_OF_RANGE if `before` is no TOLLBAR_COLOR_ value, and
/// the errors of tollbar_meter_validate.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_meter_color(
    meter: *const tollbar_meter,
    state: *mut tollbar_meter_state,
    bytes: u64,
    before: u32,
) -> i32 {
    // SAFETY: by the caller's promise.
    call(|| unsafe { color(meter, state, bytes, before, None) })
}

/// tollbar_meter_color at the caller's time, in nanoseconds of one clock.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_meter_color_at(
    meter: *const tollbar_meter,
    state: *mut tollbar_meter_state,
    bytes: u64,
    before: u32,
    now_ns: u64,
) -> i32 {
    // SAFETY: by the caller's promise.
    call(|| unsafe { color(meter, state, bytes, before, Some(now_ns)) })
}

/// # Safety
/// As the public calls.
unsafe fn color(
    meter: *const tollbar_meter,
    state: *mut tollbar_meter_state,
    bytes: u64,
    before: u32,
    now: Option<u64>,
) -> Result<i32, i32> {
    // SAFETY: by the caller's promise.
    let (meter, _) = unsafe { (meter_of(meter)?, reference(state)?) };
    let colors = [Color::Green, Color::Yellow, Color::Red];
    let before = *colors.get(before as usize).ok_or(TOLLBAR_E_OUT_OF_RANGE)?;
    let off = (state as usize) & (align_of::<MeterState>() - 1);
    // SAFETY: `reference` has checked that the state is aligned to 8, so 16 of its 24 bytes, at 0
    // or 8, are aligned to 16. All their values are states, and only atomics change them.
    let state = unsafe { &*state.byte_add(off).cast::<MeterState>() };
    let now = now.unwrap_or_else(|| Tsc.now());
    Ok(meter.color_at(state, now, bytes, before) as i32)
}

/// # Safety
/// As [`tollbar_meter_validate`].
unsafe fn meter_of(meter: *const tollbar_meter) -> Result<Meter, i32> {
    // SAFETY: by the caller's promise.
    let meter = unsafe { read(meter) }?;
    if meter.reserved != 0 {
        return Err(TOLLBAR_E_RESERVED);
    }
    MeterState::supported().map_err(table_code)?;
    let committed = Rate {
        limit: meter.committed_bytes,
        period: meter.period_ns,
        burst: meter.committed_burst,
    };
    let made = match meter.peak_bytes {
        0 => Meter::single_rate(committed, meter.second_burst),
        limit => Meter::two_rates(
            committed,
            Rate { limit, period: meter.period_ns, burst: meter.second_burst },
        ),
    };
    made.map_err(policy_code)
}
