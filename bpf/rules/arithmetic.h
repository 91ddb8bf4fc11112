/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Integer arithmetic of the engine's controllers (crates/transport/src/congestion/arithmetic.rs, coupling.rs, mean.rs).
 */
#pragma once

#include "wide.h"

#define CC_ONE_Q16 65536ULL
#define CC_CWND_MAX 0xffffffffULL

/* `a * b / c`, rounded down and at most the largest word; a divisor of zero counts as one. */
CC_RULE u64 cc_mul_div(u64 a, u64 b, u64 c)
{
	struct cc_wide product = cc_wide_product(a, b);
	c = c ? c : 1;
	if (!product.high)
		return product.low / c;
	if (product.high >= c)
		return ~0ULL;
	return cc_wide_quotient(product.high, product.low, c);
}

/* Octets that may make the window grow: none if it was not the limit (RFC 7661), at most one window. */
CC_INLINE u64 cc_creditable(const struct cc_path *p, u64 acked_bytes, u64 cwnd_limited)
{
	return cwnd_limited ? cc_min(acked_bytes, p->cwnd) : 0;
}

CC_INLINE u64 cc_mss_q16(const struct cc_path *p)
{
	return p->mss * CC_ONE_Q16;
}

CC_INLINE s64 cc_signed(u64 q16)
{
	return q16 > ~0ULL >> 1 ? (s64)(~0ULL >> 1) : (s64)q16;
}

/* NewReno's increase, 2^-16 octet. */
CC_INLINE u64 cc_newreno_gain(const struct cc_path *p, u64 acked)
{
	return cc_mul_div(acked, cc_mss_q16(p), p->cwnd);
}

/* The effective window: in recovery, the window in use depends on the recovery instead of the path. */
CC_RULE u64 cc_effective_cwnd(const struct cc_path *p)
{
	u64 cwnd;
	if (!p)
		return 1;
	cwnd = p->in_recovery ? cc_min(p->cwnd, p->ssthresh) : p->cwnd;
	return cc_max(cc_min(cwnd, CC_CWND_MAX), 1);
}

CC_RULE u64 cc_whole_us(u64 rtt_ns)
{
	return cc_max(cc_min(rtt_ns / 1000, CC_HALF), 1);
}

CC_INLINE int cc_is_measured(const struct cc_path *p)
{
	return p->srtt_ns != CC_NONE;
}

/* What the measured paths among `places` together carry in `rtt_us`, octets. */
CC_RULE u64 cc_windows_over(const struct cc_connection *c, u64 places, u64 rtt_us)
{
	u64 sum = 0;
	if (!c)
		return 0;
	for (u64 i = 0; i < CC_PATHS_MAX; i++) {
		const struct cc_path *p = &c->paths[i];
		if (cc_is_among(places, i) && cc_is_measured(p))
			sum = cc_add_capped(sum, cc_effective_cwnd(p) * rtt_us / cc_whole_us(p->srtt_ns));
	}
	return sum;
}

/* Octets in the queue of a path: `cwnd * (rtt - base_rtt) / rtt`. */
CC_INLINE u64 cc_backlog(u64 cwnd, u64 rtt_ns, u64 base_rtt_ns)
{
	return cc_mul_div(cwnd, cc_sub_floored(rtt_ns, base_rtt_ns), rtt_ns);
}

CC_INLINE void cc_mean_add(struct cc_mean *mean, u64 sample)
{
	mean->sum = cc_add_capped(mean->sum, sample);
	mean->samples += 1;
}
