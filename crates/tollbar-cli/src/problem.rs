//! What ends the program early: a message and an exit status.

use std::fmt;
use tollbar::policy::SyntaxError;

/// Why the command stops. `Display` is the message without the program's name.
#[derive(Debug)]
pub struct Problem {
    /// 1: something could not be read, written or allocated. 2: wrong usage, or faults of a file.
    /// 3: a file is sound, and something in it is not as it should be.
    pub status: u8,
    /// Whether each line begins with a file, a line and a column, as editors want it.
    pub has_places: bool,
    /// The message; lines after the first are shown as they are.
    pub text: String,
}

/// The result of everything that can fail.
pub type Result<T> = std::result::Result<T, Problem>;

impl Problem {
    /// Something could not be read, written or allocated.
    pub fn io(text: impl Into<String>) -> Problem {
        Problem { status: 1, has_places: false, text: text.into() }
    }

    /// The caller asked for something that cannot be.
    pub fn usage(text: impl Into<String>) -> Problem {
        Problem { status: 2, has_places: false, text: text.into() }
    }

    /// Faults of a file: a line for each, with its place.
    pub fn faults(text: impl Into<String>) -> Problem {
        Problem { status: 2, has_places: true, text: text.into() }
    }

    /// What was found in a sound file.
    pub fn found(text: impl Into<String>) -> Problem {
        Problem { status: 3, has_places: true, text: text.into() }
    }

    /// A text of the caller is wrong: says where, with a mark below it.
    pub fn syntax(what: &str, text: &str, error: &SyntaxError) -> Problem {
        let shown: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        // The column counts bytes. The mark needs one blank for each character before it.
        let before = text.char_indices().take_while(|(at, _)| at + 1 < error.column).count();
        Problem::usage(format!("{what}, {error}\n  {shown}\n  {:before$}^", ""))
    }

    /// `name: what the system said`.
    pub fn system(name: &str, error: &std::io::Error) -> Problem {
        Problem::io(format!("{name}: {}", crate::text::system(error)))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
