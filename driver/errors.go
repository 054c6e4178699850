package driver

import "errors"

// Errors that a driver returns, wrapped or as they are, where the engine has
// to tell the failures of a backend apart.
var (
	// ErrLost: the record does not carry the token (any more), or there is no record.
	ErrLost = errors.New("idem driver: the claim is not held by this token")
	// ErrConflict: for sure nothing of the call took effect (a serialization
	// failure, a deadlock), and trying again may succeed.
	ErrConflict = errors.New("idem driver: rolled back by a conflict")
	// ErrUnknown: the call may have taken effect or not (the reply to a commit was lost).
	ErrUnknown = errors.New("idem driver: the outcome of the call is unknown")
	// ErrCorrupt: the stored record cannot be read.
	ErrCorrupt = errors.New("idem driver: the record is corrupt")
	// ErrNewerFormat: the record was written in a newer format than the call's.
	ErrNewerFormat = errors.New("idem driver: the record has a newer format")
	// ErrTooLarge: the outcome is larger than the backend can hold.
	ErrTooLarge = errors.New("idem driver: the outcome is too large")
	// ErrBusy: the backend cannot take the record now (full, locked); nothing took effect.
	ErrBusy = errors.New("idem driver: the backend is busy")
	// ErrNested: the call's context carries a transaction of this store that
	// keeps the call from ever succeeding.
	ErrNested = errors.New("idem driver: inside a transaction that excludes this call")
	// ErrUnfit: the store answers, but cannot keep what the guarantees promise.
	ErrUnfit = errors.New("idem driver: the store cannot uphold the guarantee")
	// ErrInvalid: the parameters break the contract; nothing was sent.
	ErrInvalid = errors.New("idem driver: invalid parameters")
)
