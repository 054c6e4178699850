/* The lease: claim, run, complete, with processes that die at any point,
 * leases that lapse at any time, and replies that are lost. One key.
 *
 * Safety:
 *   - an outcome, once stored, is never changed;
 *   - who completes is the owner of the latest claim;
 *   - the fence rises with every claim;
 *   - two runs only if a lease lapsed or a run was given back.
 *
 * Broken variants, each refuted:
 *   -DNO_TOKEN   completing does not check the token
 *   -DSTEAL      a claim takes a lease that has not lapsed
 *   -DSAME_FENCE a takeover keeps the fence
 *   -DREWRITE    completing overwrites an outcome
 */
#define CALLERS 3
#define TRIES   2 /* sendings of one request */

mtype = { absent, claimed, completed, released };

mtype state = absent;
byte owner;         /* token of the record: the caller's number, from 1 */
byte fence;
bool lapsed;
byte outcome;       /* the fence of the run that stored it; 0: none */

byte latest;        /* ghost: the fence of the latest claim */
byte runs;          /* ghost */
bool excused;       /* ghost: a lease lapsed or a run was given back */

/* Each of these is one atomic step of the store. */
inline store_claim(me, mine, granted) {
	atomic {
		granted = false;
		if
		:: state == claimed && owner == me -> granted = true; mine = fence /* sent again: its own */
		:: state == absent || state == released ||
#ifdef STEAL
		   state == claimed && owner != me
#else
		   state == claimed && owner != me && lapsed
#endif
		   ->
#ifdef SAME_FENCE
			if :: state == claimed -> skip :: else -> fence++ fi;
#else
			fence++;
#endif
			assert(fence > latest);
			latest = fence;
			state = claimed; owner = me; lapsed = false;
			granted = true; mine = fence
		:: else -> skip
		fi
	}
}

inline store_complete(me, mine) {
	atomic {
		if
#ifdef NO_TOKEN
		:: state == claimed ->
#else
		:: state == claimed && owner == me ->
#endif
			assert(mine == latest);
			assert(outcome == 0);
			state = completed; outcome = mine
#ifdef REWRITE
		:: state == completed -> assert(outcome == mine); outcome = mine
#endif
		:: else -> skip /* lost, or completed already */
		fi
	}
}

inline store_release(me) {
	atomic {
		if
		:: state == claimed && owner == me -> state = released; excused = true
		:: else -> skip
		fi
	}
}

proctype caller(byte me) {
	bool granted;
	byte mine, sent;
	sent = 0;
	do /* a claim whose reply is lost is sent again */
	:: sent < TRIES -> store_claim(me, mine, granted); sent++;
		if :: true -> break :: sent < TRIES -> skip :: true -> goto dead fi
	od;
	if :: !granted -> goto dead :: else fi;
	if :: true -> goto dead :: true fi; /* dies before it runs */
	atomic { runs++; assert(runs <= 1 || excused) };
	if :: true -> goto dead :: true -> store_release(me); goto dead :: true fi;
	sent = 0;
	do
	:: sent < TRIES -> store_complete(me, mine); sent++;
		if :: true -> break :: sent < TRIES -> skip fi
	od;
dead:
	skip
}

/* Time: a lease may lapse whenever there is one. */
proctype clock() {
	byte n;
	do
	:: atomic { n < 2 && state == claimed && !lapsed -> lapsed = true; excused = true; n++ }
	:: true -> break
	od
}

init {
	byte i;
	atomic {
		run clock();
		i = 1;
		do :: i <= CALLERS -> run caller(i); i++ :: else -> break od
	}
}
