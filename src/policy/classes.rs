//! Classes of requests: the permits that each leaves to the others.

use super::PolicyError;

/// The most classes of a policy.
pub const CLASSES_MOST: usize = 4;
/// The most bytes of a class's name.
pub const CLASS_NAME_MOST: usize = 15;

/// The name of a class, padded with zeroes. Its last byte is 0.
pub(crate) type ClassName = [u8; CLASS_NAME_MOST + 1];

/// The classes of a policy, as in `100/s reserve low 20 high 0`: a request of class `low` passes
/// only if 20 permits are left after it. A request that names no class has no reserve.
///
/// ```
/// use tollbar::policy::Classes;
/// use tollbar::Policy;
///
/// let policy: Policy = "100/s reserve low 20 high 0".parse()?;
/// assert_eq!(policy.classes, Classes::NONE.and("low", 20)?.and("high", 0)?);
/// assert_eq!(policy.classes.reserve(b"low"), Some(20));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Classes {
    /// The used ones come first. The name of an unused one is all zeroes, and so is its reserve.
    names: [ClassName; CLASSES_MOST],
    reserves: [u64; CLASSES_MOST],
}

impl Classes {
    /// No classes.
    pub const NONE: Classes =
        Classes { names: [[0; CLASS_NAME_MOST + 1]; CLASSES_MOST], reserves: [0; CLASSES_MOST] };

    /// These classes and one more.
    ///
    /// # Errors
    /// [`PolicyError::Classes`] if there are [`CLASSES_MOST`], if one has this name, or if the name
    /// is not a letter followed by letters, digits, `-` and `_`, [`CLASS_NAME_MOST`] bytes at most.
    pub fn and(self, name: &str, reserve: u64) -> Result<Classes, PolicyError> {
        self.and_bytes(name.as_bytes(), reserve)
    }

    /// [`Classes::and`] for a name as bytes.
    pub(crate) fn and_bytes(mut self, name: &[u8], reserve: u64) -> Result<Classes, PolicyError> {
        let padded = padded(name).filter(|_| is_name(name) && self.reserve(name).is_none());
        let free = self.names.iter_mut().zip(&mut self.reserves).find(|(name, _)| is_unused(name));
        let (Some(padded), Some((place, kept))) = (padded, free) else {
            return Err(PolicyError::Classes);
        };
        (*place, *kept) = (padded, reserve);
        Ok(self)
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.names[0][0] == 0
    }

    /// The permits that a request of this class leaves; `None` if there is no such class. The class
    /// is given by its name or by its number in decimal, which is 1 for the first one.
    #[inline(never)]
    pub fn reserve(&self, class: &[u8]) -> Option<u64> {
        if let [digit @ b'1'..=b'9'] = *class {
            return self.iter().nth(usize::from(digit - b'1')).map(|(_, reserve)| reserve);
        }
        let name = padded(class)?;
        self.names
            .iter()
            .zip(&self.reserves)
            .find(|(known, _)| **known == name)
            .map(|(_, reserve)| *reserve)
    }

    /// The names and reserves, in the order of the text.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        let used = self.names.iter().zip(&self.reserves).filter(|(name, _)| !is_unused(name));
        used.map(|(name, reserve)| {
            (core::str::from_utf8(unpadded(name)).unwrap_or_default(), *reserve)
        })
    }

    /// The padded names and the reserves.
    pub fn to_raw(&self) -> [([u8; CLASS_NAME_MOST + 1], u64); CLASSES_MOST] {
        let mut raw = [(ClassName::default(), 0); CLASSES_MOST];
        for (to, from) in raw.iter_mut().zip(self.names.iter().zip(&self.reserves)) {
            *to = (*from.0, *from.1);
        }
        raw
    }

    /// The classes of [`Classes::to_raw`].
    ///
    /// # Errors
    /// [`PolicyError::Classes`] if `to_raw` gives no such names and reserves.
    pub fn of_raw(
        raw: &[([u8; CLASS_NAME_MOST + 1], u64); CLASSES_MOST],
    ) -> Result<Classes, PolicyError> {
        let mut classes = Classes::NONE;
        for (name, reserve) in raw {
            if !is_unused(name) {
                classes = classes.and_bytes(unpadded(name), *reserve)?;
            }
        }
        match classes.to_raw() == *raw {
            true => Ok(classes),
            false => Err(PolicyError::Classes),
        }
    }

    /// The index of the first class whose reserve is `burst` or more, so that none of its requests
    /// could pass.
    pub(super) const fn first_without_room(&self, burst: u64) -> Option<usize> {
        let mut i = 0;
        while i < CLASSES_MOST {
            if self.names[i][0] != 0 && self.reserves[i] >= burst {
                return Some(i);
            }
            i += 1;
        }
        None
    }
}

/// Whether a byte may be in a class's name.
pub(super) const fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

fn is_name(name: &[u8]) -> bool {
    name.first().is_some_and(u8::is_ascii_alphabetic) && name.iter().all(|byte| is_name_byte(*byte))
}

const fn is_unused(name: &ClassName) -> bool {
    name[0] == 0
}

/// The name with zeroes behind it; `None` if it is empty or too long.
fn padded(name: &[u8]) -> Option<ClassName> {
    let mut padded = ClassName::default();
    if name.is_empty() || name.len() > CLASS_NAME_MOST {
        return None;
    }
    // No `copy_from_slice`: a compiler for size keeps its panic.
    padded.iter_mut().zip(name).for_each(|(to, byte)| *to = *byte);
    Some(padded)
}

/// The name without the zeroes behind it.
fn unpadded(name: &ClassName) -> &[u8] {
    name.split(|byte| *byte == 0).next().unwrap_or_default()
}
