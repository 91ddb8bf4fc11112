/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A controller of one's own, to be copied: docs/linux-cc.md leads through it. It works as it is.
 *
 * Here stand the equations, with their source:
 *
 *   ACK    cwnd_i += acked * MSS / (sum of all cwnd), but nothing in the round after a loss
 *   loss   ssthresh_i = cwnd_i / 2
 *
 * Windows count octets, round-trip times nanoseconds, increases 2^-16 octet. `c` is the connection, with all its paths (subflows) as they
 * are just now: struct cc_connection and struct cc_path in rules/types.h. `i` is the path that is asked about. There is no floating point;
 * rules/arithmetic.h has what neither overflows nor divides by zero. Take care that loops end at CC_PATHS_MAX, and check an index before
 * it is used: otherwise the kernel refuses the program when it is loaded.
 */
#include "rules/arithmetic.h"

/* What is remembered of a path beside what there is to see of it: up to CC_OWN_WORDS words, zero at first. */
struct remembered {
	/* Ends of rounds that are to come before the window grows again. */
	u64 rounds_to_wait;
};
_Static_assert(sizeof(struct remembered) <= CC_OWN_WORDS * sizeof(u64), "what there is room for");

CC_INLINE struct remembered *of(struct cc_path *p)
{
	return (struct remembered *)p->own;
}

/* The windows of all paths, octets, one at least. CC_RULE: the kernel checks it once, not at every call. */
CC_RULE u64 sum_of_windows(const struct cc_connection *c)
{
	u64 sum = 0;
	if (!c)
		return 1;
	for (u64 i = 0; i < CC_PATHS_MAX; i++)
		if (cc_is_used(c, i))
			sum += cc_effective_cwnd(&c->paths[i]);
	return cc_max(sum, 1);
}

/* Octets were acknowledged in congestion avoidance: by how much the window grows, 2^-16 octet, at most by `acked_bytes`; it may shrink. */
CC_INLINE s64 cc_acked(enum cc_kind kind, struct cc_connection *c, u64 i, u64 acked_bytes, u64 cwnd_limited)
{
	u64 acked;
	if (i >= CC_PATHS_MAX || of(&c->paths[i])->rounds_to_wait)
		return 0;
	acked = cc_creditable(&c->paths[i], acked_bytes, cwnd_limited);
	return cc_signed(cc_mul_div(acked, cc_mss_q16(&c->paths[i]), sum_of_windows(c)));
}

/* Something was lost: the threshold, octets, to which the window falls. */
CC_INLINE u64 cc_lost(enum cc_kind kind, struct cc_connection *c, u64 i)
{
	if (i >= CC_PATHS_MAX)
		return 0;
	/* The round that is under way, and a whole one. */
	of(&c->paths[i])->rounds_to_wait = 2;
	return cc_max(c->paths[i].cwnd / 2, 2ULL * c->paths[i].mss);
}

/* The timer expired: the threshold, octets. The kernel has asked for one as after a loss before. */
CC_INLINE u64 cc_timed_out(enum cc_kind kind, struct cc_connection *c, u64 i)
{
	return cc_lost(kind, c, i);
}

/* All that was in flight when the round began is acknowledged: a new window, octets, or CC_NONE to leave it. */
CC_INLINE u64 cc_round_ended(enum cc_kind kind, struct cc_connection *c, u64 i)
{
	if (i >= CC_PATHS_MAX)
		return CC_NONE;
	/* One at most, whatever somebody else may have written there. */
	of(&c->paths[i])->rounds_to_wait = cc_min(cc_sub_floored(of(&c->paths[i])->rounds_to_wait, 1), 1);
	return CC_NONE;
}

/* Something arrived, in slow start and recovery too; `rtt_ns` is what that measured, or CC_NONE. */
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

/* The name of the file, twice: 15 characters at most, letters, digits and `_`. */
CONTROLLER(template, CC_OWN, "template")
