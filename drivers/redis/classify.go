package idemredis

import (
	"errors"
	"fmt"
	"strings"

	"github.com/redis/rueidis"

	"github.com/idem-go/idem/driver"
)

// kind is what an error of the server means.
type kind uint8

const (
	kindOther    kind = iota
	kindPassing       // the server refused it at once: nothing took effect, and trying again may succeed
	kindFull          // the server takes no writes now; nothing took effect
	kindDenied        // the user lacks a permission
	kindTooLarge      // larger than the server takes
	kindWrong         // the command is wrong for the key or the server
	kindGone          // the connection or the client, with whatever was under way
)

// codes are the first words of the server's errors
// (https://redis.io/docs/latest/develop/reference/protocol-spec/#simple-errors; server.c, createSharedObjects).
var codes = map[string]kind{
	"READONLY": kindPassing, "LOADING": kindPassing, "MASTERDOWN": kindPassing, "CLUSTERDOWN": kindPassing,
	"TRYAGAIN": kindPassing, "MOVED": kindPassing, "ASK": kindPassing, "BUSY": kindPassing, "FAILOVER": kindPassing,
	"OOM": kindFull, "MISCONF": kindFull, "NOREPLICAS": kindFull, "NOGOODSLAVE": kindFull,
	"NOAUTH": kindDenied, "NOPERM": kindDenied, "WRONGPASS": kindDenied, "DENIED": kindDenied,
	"WRONGTYPE": kindWrong, "CROSSSLOT": kindWrong, "EXECABORT": kindWrong, "NOPROTO": kindWrong,
	"NOSCRIPT": kindWrong, "BUSYGROUP": kindOther, "BUSYKEY": kindOther,
}

// messages are errors whose first word is only ERR.
var messages = []struct {
	text string
	kind kind
}{
	{"invalid bulk length", kindTooLarge},
	{"string exceeds maximum allowed size", kindTooLarge},
	{"max number of clients reached", kindPassing},
	{"Script killed by user", kindPassing}, // which the server does only before the first write
	{"unknown command", kindWrong},
	{"unknown subcommand", kindWrong},
	{"wrong number of arguments", kindWrong},
	{"syntax error", kindWrong},
}

func kindOf(err error) kind {
	for _, gone := range [...]error{rueidis.ErrClosing, rueidis.ErrNoSlot, rueidis.ErrNoAddr} {
		if errors.Is(err, gone) {
			return kindGone
		}
	}
	e, ok := errors.AsType[*rueidis.RedisError](err)
	switch {
	case ok && e.IsNil():
		return kindOther
	case ok:
		return kindOfMessage(e.Error())
	case rueidis.IsParseErr(err):
		return kindWrong
	}
	return kindOther
}

func kindOfMessage(text string) kind {
	code, _, _ := strings.Cut(text, " ")
	if k, ok := codes[code]; ok {
		return k
	}
	for _, m := range messages {
		if strings.Contains(text, m.text) {
			return m.kind
		}
	}
	// Before Redis 7 an error within a script comes as "… @user_script: 1: -OOM command not allowed …".
	for word := range strings.FieldsSeq(text) {
		if k, ok := codes[strings.TrimPrefix(word, "-")]; ok {
			return k
		}
	}
	return kindOther
}

// failed says what the store was doing when err happened, and marks what the
// contract has a name for.
func failed(what string, err error) error {
	switch kindOf(err) {
	case kindPassing:
		err = fmt.Errorf("%w: %w", driver.ErrConflict, err)
	case kindFull:
		err = fmt.Errorf("%w: %w", driver.ErrBusy, err)
	case kindTooLarge:
		err = fmt.Errorf("%w: %w", driver.ErrTooLarge, err)
	default:
	}
	return fmt.Errorf("idemredis: %s: %w", what, err)
}

// Classify says what an error that an effect met in Redis, through rueidis,
// means for its operation:
//
//   - KindInfrastructure, so that it is not stored as an answer: a server that
//     is read-only, loading, full, in a failover or without its master, a
//     permission that is missing, a client that is closed;
//   - KindBug: a command that the server does not understand, or that does not
//     fit the key's type;
//   - KindDomain: a value that is larger than the server takes.
//
// It is KindUnknown for nil and for every other error, [rueidis.Nil] and
// errors of the network among them.
func Classify(err error) driver.FailureKind {
	switch kindOf(err) {
	case kindPassing, kindFull, kindDenied, kindGone:
		return driver.KindInfrastructure
	case kindWrong:
		return driver.KindBug
	case kindTooLarge:
		return driver.KindDomain
	default:
		return driver.KindUnknown
	}
}

// Classify implements [driver.Classifier] with the function of that name.
func (s *Store) Classify(p driver.ClassifyParams) driver.ClassifyResult {
	return driver.ClassifyResult{Kind: Classify(p.Err)}
}
