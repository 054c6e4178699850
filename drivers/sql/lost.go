package idemsql

import (
	sqldriver "database/sql/driver"
	"errors"
	"io"
	"net"
	"syscall"
)

// lost reports whether err says that a connection broke that had been made. A
// server that cannot be reached at all is another matter.
func (s *Store) lost(err error) bool {
	if s.is(err, kindLost) {
		return true
	}
	for _, target := range []error{
		sqldriver.ErrBadConn, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.EPIPE, syscall.ECONNRESET,
	} {
		if errors.Is(err, target) {
			return true
		}
	}
	// pgx says so of what it did not send, because the connection had broken before.
	if safe, ok := errors.AsType[interface {
		error
		SafeToRetry() bool
	}](err); ok && safe.SafeToRetry() {
		return true
	}
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op != "dial"
}
