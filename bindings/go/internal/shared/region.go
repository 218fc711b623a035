package shared

// Access says which users may own a table's file, and which may write it, as in src/table/memory/region/trust.rs.
type Access struct {
	// Mode is the permissions of a new file. An existing file may be writable for the users for whom these permissions
	// make it writable.
	Mode uint32
	// TrustAnyone takes any file.
	TrustAnyone bool
}
