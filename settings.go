package idem

import (
	"errors"
	"fmt"
	"time"

	"github.com/idem-go/idem/codec"
	"github.com/idem-go/idem/driver"
)

// The defaults of the options.
const (
	DefaultLeaseTTL      = 30 * time.Second
	DefaultMaxLease      = time.Hour
	DefaultRetention     = 24 * time.Hour
	DefaultWait          = time.Duration(0)
	DefaultFailurePolicy = PolicyCache
	DefaultMaxResultSize = 1 << 20 // bytes

	// RetainForever is the retention of an outcome that is never forgotten.
	RetainForever = driver.RetainForever
)

// minDuration catches forgotten units: WithLeaseTTL(30) is 30 ns.
const minDuration = time.Millisecond

// settings are what an operation sets and a call may override.
type settings struct {
	leaseTTL, maxLease, retention, failureRetention, wait time.Duration

	policy     FailurePolicy
	classifier ClassifierFunc
	codec      codec.Codec
	ownCodec   bool // it is the operation's
	readers    []codec.Codec
	observer   Observer
	failOpen   bool
	reconcile  ReconcileFunc
}

// duration names a duration option.
type duration uint8

const (
	leaseTTL duration = iota
	maxLease
	retention
	failureRetention
	wait
)

func (n duration) String() string {
	return [...]string{"WithLeaseTTL", "WithMaxLease", "WithRetention", "WithFailureRetention", "WithWait"}[n]
}

// set applies an option that operations and calls share. It reports whether o is one.
func (s *settings) set(o any, g Guarantee) (bool, error) {
	switch o := o.(type) {
	case durationOption:
		return true, s.setDuration(o, g)
	case policyOption:
		if g != AtLeastOnce {
			return true, fmt.Errorf("WithFailurePolicy is for AtLeastOnce, this operation is %v: leave it out", g)
		}
		if o.policy < PolicyCache || o.policy > PolicyHold {
			return true, fmt.Errorf("%v is no policy: use PolicyCache, PolicyRelease or PolicyHold", o.policy)
		}
		s.policy = o.policy
	case classifierOption:
		if o.classifier == nil {
			return true, errNil("WithClassifier")
		}
		s.classifier = o.classifier
	case codecOption:
		return true, s.setCodec(o)
	case observerOption:
		s.observer = o.observer
	case reconcileOption:
		if g == ExactlyOnce {
			return true, errors.New("WithReconcile: an inbox is never uncertain: leave it out")
		}
		if o.reconcile == nil {
			return true, errNil("WithReconcile")
		}
		s.reconcile = o.reconcile
	case failOpenOption:
		if g != AtLeastOnce {
			return true, fmt.Errorf("WithFailOpen is for AtLeastOnce: %v cannot be kept without the store", g)
		}
		s.failOpen = true
	default:
		return false, nil
	}
	return true, nil
}

func (s *settings) setDuration(o durationOption, g Guarantee) error {
	if o.name == wait && o.d == 0 {
		s.wait = 0
		return nil
	}
	if err := checkDuration(o.name.String(), o.d); err != nil {
		return err
	}
	switch o.name {
	case leaseTTL, maxLease:
		if g == ExactlyOnce {
			return fmt.Errorf("%v is for leases and guards; an inbox holds its key by its transaction: leave it out", o.name)
		}
		if o.d == RetainForever {
			return fmt.Errorf("%v: a lease must end: use a shorter duration", o.name)
		}
		if o.name == leaseTTL {
			s.leaseTTL = o.d
		} else {
			s.maxLease = o.d
		}
	case retention:
		s.retention = o.d
	case failureRetention:
		if g == ExactlyOnce {
			return errNoFailures
		}
		s.failureRetention = o.d
	case wait:
		s.wait = o.d
	}
	return nil
}

var errNoFailures = errors.New("WithFailureRetention: an inbox stores no failures: leave it out")

func (s *settings) setCodec(o codecOption) error {
	for _, c := range append([]codec.Codec{o.write}, o.read...) {
		if c == nil {
			return errNil("WithCodec")
		}
		if c.Name() == "" {
			return fmt.Errorf("WithCodec: the codec %T has no name: return one that no other codec uses", c)
		}
	}
	s.codec, s.readers, s.ownCodec = o.write, o.read, false
	return nil
}

