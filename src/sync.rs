//! The choice between real atomics and loom's model of them, and helpers that differ with it.

mod futex;
mod two_words;

#[cfg(not(loom))]
pub use core::sync::atomic::{fence, AtomicPtr, AtomicU32, AtomicU64, Ordering};
#[cfg(loom)]
pub use loom::sync::atomic::{fence, AtomicPtr, AtomicU32, AtomicU64, Ordering};

pub use crossbeam_utils::CachePadded;
pub use futex::Futex;
#[cfg(not(loom))]
pub use futex::{sleep_on, sleep_on_any, wake_all};
pub(crate) use two_words::TwoWords;

use alloc::boxed::Box;

/// A state word: an atomic, or in loom's models the first of two.
#[doc(hidden)]
pub trait Word {
    /// Loads the word.
    fn load(&self, order: Ordering) -> u64;

    /// Swaps `new` in if the word is `old`. `Err` has the word that was there.
    ///
    /// # Errors
    /// The word that was there, if it was not `old`.
    fn exchange(
        &self,
        old: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64>;

    /// [`Word::exchange`] for a loop: it may fail although the word is `old`.
    ///
    /// # Errors
    /// The word that was there.
    #[inline(always)]
    fn exchange_weak(
        &self,
        old: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        self.exchange(old, new, success, failure)
    }

    /// Raises the word to `least`. False: other callers have changed it at every try.
    fn raise(&self, least: u64) -> bool {
        // Relaxed: the caller's next swap of another word makes it visible.
        let mut seen = self.load(Ordering::Relaxed);
        for _ in 0..64 {
            if seen >= least {
                return true;
            }
            match self.exchange(seen, least, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(other) => seen = other,
            }
        }
        false
    }
}

/// A reference to a word is that word.
impl<W: Word> Word for &W {
    #[inline(always)]
    fn load(&self, order: Ordering) -> u64 {
        W::load(self, order)
    }

    #[inline(always)]
    fn exchange(&self, old: u64, new: u64, ok: Ordering, err: Ordering) -> Result<u64, u64> {
        W::exchange(self, old, new, ok, err)
    }

    #[inline(always)]
    fn exchange_weak(&self, old: u64, new: u64, ok: Ordering, err: Ordering) -> Result<u64, u64> {
        W::exchange_weak(self, old, new, ok, err)
    }

    #[inline(always)]
    fn raise(&self, least: u64) -> bool {
        W::raise(self, least)
    }
}

impl Word for AtomicU64 {
    #[inline(always)]
    fn load(&self, order: Ordering) -> u64 {
        AtomicU64::load(self, order)
    }

    #[inline(always)]
    fn exchange(
        &self,
        old: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        self.compare_exchange(old, new, success, failure)
    }

    #[inline(always)]
    fn exchange_weak(
        &self,
        old: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        self.compare_exchange_weak(old, new, success, failure)
    }

