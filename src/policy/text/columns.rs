//! The columns of a policy's options, for errors about a policy that can be read and is refused.

use crate::policy::{Kind, Opt, Policy, PolicyError, CLASSES_MOST};

/// The column at which the text names each option, and at which it first gives a number with a
/// size. Columns count from 1. 0: not given.
#[derive(Default)]
pub(super) struct OptionColumns {
    pub(super) options: [usize; Opt::ALL.len()],
    /// The column of each class's reserve.
    pub(super) reserves: [usize; CLASSES_MOST],
    pub(super) size: usize,
    /// The column at which the policy begins.
    pub(super) start: usize,
}

impl OptionColumns {
    pub(super) fn column(&self, option: Opt) -> usize {
        self.options.get(option as usize).copied().unwrap_or(0)
    }

    /// The column of the fault in a policy that can be read but is refused.
    pub(super) fn blame(&self, policy: &Policy, why: PolicyError, period: usize) -> usize {
        match why {
            PolicyError::PeriodZero | PolicyError::Quota | PolicyError::Calendar => period,
            PolicyError::BurstZero | PolicyError::BurstTooLarge => self.column(Opt::Burst),
            PolicyError::InitAboveBurst => self.column(Opt::Init),
            PolicyError::Segments => self.column(Opt::Segments),
            PolicyError::WarmUp if self.column(Opt::Cold) != 0 && policy.warm_up != 0 => {
                self.column(Opt::Cold)
            }
            PolicyError::WarmUp => self.column(Opt::Warm).max(self.column(Opt::Algo)),
            PolicyError::Ban if policy.ban != 0 && self.column(Opt::After) != 0 => {
                self.column(Opt::After)
            }
            PolicyError::Ban => self.column(Opt::Ban).max(self.column(Opt::After)),
            PolicyError::Classes => match policy.class_without_room() {
                Some(class) if !policy.borrow => self.reserves.get(class).copied().unwrap_or(0),
                _ => self.column(Opt::Reserve),
            },
            PolicyError::NotOneWord => self.column(Opt::Algo),
            PolicyError::Knots => self.column(Opt::Curve).max(self.column(Opt::Refill)),
            PolicyError::OptionMismatch => {
                self.stranger(policy.kind).unwrap_or(self.column(Opt::Ban))
            }
            _ => 0,
        }
        .max(self.start)
    }

    /// The column of the first option that the algorithm does not have.
    pub(super) fn stranger(&self, kind: Kind) -> Option<usize> {
        let strange = |(column, option): (&usize, &Opt)| {
            (*column != 0 && !kind.takes(*option)).then_some(*column)
        };
        self.options.iter().zip(Opt::ALL).filter_map(strange).min()
    }
}
