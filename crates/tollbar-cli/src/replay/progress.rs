//! A bar on the terminal while a log is read. Without a terminal there is no bar.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// The bar of one log.
pub struct Progress {
    bar: ProgressBar,
    read: Arc<AtomicU64>,
}

/// Lines between two updates of the bar.
const LINES: u64 = 1 << 14;

impl Progress {
    /// A bar for a file of `size` bytes, 0 if unknown, of which `read` have been read.
    pub fn new(name: &str, size: u64, read: Arc<AtomicU64>) -> Progress {
        // Draws on standard error, if that is a terminal, ten times a second at most.
        let bar = ProgressBar::with_draw_target(
            (size > 0).then_some(size),
            ProgressDrawTarget::stderr_with_hz(10),
        );
        let form = match size {
            0 => "{msg} {bytes} {elapsed}",
            _ => "{msg} [{bar:30}] {bytes}/{total_bytes} {bytes_per_sec}, {eta} left",
        };
        if let Ok(style) = ProgressStyle::with_template(form) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(crate::text::plain_line(name.as_bytes()));
        bar.enable_steady_tick(Duration::from_millis(250));
        Progress { bar, read }
    }

    /// So many lines have been read.
    #[inline]
    pub fn lines(&self, number: u64) {
        if number % LINES == 0 {
            self.bar.set_position(self.read.load(Ordering::Relaxed));
        }
    }

    /// Writes a line on standard error above the bar.
    pub fn complain(&self, text: &str) {
        self.bar.suspend(|| eprintln!("tollbar: {text}"));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