    #[inline(always)]
    fn raise(&self, least: u64) -> bool {
        // Relaxed: as in the loop of other words.
        self.fetch_max(least, Ordering::Relaxed);
        true
    }
}

/// Beside plain data that a thread writes before it publishes a pointer to it. In loom's models
/// [`Written::is_read`] fails on a thread that may not see the data; elsewhere it is nothing.
#[derive(Debug)]
pub(crate) struct Written(#[cfg(loom)] loom::cell::UnsafeCell<()>);

impl Written {
    /// The calling thread has written the data, or is about to, before it publishes them.
    #[inline(always)]
    pub(crate) fn new() -> Written {
        Written(
            #[cfg(loom)]
            loom::cell::UnsafeCell::new(()),
        )
    }

    /// The calling thread reads the data.
    #[inline(always)]
    pub(crate) fn is_read(&self) {
        #[cfg(loom)]
        self.0.with(|_| ());
    }
}

/// Tells the compiler that the block which calls this is rare, so that the common case takes no
/// branch there. A processor predicts from the branches that it has taken last: the fewer branches
/// a call takes, the more calls it remembers.
#[cold]
pub(crate) const fn rarely() {}

/// Adds one to a word that only the caller writes. It is one instruction, so no addition is lost if
/// a signal handler interrupts the caller and adds to the same word.
#[cfg(all(target_arch = "x86_64", not(loom), not(tollbar_tsan)))]
#[inline(always)]
pub(crate) fn bump(word: &AtomicU64) {
    // SAFETY: an aligned word of an atomic. Only the caller writes it, other threads load it.
    unsafe { core::arch::asm!("inc qword ptr [{}]", in(reg) word.as_ptr(), options(nostack)) };
}

/// Adds one to a word that only the caller writes. If a signal handler interrupts the caller and
/// adds to the same word, the handler's addition is lost. (The thread sanitizer sees these
/// accesses, but none in assembler.)
#[cfg(any(not(target_arch = "x86_64"), loom, tollbar_tsan))]
#[inline(always)]
pub(crate) fn bump(word: &AtomicU64) {
    let next = word.load(Ordering::Relaxed).wrapping_add(1);
    #[cfg(not(loom))]
    word.store(next, Ordering::Relaxed);
    // A swap, because loom 0.7 keeps no order among plain stores to one atomic: a thread that has
    // joined this one may read an older value.
    #[cfg(loom)]
    word.swap(next, Ordering::Relaxed);
}

/// `len` zeroes on the heap; `None` if the allocation fails or `len` is 0.
///
/// It does not use `Vec`, whose growth would bring panics into the C artefacts. If the system gives
/// zeroed memory, the call does not touch it.
#[cfg(not(loom))]
pub fn zeroed(len: usize) -> Option<Box<[AtomicU64]>> {
    // SAFETY: zero bytes are an AtomicU64 of 0.
    unsafe { zeroed_values(len) }
}

/// As `zeroed`, for values of another type; `None` also if `T` has no size.
///
/// # Safety
/// Zero bytes are a value of `T`.
#[cfg(not(loom))]
pub unsafe fn zeroed_values<T>(len: usize) -> Option<Box<[T]>> {
    let layout = core::alloc::Layout::array::<T>(len).ok()?;
    if layout.size() == 0 {
        return None;
    }
    // SAFETY: the layout's size is not 0.
    let values = unsafe { alloc::alloc::alloc_zeroed(layout) }.cast::<T>();
    if values.is_null() {
        return None;
    }
    // SAFETY: a fresh block of that layout from the allocator that Box frees with; zero bytes are
    // values by the caller's promise.
    Some(unsafe { Box::from_raw(core::ptr::slice_from_raw_parts_mut(values, len)) })
}

/// A `T` of zero bytes on the heap, where it is made; `None` if the allocation fails or `T` has no
/// size.
///
/// # Safety
/// Zero bytes are a value of `T`.
#[cfg(not(loom))]
pub unsafe fn zeroed_value<T>() -> Option<Box<T>> {
    let layout = core::alloc::Layout::new::<T>();
    if layout.size() == 0 {
        return None;
    }
    // SAFETY: the layout's size is not 0.
    let block = unsafe { alloc::alloc::alloc_zeroed(layout) }.cast::<T>();
    if block.is_null() {
        return None;
    }
    // SAFETY: a fresh block of T's layout from the allocator that Box frees with; zero bytes are a
    // value by the caller's promise.
    Some(unsafe { Box::from_raw(block) })
}

/// [`zeroed`] with loom's atomics.
#[cfg(loom)]
pub fn zeroed(len: usize) -> Option<Box<[AtomicU64]>> {
    Some((0..len).map(|_| AtomicU64::new(0)).collect())
}

/// `value` on the heap.
#[cfg(loom)]
pub fn boxed<T>(value: T) -> Option<Box<T>> {
    Some(Box::new(value))
}

/// `value` on the heap; `None` if the allocation fails or `T` has no size.
#[cfg(not(loom))]
pub fn boxed<T>(value: T) -> Option<Box<T>> {
    let layout = core::alloc::Layout::new::<T>();
    if layout.size() == 0 {
        return None;
    }
    // SAFETY: the layout's size is not 0.
    let block = unsafe { alloc::alloc::alloc(layout) }.cast::<T>();
    if block.is_null() {
        return None;
    }
    // SAFETY: fresh memory of T's layout from the allocator that Box frees with.
    unsafe {
        block.write(value);
        Some(Box::from_raw(block))
    }
}

/// `len` copies of `value` on the heap; `None` if the allocation fails or its size is 0. It does
/// not use `Vec`; see `zeroed`.
pub fn filled<T: Copy>(len: usize, value: T) -> Option<Box<[T]>> {
    let layout = core::alloc::Layout::array::<T>(len).ok()?;
    if layout.size() == 0 {
        return None;
    }
    // SAFETY: the layout's size is not 0.
    let block = unsafe { alloc::alloc::alloc(layout) }.cast::<T>();
    if block.is_null() {
        return None;
    }
    for n in 0..len {
        // SAFETY: within the block, which is aligned for T. T is Copy, so nothing needs to be
        // dropped.
        unsafe { block.add(n).write(value) };
    }
    // SAFETY: a block of that layout, all of it written, from the allocator that Box frees with.
    Some(unsafe { Box::from_raw(core::ptr::slice_from_raw_parts_mut(block, len)) })
}

/// `preemptions` in the long form of the models (`make soak ONLY=loom`), and one otherwise: for
/// models that take seconds with two.
#[cfg(loom)]
pub fn deep(preemptions: usize) -> usize {
    if is_short() {
        1
    } else {
        preemptions
    }
}

#[cfg(loom)]
fn is_short() -> bool {
    std::env::var_os("TOLLBAR_SOAK").is_none()
}

/// Explores `f` with at most `preemptions` preemptions, or as many as `LOOM_MAX_PREEMPTIONS` says.
/// Without that there are at most two in the short form. Returns the number of executions.
#[cfg(loom)]
pub fn explore(preemptions: usize, f: impl Fn() + Sync + Send + 'static) -> usize {
    let most = if is_short() { preemptions.min(2) } else { preemptions };
    explore_within(loom::model::Builder::new().preemption_bound.unwrap_or(most), f)
}

/// Explores `f` with at most `preemptions` preemptions. Returns the number of executions, which
/// `tools/bounds.py` reads here; the tool measures other bounds, too, by `TOLLBAR_BOUND`.
#[cfg(loom)]
pub fn explore_within(preemptions: usize, f: impl Fn() + Sync + Send + 'static) -> usize {
    use std::sync::atomic::AtomicUsize;

    let measured = std::env::var("TOLLBAR_BOUND").ok().and_then(|bound| bound.parse().ok());
    let bound = measured.unwrap_or(preemptions);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(bound);
    // Far more steps than any model takes. A model that reaches it loops for ever.
    builder.max_branches = 3_000;
    let executions = std::sync::Arc::new(AtomicUsize::new(0));
    let count = executions.clone();
    builder.check(move || {
        count.fetch_add(1, Ordering::Relaxed);
        f();
    });
    let executions = executions.load(Ordering::Relaxed);
    std::println!("explored: {executions} executions, {bound} preemptions");
    executions
}
