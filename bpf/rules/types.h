/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Types shared by the rules of all controllers: a connection with its paths, as the rules see it.
 *
 * No kernel type and no floating point: the same files compile for a kernel and for the test that compares them with
 * the engine. A function that a verifier should check once, instead of at each call, is a CC_RULE: it takes up to five
 * numbers or pointers to whole structures and checks the pointers.
 */
#pragma once

typedef unsigned long long u64;
typedef long long s64;
typedef unsigned int u32;
typedef int s32;
typedef unsigned short u16;
typedef unsigned char u8;

#ifdef __BPF__
#define CC_RULE __attribute__((noinline))
#else
#define CC_RULE static __attribute__((unused))
#endif
#define CC_INLINE static inline __attribute__((always_inline, unused))

/* Linux allows a connection at most nine subflows; the other places are for subflows that are closing. */
#define CC_PATHS_MAX 12

/* An unknown time, a window that stays, a place that does not exist. */
#define CC_NONE (~0ULL)

/* State of a path for a controller of your own, words. */
#define CC_OWN_WORDS 13

#define CC_TRUE 1
#define CC_FALSE 0

enum cc_kind {
	CC_LIA,
	CC_OLIA,
	CC_BALIA,
	CC_WVEGAS,
	CC_VENO,
	CC_MVENO,
	CC_MVENO_OWN_RTT,
	CC_MPVENO,
	CC_MCC_COOP,
	CC_GMCC_COOP,
	/* None of these: template.bpf.c, and controllers made from it. */
	CC_OWN,
};

CC_INLINE int cc_is_mveno(enum cc_kind kind)
{
	return kind == CC_MVENO || kind == CC_MVENO_OWN_RTT;
}

/* Whether the controller grows by LIA's alpha. */
CC_INLINE int cc_is_linked(enum cc_kind kind)
{
	return kind == CC_LIA || kind == CC_MCC_COOP || kind == CC_GMCC_COOP;
}

/* Whether the controller yields to the flows of relays. */
CC_INLINE int cc_shares(enum cc_kind kind)
{
	return kind == CC_MCC_COOP || kind == CC_GMCC_COOP;
}

/* A mean to be computed: of round-trip times in nanoseconds or of windows in octets. */
struct cc_mean {
	u64 sum;
	u64 samples;
};

/* The last round of a path, as mVeno keeps it. `samples` is zero until one has ended. */
struct cc_round {
	struct cc_mean rtts;
	u64 mean_rtt_ns;
	u64 base_rtt_ns;
	u64 mean_cwnd;
	u64 cwnd_max;
	u64 mss;
};

struct cc_mveno_state {
	u64 delta_q16;
	u64 cwnd_max;
	struct cc_mean rtts;
	struct cc_mean cwnds;
	struct cc_round last;
};

struct cc_olia_state {
	u64 since_last_loss;
	u64 between_losses;
	/* Zero; n for a gain of 1/n; -n for a loss of 1/n. */
	s64 alpha;
};

struct cc_wvegas_state {
	struct cc_mean round;
	u64 was_limited;
	u64 alpha;
	u64 rate_q16;
	u64 smallest_delay_ns;
};

/*
 * Report from the relay of a path on the flows that end there, 2^-16: rho, alpha' and beta' of
 * docs/algorithms/bandwidth-sharing.md. A ratio of zero means that there is no report.
 */
struct cc_told_state {
	u64 ratio_q16;
	u64 increase_q16;
	u64 decrease_q16;
};

/* A path and its controller's state. Windows are in octets. */
struct cc_path {
	u64 cwnd;
	u64 ssthresh;
	u64 srtt_ns;
	u64 min_rtt_ns;
	u32 mss;
	u32 in_recovery;
	union {
		struct cc_mveno_state mveno;
		struct cc_olia_state olia;
		struct cc_wvegas_state wvegas;
		struct cc_told_state told;
		/* For a controller of your own; zero when a path begins. */
		u64 own[CC_OWN_WORDS];
	};
};

/*
 * A connection. Each path writes its own place. It writes only single words to others' places, so a reader on another
 * processor sees a whole value, the old or the new one.
 */
struct cc_connection {
	/* Bit i: place i is taken. */
	u64 used;
	/*
	 * LIA's alpha and the sum of windows for which it was computed; the sum is zero if alpha must be computed
	 * again.
	 */
	u64 alpha_scaled;
	u64 alpha_cwnd_total;
	/* OLIA: whether every alpha is up to date. */
	u64 is_current;
	/* Bit i: path i waits, as a backup with nothing outstanding. */
	u64 waiting;
	struct cc_path paths[CC_PATHS_MAX];
};

CC_INLINE int cc_is_used(const struct cc_connection *c, u64 i)
{
	return i < CC_PATHS_MAX && (c->used >> i & 1);
}

/* Number of places among `places`. */
CC_RULE u64 cc_bits(u64 places)
{
	u64 count = 0;
	for (u64 i = 0; i < CC_PATHS_MAX; i++)
		count += places >> i & 1;
	return count;
}

/*
 * The places, as bits, that count when path `i` is asked about: a window that nothing fills is no part of coupled
 * control (docs/decisions/0047-windows-that-are-left-out.md). The path itself counts in any case; CC_NONE if none is
 * asked about.
 */
CC_INLINE u64 cc_counted(const struct cc_connection *c, u64 i)
{
	u64 asked = i < CC_PATHS_MAX ? 1ULL << i : 0;
	return c->used & (~c->waiting | asked);
}

CC_INLINE int cc_is_among(u64 places, u64 i)
{
	return i < CC_PATHS_MAX && (places >> i & 1);
}

/* Number of paths that count when path `i` is asked about. */
CC_INLINE u64 cc_path_count(const struct cc_connection *c, u64 i)
{
	return cc_bits(cc_counted(c, i));
}

CC_INLINE u64 cc_min(u64 a, u64 b)
{
	return a < b ? a : b;
}

CC_INLINE u64 cc_max(u64 a, u64 b)
{
	return a > b ? a : b;
}

CC_INLINE u64 cc_add_capped(u64 a, u64 b)
{
	return a + b < a ? ~0ULL : a + b;
}

CC_INLINE u64 cc_sub_floored(u64 a, u64 b)
{
	return a > b ? a - b : 0;
}

CC_INLINE int cc_in_slow_start(const struct cc_path *p)
{
	return p->cwnd < p->ssthresh;
}
