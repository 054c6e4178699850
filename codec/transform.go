package codec

// Transform changes a whole outcome on its way into the store: it compresses
// or encrypts. Its methods are called concurrently.
type Transform interface {
	// Name is stored with each record; a record is read by the transforms
	// that it names. It never changes its meaning.
	Name() string
	// Seal appends the stored form of outcome to dst. aad names the record
	// (its scope and key): a transform that authenticates binds the outcome to it,
	// so that a row cannot be moved to another key.
	Seal(dst, outcome, aad []byte) ([]byte, error)
	// Open appends what Seal was given to dst. stored may be hostile: what Open
	// allocates must be bounded.
	Open(dst, stored, aad []byte) ([]byte, error)
}
