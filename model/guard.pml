/* The guard: a claim that nobody takes over once its function may have run.
 * Processes die at any point, leases lapse, replies are lost, claims of
 * functions that were never entered are given back, and an uncertain key is
 * reconciled by asking the world.
 *
 * Safety:
 *   - the function runs at most once, and once more for each time that a
 *     reconciler was told that it had not run;
 *   - one reconciler asks at a time, as long as none loses its lease.
 *
 * Broken variants, each refuted:
 *   -DTAKE_OVER  a lapsed guard is taken over
 *   -DGIVE_BACK  a run that failed gives its claim back
 *   -DMANY_OVER  an uncertain key is granted without a look at its fence
 */
#define CALLERS 3

mtype = { absent, claimed, completed, uncertain, released };

mtype state = absent;
byte owner;
byte fence;
bool lapsed;

byte runs;   /* ghost */
byte told;   /* ghost: how often a reconciler was told that it had not run */
byte asking; /* ghost: reconcilers at once */
byte lapses; /* ghost: one of them may have lost its lease */

#define MINE(me) (state == claimed && owner == me)
#define FREE     (state == absent || state == released)
#define UNSURE   (state == uncertain || state == claimed && lapsed)

#ifdef TAKE_OVER
#define TAKABLE (FREE || state == claimed && lapsed)
#else
#define TAKABLE FREE
#endif

#ifdef MANY_OVER
#define OVER(seen) (UNSURE || state == claimed && asking > 0)
#else
#define OVER(seen) (UNSURE && fence == seen)
#endif

inline take(me) { state = claimed; owner = me; lapsed = false; fence++ }

/* Each of these is one atomic step of the store. */
inline store_claim(me, granted) {
	atomic {
		if
		:: MINE(me) -> granted = true /* sent again: its own */
		:: !MINE(me) && TAKABLE -> take(me); granted = true
		:: else -> granted = false
		fi
	}
}

inline store_over(me, seen, granted) {
	atomic { if :: OVER(seen) -> take(me); granted = true :: else -> granted = false fi }
}

inline store_settle(me, to) {
	atomic { if :: MINE(me) -> state = to :: else -> skip fi }
}

proctype caller(byte me) {
	bool granted;
	byte seen;
	store_claim(me, granted);
	if :: true :: true -> store_claim(me, granted) fi; /* a lost reply: it is sent again */
	if
	:: granted
	:: !granted ->
		atomic { if :: UNSURE -> seen = fence :: else -> goto dead fi };
		store_over(me, seen, granted);
		if :: granted :: !granted -> goto dead fi;
		atomic { asking++; assert(asking <= 1 + lapses) };
		if
		:: atomic { asking--; told++ }                              /* it has not run */
		:: atomic { asking-- }; store_settle(me, completed); goto dead /* it has */
		:: atomic { asking-- }; store_settle(me, uncertain); goto dead /* nobody could say */
		:: atomic { asking-- }; goto dead                           /* dies while it asks */
		fi
	fi;
	if
	:: true -> store_settle(me, released); goto dead /* cancelled before it was entered */
	:: true -> goto dead
	:: true
	fi;
	/* The function is entered only while the lease is good by its owner's own clock. */
	atomic { if :: MINE(me) && !lapsed -> runs++; assert(runs <= 1 + told) :: else -> goto dead fi };
	if
	:: true -> goto dead
	:: true -> store_settle(me, uncertain)
	:: true -> store_settle(me, completed)
#ifdef GIVE_BACK
	:: true -> store_settle(me, released)
#endif
	fi;
dead:
	skip
}

proctype clock() {
	byte n;
	do
	:: atomic { n < 2 && state == claimed && !lapsed -> lapsed = true; n++; lapses++ }
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
