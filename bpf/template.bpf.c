/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A template for a controller of your own, explained in docs/linux-cc.md. It works as it is.
 *
 * It implements these equations; give the source of yours here:
 *
 *   ACK    cwnd_i += acked * MSS / (sum of all cwnd), but nothing in the round after a loss
 *   loss   ssthresh_i = cwnd_i / 2
 *
 * Windows are in octets, round-trip times in nanoseconds, increases in 2^-16 octet. `c` is the connection, with the
 * current state of all its paths (subflows): struct cc_connection and struct cc_path in rules/types.h. `i` is the path
 * in question; cc_counted returns the places that count when it is asked about. There is no floating point;
 * rules/arithmetic.h has functions that neither overflow nor divide by zero. Loops must end at CC_PATHS_MAX, and an
 * index must be checked before it is used: otherwise the kernel refuses to load the program.
 */
#include "rules/arithmetic.h"

/* State of a path besides what is visible: up to CC_OWN_WORDS words, zero at first. */
struct remembered {
	/* Number of rounds that must end before the window grows again. */
	u64 rounds_to_wait;
};
_Static_assert(sizeof(struct remembered) <= CC_OWN_WORDS * sizeof(u64), "what there is room for");

CC_INLINE struct remembered *of(struct cc_path *p)
{
	return (struct remembered *)p->own;
}

/*
 * The sum of the windows of the paths among `places`, octets, at least one. CC_RULE: the kernel verifies the function
 * once, not at every call.
 */
CC_RULE u64 sum_of_windows(const struct cc_connection *c, u64 places)
{
	u64 sum = 0;
	if (!c)
		return 1;
	for (u64 i = 0; i < CC_PATHS_MAX; i++)
		if (cc_is_among(places, i))
			sum += cc_effective_cwnd(&c->paths[i]);
	return cc_max(sum, 1);
}

/*
 * Octets were acknowledged in congestion avoidance. Returns the window's growth, 2^-16 octet, at most `acked_bytes`; it
 * may be negative.
 */
CC_INLINE s64 cc_acked(enum cc_kind kind, struct cc_connection *c, u64 i, u64 acked_bytes, u64 cwnd_limited)
{
	u64 acked;
	if (i >= CC_PATHS_MAX || of(&c->paths[i])->rounds_to_wait)
		return 0;
	acked = cc_creditable(&c->paths[i], acked_bytes, cwnd_limited);
	return cc_signed(cc_mul_div(acked, cc_mss_q16(&c->paths[i]), sum_of_windows(c, cc_counted(c, i))));
}

/* Something was lost. Returns the threshold, octets, to which the window falls. */
CC_INLINE u64 cc_lost(enum cc_kind kind, struct cc_connection *c, u64 i)
{
	if (i >= CC_PATHS_MAX)
		return 0;
	/* The current round, and a whole one. */
	of(&c->paths[i])->rounds_to_wait = 2;
	return cc_max(c->paths[i].cwnd / 2, 2ULL * c->paths[i].mss);
}

/* The timer expired. Returns the threshold, octets. The kernel has requested one as after a loss before. */
CC_INLINE u64 cc_timed_out(enum cc_kind kind, struct cc_connection *c, u64 i)
{
	return cc_lost(kind, c, i);
}

/*
 * All data that were in flight when the round began are acknowledged. Returns a new window, octets, or CC_NONE to keep
 * it.
 */
CC_INLINE u64 cc_round_ended(enum cc_kind kind, struct cc_connection *c, u64 i)
{
	if (i >= CC_PATHS_MAX)
		return CC_NONE;
	/* At most one, even if another program has written to it. */
	of(&c->paths[i])->rounds_to_wait = cc_min(cc_sub_floored(of(&c->paths[i])->rounds_to_wait, 1), 1);
	return CC_NONE;
}

/* Data arrived, in slow start and recovery too; `rtt_ns` is the sample that they gave, or CC_NONE. */
CC_INLINE void cc_delivered(enum cc_kind kind, struct cc_path *p, u64 delivered_bytes, u64 rtt_ns)
{
}

/* A path has begun. */
CC_INLINE void cc_added(enum cc_kind kind, struct cc_connection *c, u64 i)
{
}

/* A path has ended. */
CC_INLINE void cc_removed(enum cc_kind kind, struct cc_connection *c)
{
}

#include "callbacks.h"

/* The name of the file, twice: at most 15 characters, letters, digits and `_`. */
CONTROLLER(template, CC_OWN, "template")
