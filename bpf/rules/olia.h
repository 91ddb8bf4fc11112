/* SPDX-License-Identifier: GPL-2.0-only */
/* OLIA: for the equations see crates/transport/src/congestion/olia.rs. */
#pragma once

#include "arithmetic.h"

CC_RULE u64 cc_olia_segments(const struct cc_path *p)
{
	if (!p)
		return 0;
	return cc_effective_cwnd(p) / cc_max(p->mss, 1);
}

/* l_p, octets. */
CC_RULE u64 cc_olia_inter_loss(const struct cc_path *p)
{
	if (!p)
		return 0;
	return cc_max(p->olia.since_last_loss, p->olia.between_losses);
}

/* The index of the first path among `counted` with the largest l_p / rtt_p^2. */
CC_RULE u64 cc_olia_best(const struct cc_connection *c, u64 counted)
{
	u64 best = CC_NONE, best_loss = 0, best_rtt = 0;
	if (!c)
		return CC_NONE;
	for (u64 i = 0; i < CC_PATHS_MAX; i++) {
		const struct cc_path *p = &c->paths[i];
		if (!cc_is_among(counted, i) || !cc_is_measured(p))
			continue;
		u64 loss = cc_olia_inter_loss(p), rtt = cc_whole_us(p->srtt_ns);
		if (best == CC_NONE || cc_product_exceeds(loss, best_rtt * best_rtt, best_loss, rtt * rtt)) {
			best = i;
			best_loss = loss;
			best_rtt = rtt;
		}
	}
	return best;
}

/* Whether path `i` is as good as the best. */
CC_RULE u64 cc_olia_is_best(const struct cc_connection *c, u64 i, u64 best)
{
	u64 loss, rtt, best_loss, best_rtt;
	if (!c || i >= CC_PATHS_MAX || best >= CC_PATHS_MAX)
		return CC_FALSE;
	const struct cc_path *p = &c->paths[i], *q = &c->paths[best];
	loss = cc_olia_inter_loss(p);
	rtt = cc_whole_us(p->srtt_ns);
	best_loss = cc_olia_inter_loss(q);
	best_rtt = cc_whole_us(q->srtt_ns);
	return !cc_product_exceeds(loss, best_rtt * best_rtt, best_loss, rtt * rtt) &&
	       !cc_product_exceeds(best_loss, rtt * rtt, loss, best_rtt * best_rtt);
}

/* The measured paths among `counted` with the largest window, as bits. */
CC_RULE u64 cc_olia_max(const struct cc_connection *c, u64 counted)
{
	u64 largest = 0, places = 0;
	if (!c)
		return 0;
	for (u64 i = 0; i < CC_PATHS_MAX; i++)
		if (cc_is_among(counted, i) && cc_is_measured(&c->paths[i]))
			largest = cc_max(largest, cc_olia_segments(&c->paths[i]));
	for (u64 i = 0; i < CC_PATHS_MAX; i++)
		if (cc_is_among(counted, i) && cc_is_measured(&c->paths[i]) && cc_olia_segments(&c->paths[i]) == largest)
			places |= 1ULL << i;
	return places;
}

/* The best paths among `counted` that do not have the largest window, as bits. */
CC_RULE u64 cc_olia_collected(const struct cc_connection *c, u64 counted, u64 in_max)
{
	u64 best, places = 0;
	if (!c)
		return 0;
	best = cc_olia_best(c, counted);
	for (u64 i = 0; i < CC_PATHS_MAX; i++)
		if (cc_is_among(counted, i) && cc_is_measured(&c->paths[i]) && cc_olia_is_best(c, i, best))
			places |= 1ULL << i;
	return places & ~in_max;
}

/* Computes alpha of the paths among `counted`. */
CC_RULE u64 cc_olia_assign(struct cc_connection *c, u64 counted)
{
	u64 in_max, collected, k;
	s64 gains, gives;
	if (!c)
		return 0;
	in_max = cc_olia_max(c, counted);
	collected = cc_olia_collected(c, counted, in_max);
	k = cc_bits(counted);
	gains = (s64)(k * cc_bits(collected));
	gives = collected ? -(s64)(k * cc_bits(in_max)) : 0;
	for (u64 i = 0; i < CC_PATHS_MAX; i++) {
		if (!cc_is_among(counted, i))
			continue;
		if (in_max >> i & 1)
			c->paths[i].olia.alpha = gives;
		else if (collected >> i & 1)
			c->paths[i].olia.alpha = gains;
		else
			c->paths[i].olia.alpha = 0;
	}
	return 0;
}

/* The first term of the increase, 2^-16 octet; NewReno's until the path has a round-trip time. */
CC_INLINE u64 cc_olia_balancing(const struct cc_connection *c, u64 i, u64 acked)
{
	const struct cc_path *p = &c->paths[i];
	u64 all;
	if (!cc_is_measured(p))
		return cc_newreno_gain(p, acked);
	all = cc_windows_over(c, cc_counted(c, i), cc_whole_us(p->srtt_ns));
	return cc_mul_div(acked, cc_mul_div(cc_mss_q16(p), cc_effective_cwnd(p), all), all);
}

CC_RULE s64 cc_olia_ack(struct cc_connection *c, u64 i, u64 acked_bytes, u64 cwnd_limited)
{
	u64 acked, balancing, opportunistic;
	const struct cc_path *p;
	s64 alpha;
	if (!c || i >= CC_PATHS_MAX)
		return 0;
	p = &c->paths[i];
	acked = cc_creditable(p, acked_bytes, cwnd_limited);
	if (!acked)
		return 0;
	if (!c->is_current) {
		c->is_current = CC_TRUE;
		cc_olia_assign(c, cc_counted(c, i));
	}
	balancing = cc_olia_balancing(c, i, acked);
	opportunistic = cc_newreno_gain(p, acked);
	alpha = p->olia.alpha;
	if (alpha > 0)
		return cc_signed(cc_add_capped(balancing, opportunistic / (u64)alpha));
	if (alpha < 0)
		return cc_signed(balancing) - cc_signed(opportunistic / (u64)-alpha);
	return cc_signed(balancing);
}

CC_INLINE void cc_olia_delivery(struct cc_path *p, u64 delivered_bytes)
{
	p->olia.since_last_loss = cc_add_capped(p->olia.since_last_loss, delivered_bytes);
}

CC_RULE u64 cc_olia_loss(struct cc_connection *c, u64 i)
{
	struct cc_path *p;
	if (!c || i >= CC_PATHS_MAX)
		return 0;
	p = &c->paths[i];
	c->is_current = CC_FALSE;
	/* Two losses with no delivery in between count as one. */
	if (p->olia.since_last_loss) {
		p->olia.between_losses = p->olia.since_last_loss;
		p->olia.since_last_loss = 0;
	}
	return p->cwnd / 2;
}
