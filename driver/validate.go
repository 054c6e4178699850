package driver

import (
	"fmt"
	"time"
)

// Validate returns an error that wraps [ErrInvalid] if the parameters break
// the contract. A driver calls it before it sends anything.
func (p ClaimParams) Validate() error {
	switch {
	case p.Lease <= 0:
		return invalid("a lease of %v", p.Lease)
	case p.OnLapse != TakeOver && p.OnLapse != Uncertain:
		return invalid("OnLapse is %v", p.OnLapse)
	case p.OnLapse == Uncertain && p.Retention <= 0:
		return invalid("a retention of %v", p.Retention)
	case p.Tombstone < 0:
		return invalid("a tombstone of %v", p.Tombstone)
	case p.Guarantee < AtLeastOnce || p.Guarantee > ExactlyOnce:
		return invalid("guarantee is %v", p.Guarantee)
	case p.Format < 1:
		return invalid("format is %d", p.Format)
	}
	return validOwner(p.Key, p.Token)
}

// Validate is [ClaimParams.Validate] for a completion.
func (p CompleteParams) Validate() error {
	switch {
	case p.To != StateCompleted && p.To != StateUncertain:
		return invalid("completing to %v", p.To)
	case (p.To == StateCompleted) != (len(p.Outcome) > 0):
		return invalid("completing to %v with an outcome of %d bytes", p.To, len(p.Outcome))
	case p.Format < 1:
		return invalid("format is %d", p.Format)
	}
	if err := validLife(p.Retention, p.Tombstone); err != nil {
		return err
	}
	return validOwner(p.Key, p.Token)
}

// Validate is [ClaimParams.Validate] for a release.
func (p ReleaseParams) Validate() error {
	if p.Keep < 0 {
		return invalid("keeping for %v", p.Keep)
	}
	return validOwner(p.Key, p.Token)
}

// Validate is [ClaimParams.Validate] for a renewal.
func (p RenewParams) Validate() error {
	if p.Lease <= 0 {
		return invalid("a lease of %v", p.Lease)
	}
	return validOwner(p.Key, p.Token)
}

// Validate is [ClaimParams.Validate] for a resolution.
func (p ResolveParams) Validate() error {
	switch p.Action {
	case ResolveCompleted:
		if len(p.Outcome) == 0 {
			return invalid("resolving without an outcome")
		}
		if err := validLife(p.Retention, p.Tombstone); err != nil {
			return err
		}
	case ResolveNotRun, ResolveForget:
	default:
		return invalid("action is %v", p.Action)
	}
	if p.Format < 1 {
		return invalid("format is %d", p.Format)
	}
	return validKey(p.Key)
}

func validLife(retention, tombstone time.Duration) error {
	switch {
	case retention <= 0:
		return invalid("a retention of %v", retention)
	case tombstone < 0:
		return invalid("a tombstone of %v", tombstone)
	}
	return nil
}

func validOwner(k Key, t Token) error {
	if t == (Token{}) {
		return invalid("the token is zero")
	}
	return validKey(k)
}

func validKey(k Key) error {
	if k.Scope == "" || k.ID == "" || len(k.Scope) > MaxKeyPart || len(k.ID) > MaxKeyPart {
		return invalid("a key with a scope of %d bytes and an ID of %d: each must have 1 to %d",
			len(k.Scope), len(k.ID), MaxKeyPart)
	}
	return nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
}
