/* SPDX-License-Identifier: GPL-2.0-only */
/* BALIA: for the equations see crates/transport/src/congestion/balia.rs. */
#pragma once

#include "arithmetic.h"

/*
 * M_i, the largest rate as a window over one round-trip time, octets; the path's own window without a round-trip time.
 */
CC_RULE u64 cc_balia_largest(const struct cc_connection *c, u64 i)
{
	u64 largest = 0, places, rtt_us;
	if (!c || i >= CC_PATHS_MAX)
		return 0;
	if (!cc_is_measured(&c->paths[i]))
		return cc_effective_cwnd(&c->paths[i]);
	places = cc_counted(c, i);
	rtt_us = cc_whole_us(c->paths[i].srtt_ns);
	for (u64 j = 0; j < CC_PATHS_MAX; j++) {
		const struct cc_path *p = &c->paths[j];
		if (cc_is_among(places, j) && cc_is_measured(p))
			largest = cc_max(largest, cc_effective_cwnd(p) * rtt_us / cc_whole_us(p->srtt_ns));
	}
	return largest;
}

CC_INLINE u64 cc_times_capped(u64 a, u64 b)
{
	struct cc_wide product = cc_wide_product(a, b);
	return product.high ? ~0ULL : product.low;
}

CC_RULE s64 cc_balia_ack(struct cc_connection *c, u64 i, u64 acked_bytes, u64 cwnd_limited)
{
	u64 own, largest, all, once, twice;
	const struct cc_path *p;
	if (!c || i >= CC_PATHS_MAX)
		return 0;
	p = &c->paths[i];
	own = cc_effective_cwnd(p);
	largest = cc_balia_largest(c, i);
	all = cc_is_measured(p) ? cc_windows_over(c, cc_counted(c, i), cc_whole_us(p->srtt_ns)) : own;
	once = cc_mul_div(cc_mss_q16(p), cc_add_capped(own, largest), all);
	twice = cc_mul_div(once, cc_add_capped(cc_times_capped(own, 4), largest), all);
	return cc_signed(cc_mul_div(cc_creditable(p, acked_bytes, cwnd_limited), twice / 10, p->cwnd));
}

CC_RULE u64 cc_balia_loss(struct cc_connection *c, u64 i)
{
	u64 own, largest, half;
	const struct cc_path *p;
	if (!c || i >= CC_PATHS_MAX)
		return 0;
	p = &c->paths[i];
	own = cc_effective_cwnd(p);
	largest = cc_balia_largest(c, i);
	half = p->cwnd / 2;
	/* min(q, 3/2) */
	if (cc_times_capped(largest, 2) >= cc_times_capped(own, 3))
		return p->cwnd - cc_mul_div(half, 3, 2);
	return p->cwnd - cc_mul_div(half, largest, own);
}