// check refuses what only the whole of the settings shows.
func (s *settings) check(d driver.Capabilities) error {
	if s.leaseTTL > s.maxLease {
		return fmt.Errorf("WithLeaseTTL(%v) is longer than WithMaxLease(%v): raise the latter or lower the former", s.leaseTTL, s.maxLease)
	}
	if s.reconcile != nil && !d.Features.Has(driver.FeatureReconcile) {
		return fmt.Errorf("WithReconcile needs a driver that lets an uncertain record be claimed, which %s does not", d.Name)
	}
	if s.policy == PolicyHold && !d.Guarantees.Has(AtMostOnce) {
		return fmt.Errorf("PolicyHold needs a driver that upholds AtMostOnce, which %s does not", d.Name)
	}
	return nil
}

// reader finds the codec that a record names.
func (s *settings) reader(name string) (codec.Codec, bool) {
	if s.codec.Name() == name {
		return s.codec, true
	}
	for _, c := range s.readers {
		if c.Name() == name {
			return c, true
		}
	}
	switch name {
	case codec.MessagePack().Name():
		return codec.MessagePack(), true
	case codec.JSON().Name():
		return codec.JSON(), true
	case codec.Raw().Name():
		return codec.Raw(), true
	}
	return nil, false
}

// set applies an option that only operations have.
func (op *Operation) set(o OperationOption) error {
	switch o := o.(type) {
	case keySpaceOption:
		if blank(o.space) {
			return errors.New("WithKeySpace: the key space is blank: leave the option out to use the alias")
		}
		op.space = o.space
	case maxResultOption:
		if o.n < 1 {
			return fmt.Errorf("WithMaxResultSize(%d): give a number of bytes above 0", o.n)
		}
		op.maxResult = o.n
	case tombstoneOption:
		if !op.caps.Features.Has(driver.FeatureTombstone) {
			return fmt.Errorf("WithTombstone needs a driver that keeps tombstones, which %s does not", op.caps.Name)
		}
		if err := checkDuration("WithTombstone", o.d); err != nil {
			return err
		}
		op.tombstone = o.d
	case replayableOption:
		return op.setReplayable(o.replayable)
	case transformsOption:
		return op.setTransforms(o.transforms)
	case localCacheOption:
		return op.setLocalCache(o.n)
	case fingerprintKeyOption:
		return op.setFingerprintKey(o.secret)
	case typeNameOption:
		return op.setTypeName(o)
	case withoutTextOption:
		op.withoutText = true
	case withoutOutcomesOption:
		if op.guarantee != AtMostOnce {
			return fmt.Errorf("WithoutOutcomes is for AtMostOnce, this operation is %v: leave it out", op.guarantee)
		}
		op.withoutOutcomes = true
	case loggerOption:
		if o.logger == nil {
			return errNil("WithLogger")
		}
		op.logger = o.logger
	case nil:
		return errNil("NewOperation")
	default:
		if known, err := op.defaults.set(o, op.guarantee); known {
			return err
		}
		return fmt.Errorf("%T is no option of this package", o)
	}
	return nil
}

func newSettings(g Guarantee) settings {
	s := settings{
		leaseTTL:  DefaultLeaseTTL,
		maxLease:  DefaultMaxLease,
		retention: DefaultRetention,
		wait:      DefaultWait,
		policy:    DefaultFailurePolicy,
		codec:     codec.MessagePack(),
	}
	if g == AtMostOnce {
		s.retention = RetainForever
	}
	return s
}

func checkDuration(option string, d time.Duration) error {
	switch {
	case d <= 0:
		return fmt.Errorf("%s(%v): give a duration of at least %v", option, d, minDuration)
	case d < minDuration:
		return fmt.Errorf("%s(%v): shorter than %v; was the unit forgotten (%d*time.Second)?", option, d, minDuration, d)
	}
	return nil
}

func errNil(option string) error { return fmt.Errorf("%s: nil is no option: leave it out", option) }
