// Package driver is the contract between the idem engine and a store.
//
// Application code imports package idem and one of the drivers; only the
// author of a driver needs this package. A driver keeps one record for each
// [Key] and moves it between states. Each method of [Driver] is one atomic
// step against the backend: no other claim, completion, renewal, release,
// resolution or purge of the same key takes effect in the middle of it.
//
// # The record
//
// A claim creates the record in [StateClaimed] and gives its owner a lease.
// Completing it ends in [StateCompleted] (with an outcome) or in
// [StateUncertain] (nobody knows what the effect did). Releasing it leaves a
// [StateReleased] stub, which remembers the fence, the generation and the
// attempt. What the end of a lease means is stored with the record at the
// claim, see [OnLapse]: either any claim may take the record over, or the
// record becomes uncertain without anybody touching it. A completed or
// uncertain record whose retention is over is [StateExpired] for as long as its
// tombstone lasts. After that the key is free.
//
// Time is the backend's: a driver writes and judges every lease and retention
// by the backend's clock, read after any lock wait, with [Capabilities.ClockPrecision]
// (finer is better, whole seconds are never enough). The application's clock
// never enters a record.
//
// # Bytes
//
// Outcomes and fingerprints are opaque. Neither side modifies a slice after it
// has handed it over, so a driver may keep what it got and return what it
// keeps. Keys are compared byte by byte: case, accents, trailing spaces, NUL
// and Unicode normal forms all distinguish. An outcome is never empty, so a
// driver need not tell nil from empty.
//
// # Errors
//
// Expected situations are results: a key in flight is a [Decision], not an
// error. An error means that the token is stale ([ErrLost]) or that the backend
// failed; the sentinels in this package say which failures the engine treats
// apart. Every other error is a store that could not be asked. An error must
// wrap its cause (so that [errors.Is] finds context errors), and it must not
// contain outcomes or fingerprints.
//
// # Optional abilities
//
// Everything beyond the five methods is an interface of one method, found with
// [As]. Package conformance verifies all of it: a driver's whole test is one
// call of conformance.Run.
package driver
