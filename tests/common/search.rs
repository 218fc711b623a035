//! How long searches are, for tests in `tests` and beside the sources.

/// Whether searches make only a part of their rounds: those of `make soak ONLY=searches` make all.
pub fn is_short() -> bool {
    std::env::var_os("TOLLBAR_SEARCH").is_none()
}

/// `full` rounds of a search in `make soak ONLY=searches`, and a tenth of them otherwise.
pub fn rounds(full: u64) -> u64 {
    if is_short() {
        full.div_ceil(10)
    } else {
        full
    }
}

/// The seed of a search: `first`, or another one for each number in `TOLLBAR_SEARCH`.
pub fn seed(first: u64) -> u64 {
    let number = std::env::var("TOLLBAR_SEARCH").ok().and_then(|of| of.parse::<u64>().ok());
    first.wrapping_add(number.unwrap_or(0) << 32)
}
