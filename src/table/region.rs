//! The memory of a table: private, shared, the caller's, or a file's.
