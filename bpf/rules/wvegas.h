/* SPDX-License-Identifier: GPL-2.0-only */
/* wVegas: for the equations see crates/transport/src/congestion/wvegas.rs. */
#pragma once

#include "arithmetic.h"

#define CC_WVEGAS_ALPHA_MIN 2ULL
#define CC_WVEGAS_TOTAL_ALPHA 10ULL
#define CC_WVEGAS_GAMMA 1ULL
#define CC_WVEGAS_CWND_MIN 2ULL
#define CC_WVEGAS_SAMPLES_MIN 3ULL

CC_INLINE void cc_wvegas_restart(struct cc_path *p)
{
	p->wvegas.round.sum = p->wvegas.round.samples = 0;
	p->wvegas.was_limited = CC_FALSE;
	p->wvegas.alpha = CC_WVEGAS_ALPHA_MIN;
	p->wvegas.rate_q16 = 0;
	p->wvegas.smallest_delay_ns = CC_NONE;
}

CC_RULE u64 cc_wvegas_loss(struct cc_connection *c, u64 i)
{
	if (!c || i >= CC_PATHS_MAX)
		return 0;
	cc_wvegas_restart(&c->paths[i]);
	return c->paths[i].cwnd / 2;
}

/* Computes a path's share in total_alpha. */
CC_RULE u64 cc_wvegas_share_out(struct cc_connection *c, u64 i, u64 rtt_ns)
{
	u64 rate, places, all = 0, alpha;
	if (!c || i >= CC_PATHS_MAX)
		return CC_WVEGAS_ALPHA_MIN;
	rate = cc_mul_div(c->paths[i].cwnd, CC_ONE_Q16, cc_whole_us(rtt_ns));
	c->paths[i].wvegas.rate_q16 = rate;
	places = cc_counted(c, i);
	for (u64 j = 0; j < CC_PATHS_MAX; j++)
		if (cc_is_among(places, j))
			all = cc_add_capped(all, c->paths[j].wvegas.rate_q16);
	alpha = cc_max(cc_mul_div(CC_WVEGAS_TOTAL_ALPHA, rate, all), CC_WVEGAS_ALPHA_MIN);
	c->paths[i].wvegas.alpha = alpha;
	return alpha;
}

/* `cwnd` octets, or fewer if the queue should drain. */
CC_INLINE u64 cc_wvegas_drained(struct cc_path *p, u64 cwnd, u64 rtt_ns, u64 base_rtt_ns)
{
	u64 delay = cc_sub_floored(rtt_ns, base_rtt_ns);
	u64 smallest = cc_min(p->wvegas.smallest_delay_ns, delay);
	u64 twice = cc_add_capped(smallest, smallest);
	if (delay > twice) {
		p->wvegas.smallest_delay_ns = CC_NONE;
		return cc_mul_div(cwnd, base_rtt_ns, cc_add_capped(rtt_ns, rtt_ns));
	}
	p->wvegas.smallest_delay_ns = smallest;
	return cwnd;
}

CC_INLINE u64 cc_wvegas_window(const struct cc_path *p, u64 cwnd)
{
	return cc_max(cwnd, CC_WVEGAS_CWND_MIN * cc_max(p->mss, 1));
}

/* The new window in octets, or CC_NONE; the threshold then falls to it. */
CC_RULE u64 cc_wvegas_round(struct cc_connection *c, u64 i)
{
	u64 may_grow, rtt, base, mss, diff, alpha, cwnd;
	struct cc_mean round;
	struct cc_path *p;
	if (!c || i >= CC_PATHS_MAX)
		return CC_NONE;
	p = &c->paths[i];
	round = p->wvegas.round;
	may_grow = p->wvegas.was_limited;
	p->wvegas.round.sum = p->wvegas.round.samples = 0;
	p->wvegas.was_limited = CC_FALSE;
	if (p->in_recovery)
		return CC_NONE;
	cwnd = p->cwnd;
	mss = cc_max(p->mss, 1);
	if (round.samples < CC_WVEGAS_SAMPLES_MIN || p->min_rtt_ns == CC_NONE) {
		if (may_grow && !cc_in_slow_start(p))
			return cc_wvegas_window(p, cc_add_capped(cwnd, mss));
		return CC_NONE;
	}
	rtt = round.sum / round.samples;
	base = cc_min(p->min_rtt_ns, rtt);
	diff = cc_backlog(cwnd, rtt, base) / mss;
	if (cc_in_slow_start(p)) {
		if (diff <= CC_WVEGAS_GAMMA)
			return CC_NONE;
		return cc_wvegas_window(p, cc_min(cwnd, cc_add_capped(cc_mul_div(cwnd, base, rtt), mss)));
	}
	alpha = p->wvegas.alpha;
	if (diff >= alpha)
		alpha = cc_wvegas_share_out(c, i, rtt);
	if (diff > alpha)
		cwnd = cc_sub_floored(cwnd, mss);
	else if (diff < alpha && may_grow)
		cwnd = cc_add_capped(cwnd, mss);
	cwnd = cc_wvegas_drained(p, cwnd, rtt, base);
	return cwnd != p->cwnd ? cc_wvegas_window(p, cwnd) : CC_NONE;
}
