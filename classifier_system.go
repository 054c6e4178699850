//go:build !plan9

package idem

import (
	"errors"
	"syscall"
)

// passingNumbers are the operating system's errors that say nothing about the
// request: the network, and a machine that has no more of something. They mostly come
// inside errors of other packages that classifyDefault knows, but not always.
var passingNumbers = [...]syscall.Errno{
	syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE, syscall.ENETUNREACH, syscall.EHOSTUNREACH,
	syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM,
}

func passingSystemError(err error) bool {
	for _, n := range passingNumbers {
		if errors.Is(err, n) {
			return true
		}
	}
	return false
}
