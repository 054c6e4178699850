package idemsql

import "github.com/idem-go/idem/driver"

// completeArgs are the arguments of a completion.
func (s *Store) completeArgs(p *driver.CompleteParams) *args {
	a := ownerArgs(p.Key, p.Token)
	a[pTo], a[pFormat], a[pOutcome] = int64(p.To), int64(p.Format), blob(p.Outcome)
	a[pRetention], a[pTombstone] = s.dialect.micros(p.Retention), s.dialect.micros(p.Tombstone)
	a[pKeep] = s.dialect.keep(p.Retention, p.Tombstone)
	return a
}

// claimArgs adds what a claim needs beside the key.
func (s *Store) claimArgs(a *args, p *driver.ClaimParams) {
	a[pToken] = p.Token[:]
	a[pFormat], a[pGuarantee], a[pOnLapse] = int64(p.Format), int64(p.Guarantee), int64(p.OnLapse)
	a[pFingerprint] = blob(p.Fingerprint)
	a[pLease] = s.dialect.us(p.Lease)
	a[pKeep] = s.dialect.keep(p.Retention, p.Tombstone)
	if p.OnLapse == driver.Uncertain {
		a[pRetention], a[pTombstone] = s.dialect.micros(p.Retention), s.dialect.micros(p.Tombstone)
		return
	}
	// Of a lease that may be taken over nothing is kept but its fence. Its row
	// goes with the outcome that is to come, which then leaves the index alone.
	a[pRetention], a[pTombstone] = int64(0), int64(0)
	if a[pKeep] == nil {
		a[pKeep] = fenceMemory
	}
}

// lockArgs is claimArgs for a transaction, which may lock the key.
func (s *Store) lockArgs(p *driver.ClaimParams) *args {
	a := keyArgs(p.Key)
	s.claimArgs(a, p)
	if s.dialect.lock != nil {
		a[pLock] = s.dialect.lock(s.config.table, p.Key)
	}
	return a
}

// keyArgs binds keys as bytes: SQLite compares text with bytes as unequal.
func keyArgs(k driver.Key) *args {
	return &args{pScope: []byte(k.Scope), pID: []byte(k.ID)}
}

// ownerArgs are the arguments of what only the owner of a claim may do.
func ownerArgs(k driver.Key, t driver.Token) *args {
	a := keyArgs(k)
	a[pToken] = t[:]
	return a
}

// blob turns empty bytes into NULL.
func blob(b []byte) any {
	if len(b) == 0 {
		return nil
	}
	return b
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
