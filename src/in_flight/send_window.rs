//! A send window in one word: how many permits are out, and which have been acknowledged.
//!
//! ```text
//!  63       44 43                    22 21                     0
//! ┌───────────┬────────────────────────┬────────────────────────┐
//! │ limit 20  │ sent 22                │ acknowledged 22        │
//! └───────────┴────────────────────────┴────────────────────────┘
//! ```
//!
//! `sent` and `acknowledged` count permits modulo 2^22, as TCP counts bytes. Their difference is
//! the number of permits in flight. It is at most the largest limit that the window has had, which
//! is below 2^20. So at any time at least three quarters of all numbers belong to no permit in
//! flight, and the window detects a late acknowledgement until three million permits have been sent
//! after it.

use crate::sync::{AtomicU64, Ordering};

/// The highest limit of a [`SendWindow`].
pub const SEND_LIMIT_MOST: u32 = (1 << 20) - 1;

/// A limit of the permits that are in flight at one time, in one word. Each call is one atomic
/// swap.
///
/// The receiver acknowledges permits one by one ([`SendWindow::release`]) or all up to a number
/// ([`SendWindow::acknowledge`], TCP's cumulative acknowledgement). A caller uses one of the two.
///
/// ```
/// use tollbar::in_flight::SendWindow;
///
/// let window = SendWindow::new(4);
/// let sent: Vec<u32> = (0..4).filter_map(|_| window.acquire(1)).collect();
/// assert_eq!(window.acquire(1), None);
/// assert!(window.acknowledge(sent[1])); // the first two
/// assert_eq!(window.read().usable(), 2);
/// ```
#[derive(Debug)]
#[repr(transparent)]
pub struct SendWindow(AtomicU64);

/// The state of a [`SendWindow`] at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The most permits that may be in flight.
    pub limit: u32,
    /// Permits sent, modulo 2^22.
    pub sent: u32,
    /// Permits acknowledged, modulo 2^22.
    pub acknowledged: u32,
}

const COUNT: u32 = 22;
const MASK: u32 = (1 << COUNT) - 1;

impl SendWindow {
    /// A window of `limit` permits. A limit above [`SEND_LIMIT_MOST`] counts as that one.
    #[cfg(not(loom))]
    pub const fn new(limit: u32) -> SendWindow {
        SendWindow(AtomicU64::new(Window { limit, sent: 0, acknowledged: 0 }.clamped().word()))
    }

    /// `new`, which is not const under loom.
    #[cfg(loom)]
    pub fn new(limit: u32) -> SendWindow {
        SendWindow(AtomicU64::new(Window { limit, sent: 0, acknowledged: 0 }.clamped().word()))
    }

    /// Sends `permits` permits, and returns the number of the last one, for
    /// [`SendWindow::acknowledge`]. `None`, and it sends none, if fewer are usable.
    #[inline]
    pub fn acquire(&self, permits: u32) -> Option<u32> {
        let sent =
            |window: Window| Window { sent: window.sent.wrapping_add(permits) & MASK, ..window };
        self.change(|window| (permits <= window.usable()).then(|| sent(window)))
            .map(|window| sent(window).sent)
    }

    /// Releases any `permits` of the permits in flight. False, and nothing changes, if fewer are in
    /// flight.
    #[inline]
    pub fn release(&self, permits: u32) -> bool {
        self.change(|window| {
            let acknowledged = window.acknowledged.wrapping_add(permits) & MASK;
            (permits <= window.in_flight()).then_some(Window { acknowledged, ..window })
        })
        .is_some()
    }

    /// Releases all permits up to number `last`. False, and nothing changes, if no permit in flight
    /// has this number.
    #[inline]
    pub fn acknowledge(&self, last: u32) -> bool {
        self.change(|window| {
            let came_back = last.wrapping_sub(window.acknowledged) & MASK;
            let acknowledged = last & MASK;
            (last <= MASK && came_back != 0 && came_back <= window.in_flight())
                .then_some(Window { acknowledged, ..window })
        })
        .is_some()
    }

    /// Sets the limit, [`SEND_LIMIT_MOST`] at most. If more permits are in flight, none is usable
    /// until enough of them are released.
    pub fn resize(&self, limit: u32) {
        self.change(|window| Some(Window { limit, ..window }.clamped()));
    }

    /// The window's state. Other threads may change it at once. Acquire: the caller sees what the
    /// holders wrote whose permits have come back.
    #[inline]
    pub fn read(&self) -> Window {
        Window::of(self.0.load(Ordering::Acquire))
    }

    /// Replaces the word by `next` of it, and returns the former window. AcqRel: the next holder of
    /// a permit sees what the former one wrote before it released.
    #[inline(always)]
    fn change(&self, next: impl Fn(Window) -> Option<Window>) -> Option<Window> {
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            let window = Window::of(word);
            let new = next(window)?.word();
            match self.0.compare_exchange_weak(word, new, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return Some(window),
                Err(found) => word = found,
            }
        }
    }
}

impl Window {
    /// Permits sent and not acknowledged.
    #[inline]
    pub const fn in_flight(self) -> u32 {
        self.sent.wrapping_sub(self.acknowledged) & MASK
    }

    /// Permits that may be sent now. 0 if more permits than the limit are in flight.
    #[inline]
    pub const fn usable(self) -> u32 {
        self.limit.saturating_sub(self.in_flight())
    }

    const fn of(word: u64) -> Window {
        Window {
            limit: (word >> (2 * COUNT)) as u32,
            sent: (word >> COUNT) as u32 & MASK,
            acknowledged: word as u32 & MASK,
        }
    }

    const fn word(self) -> u64 {
        (self.limit as u64) << (2 * COUNT) | (self.sent as u64) << COUNT | self.acknowledged as u64
    }

    const fn clamped(self) -> Window {
        let limit = if self.limit > SEND_LIMIT_MOST { SEND_LIMIT_MOST } else { self.limit };
        Window { limit, ..self }
    }
}
