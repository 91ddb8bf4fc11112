/* SPDX-License-Identifier: GPL-2.0-only */
/* LIA: for the equations see crates/transport/src/congestion/lia.rs. */
#pragma once

#include "arithmetic.h"

/* RFC 6356 equation (2) over `places`, times 2^16. */
CC_RULE u64 cc_lia_alpha(const struct cc_connection *c, u64 places, u64 cwnd_total)
{
	u64 best_cwnd = 0, best_rtt = 0, sum;
	struct cc_wide dividend, divisor;
	if (!c)
		return CC_ONE_Q16;
	for (u64 i = 0; i < CC_PATHS_MAX; i++) {
		const struct cc_path *p = &c->paths[i];
		if (!cc_is_among(places, i) || !cc_is_measured(p))
			continue;
		u64 cwnd = cc_effective_cwnd(p), rtt = cc_whole_us(p->srtt_ns);
		/* cwnd / rtt^2, multiplied out. */
		if (!best_rtt || cc_product_exceeds(cwnd, best_rtt * best_rtt, best_cwnd, rtt * rtt)) {
			best_cwnd = cwnd;
			best_rtt = rtt;
		}
	}
	if (!best_rtt)
		return CC_ONE_Q16;
	sum = cc_windows_over(c, places, best_rtt);
	dividend = cc_wide_product(cwnd_total * CC_ONE_Q16, best_cwnd);
	divisor = cc_wide_product(sum, sum);
	return cc_wide_ratio(dividend.high, dividend.low, divisor.high, divisor.low, 0);
}

CC_INLINE void cc_lia_forget(struct cc_connection *c)
{
	c->alpha_cwnd_total = 0;
}

/* Increase for `acked` octets by equation (1) without its cap, 2^-16 octet. */
CC_RULE u64 cc_lia_linked(struct cc_connection *c, u64 i, u64 acked)
{
	u64 cwnd_total = 0, places, known, moved, alpha;
	if (!c || i >= CC_PATHS_MAX)
		return 0;
	places = cc_counted(c, i);
	for (u64 j = 0; j < CC_PATHS_MAX; j++)
		if (cc_is_among(places, j))
			cwnd_total += cc_effective_cwnd(&c->paths[j]);
	known = c->alpha_cwnd_total;
	moved = known > cwnd_total ? known - cwnd_total : cwnd_total - known;
	alpha = c->alpha_scaled;
	if (!known || moved > known / 8) {
		alpha = cc_lia_alpha(c, places, cwnd_total);
		c->alpha_scaled = alpha;
		c->alpha_cwnd_total = cwnd_total;
	}
	return cc_mul_div(acked, cc_mul_div(alpha, c->paths[i].mss, 1), cwnd_total);
}

CC_RULE s64 cc_lia_ack(struct cc_connection *c, u64 i, u64 acked_bytes, u64 cwnd_limited)
{
	u64 acked;
	if (!c || i >= CC_PATHS_MAX)
		return 0;
	acked = cc_creditable(&c->paths[i], acked_bytes, cwnd_limited);
	if (!acked)
		return 0;
	return cc_signed(cc_min(cc_lia_linked(c, i, acked), cc_newreno_gain(&c->paths[i], acked)));
}

CC_RULE u64 cc_lia_loss(struct cc_connection *c, u64 i)
{
	if (!c || i >= CC_PATHS_MAX)
		return 0;
	cc_lia_forget(c);
	return c->paths[i].cwnd / 2;
}
