//! Policies to structs of C and back.

use super::spec::{
    tollbar_class, tollbar_policy_spec, TOLLBAR_POLICY_BORROW, TOLLBAR_POLICY_COUNT_REJECTED,
    TOLLBAR_POLICY_HAS_INIT,
};
use crate::boundary::{policy_code, read};
use crate::status::{TOLLBAR_E_CALENDAR, TOLLBAR_E_OUT_OF_RANGE, TOLLBAR_E_RESERVED};
use core::ffi::c_char;
use core::mem::size_of;
use tollbar::policy::{Anchor, Classes, Kind, Knots, Mode, Policy, Rate, Unit, Zone};

/// The policy that a struct from C describes.
///
/// # Safety
/// `spec` is null or points to a readable struct of its `struct_size`.
pub unsafe fn policy(spec: *const tollbar_policy_spec) -> Result<Policy, i32> {
    // SAFETY: by the caller's promise.
    let spec = unsafe { read(spec) }?;
    let known = TOLLBAR_POLICY_BORROW | TOLLBAR_POLICY_COUNT_REJECTED | TOLLBAR_POLICY_HAS_INIT;
    if spec.flags & !known != 0 {
        return Err(TOLLBAR_E_RESERVED);
    }
    let borrow = spec.flags & TOLLBAR_POLICY_BORROW != 0;
    let init = match (spec.flags & TOLLBAR_POLICY_HAS_INIT != 0, borrow) {
        (true, _) => spec.init,
        (false, _) if spec.init != 0 => return Err(TOLLBAR_E_RESERVED),
        (false, true) => 0,
        (false, false) => spec.burst,
    };
    let second =
        Rate { limit: spec.second_limit, period: spec.second_period_ns, burst: spec.second_burst };
    let classes = spec.classes.map(|class| (class.name.map(|byte| byte as u8), class.reserve));
    let policy = Policy {
        limit: spec.limit,
        period: spec.period_ns,
        burst: spec.burst,
        kind: Kind::ALL.get(spec.algorithm as usize).copied().ok_or(TOLLBAR_E_OUT_OF_RANGE)?,
        init,
        borrow,
        anchor: choose(spec.anchor, &[Anchor::Epoch, Anchor::First])?,
        segments: spec.segments,
        mode: choose(spec.mode, &[Mode::N, Mode::Strict, Mode::Interpolated])?,
        slack: spec.slack,
        warm_up: spec.warm_up_ns,
        cold: spec.cold,
        ban: spec.ban_ns,
        ban_after: if spec.ban_ns != 0 { spec.ban_after.max(1) } else { spec.ban_after },
        count_rejected: spec.flags & TOLLBAR_POLICY_COUNT_REJECTED != 0,
        unit: choose(spec.unit, &[Unit::Permits, Unit::Bytes])?,
        classes: Classes::of_raw(&classes).map_err(policy_code)?,
        from: spec.from,
        zone: Zone::from_words(spec.zone).ok_or(TOLLBAR_E_CALENDAR)?,
        knots: Knots::from_array(&spec.knots),
        second: (second != Rate { limit: 0, period: 0, burst: 0 }).then_some(second),
    };
    policy.validate().map_err(policy_code)?;
    Ok(policy)
}

/// The struct that describes `policy`.
#[inline(never)]
pub(crate) fn spec_of(policy: &Policy) -> tollbar_policy_spec {
    let implied = if policy.borrow { 0 } else { policy.burst };
    let explicit = policy.init != implied;
    let flag = |on: bool, flag: u32| if on { flag } else { 0 };
    tollbar_policy_spec {
        struct_size: size_of::<tollbar_policy_spec>() as u32,
        algorithm: policy.kind as u32,
        limit: policy.limit,
        period_ns: policy.period,
        burst: policy.burst,
        init: if explicit { policy.init } else { 0 },
        slack: policy.slack,
        warm_up_ns: policy.warm_up,
        cold: policy.cold,
        segments: policy.segments,
        mode: policy.mode as u32,
        anchor: policy.anchor as u32,
        unit: policy.unit as u32,
        flags: flag(policy.borrow, TOLLBAR_POLICY_BORROW)
            | flag(policy.count_rejected, TOLLBAR_POLICY_COUNT_REJECTED)
            | flag(explicit, TOLLBAR_POLICY_HAS_INIT),
        ban_ns: policy.ban,
        ban_after: policy.ban_after,
        from: policy.from,
        second_limit: policy.second.map_or(0, |second| second.limit),
        second_period_ns: policy.second.map_or(0, |second| second.period),
        second_burst: policy.second.map_or(0, |second| second.burst),
        classes: policy.classes.to_raw().map(|(name, reserve)| tollbar_class {
            name: name.map(|byte| byte as c_char),
            reserve,
        }),
        knots: policy.knots.to_array(),
        zone: policy.zone.to_words(),
    }
}

fn choose<T: Copy>(number: u32, of: &[T]) -> Result<T, i32> {
    of.get(number as usize).copied().ok_or(TOLLBAR_E_OUT_OF_RANGE)
}
