/* The inbox: claim, effect and outcome in one transaction, whose commit may be
 * acknowledged, or whose reply may be lost while the commit goes on; sessions of dead
 * clients end late. A caller that does not know claims again with its own token.
 *
 * Safety:
 *   - there is an effect if and only if there is a record;
 *   - there is one effect at most;
 *   - a caller that is told yes has its effect, one that is told no has none and
 *     never will.
 *
 * Broken variants, each refuted:
 *   -DREAD_BACK    an unknown commit is settled by a plain read
 *   -DNO_LOCK      a claim looks for the record, but takes no lock and meets no unique key
 *   -DEARLY        the outcome is stored in a transaction before the effect's
 */
#define CALLERS 2

bool record, effects2; /* committed: the record; more than one effect */
byte effects;          /* committed */
byte by;               /* whose token the record carries */
byte lock;             /* who holds the key's lock; 0: nobody */

/* A session of the server, which outlives its client. */
inline commit(me) {
	atomic {
#ifdef NO_LOCK
		effects++; record = true; by = me
#else
		assert(lock == me);
		effects++; record = true; by = me; lock = 0
#endif
	}
}
inline rollback(me) { atomic { if :: lock == me -> lock = 0 :: else -> skip fi } }

bool committing[CALLERS + 1]; /* a commit whose reply was lost goes on in the server */

proctype server(byte me) {
end:	do
	:: atomic { committing[me] -> committing[me] = false };
		if :: true -> commit(me) :: true -> rollback(me) fi
	od
}

proctype caller(byte me) {
	bool unsure, yes, no;
	byte tries;
again:
	if :: tries >= 3 -> goto dead :: else -> tries++ fi;
	atomic { /* BEGIN and claim: a try-lock and a read, in one statement */
		if
#ifndef NO_LOCK
		:: lock != 0 -> goto busy
#endif
		:: record && by == me -> yes = true; goto told
		:: record && by != me -> no = true; goto told
		:: else ->
#ifndef NO_LOCK
			lock = me
#else
			skip
#endif
		fi
	};
	unsure = false; /* an earlier commit would have been found */
#ifdef EARLY
	atomic { record = true; by = me };
#endif
	if
	:: true -> rollback(me); goto dead              /* the client dies: the session ends, sooner or later */
	:: true -> rollback(me); no = true; goto told   /* the function fails */
	:: true
	fi;
	if
	:: true -> commit(me); yes = true; goto told
	:: true -> committing[me] = true; unsure = true /* the reply is lost */
	fi;
#ifdef READ_BACK
	atomic { if :: record -> yes = true :: else -> no = true fi; goto told };
#endif
	goto again;
busy:
	if :: goto again :: goto dead fi;
told:
	if
	:: yes -> assert(record && effects == 1)
	:: else
	fi;
	if
	:: no && !record -> assert(!committing[me]) /* nothing may come after it was told no */
	:: else
	fi;
dead:
	skip
}

/* In every state that others can see. */
active proctype monitor() {
end:	do
	:: atomic { effects > 1 -> assert(false) }
	:: atomic { record != (effects > 0) -> assert(false) }
	od
}

init {
	byte i;
	atomic {
		i = 1;
		do :: i <= CALLERS -> run caller(i); run server(i); i++ :: else -> break od
	}
}
