package idem

// passingSystemError knows no errors of a system that has no numbers for them.
func passingSystemError(error) bool { return false }
