/* SPDX-License-Identifier: GPL-2.0-only */
/* Veno, and MPVeno's decreases: for the equations see crates/transport/src/congestion/veno.rs and mpveno.rs. */
#pragma once

#include "olia.h"

#define CC_BETA_SEGMENTS 3ULL

/* N in octets. Without a round-trip time there is no sign of congestion. */
CC_INLINE u64 cc_veno_backlog(const struct cc_path *p)
{
	if (!cc_is_measured(p) || p->min_rtt_ns == CC_NONE)
		return 0;
	return cc_backlog(p->cwnd, p->srtt_ns, p->min_rtt_ns);
}

CC_INLINE u64 cc_veno_reduced(u64 cwnd, int is_congested)
{
	return is_congested ? cwnd / 2 : cwnd - cwnd / 5;
}

CC_INLINE int cc_veno_is_congested(const struct cc_path *p)
{
	return cc_veno_backlog(p) >= CC_BETA_SEGMENTS * p->mss;
}

/* Increase for `acked` octets, 2^-16 octet. */
CC_INLINE u64 cc_veno_gain(const struct cc_path *p, u64 acked)
{
	u64 gained = cc_newreno_gain(p, acked);
	return cc_veno_is_congested(p) ? gained / 2 : gained;
}

CC_RULE s64 cc_veno_ack(struct cc_connection *c, u64 i, u64 acked_bytes, u64 cwnd_limited)
{
	if (!c || i >= CC_PATHS_MAX)
		return 0;
	return cc_signed(cc_veno_gain(&c->paths[i], cc_creditable(&c->paths[i], acked_bytes, cwnd_limited)));
}

CC_RULE u64 cc_veno_loss(struct cc_connection *c, u64 i)
{
	if (!c || i >= CC_PATHS_MAX)
		return 0;
	return cc_veno_reduced(c->paths[i].cwnd, cc_veno_is_congested(&c->paths[i]));
}

/* beta_i in octets: Veno's threshold times the path's share in the rate; all of it without a round-trip time. */
CC_INLINE u64 cc_mpveno_threshold(const struct cc_connection *c, u64 i)
{
	const struct cc_path *p = &c->paths[i];
	u64 beta = CC_BETA_SEGMENTS * p->mss;
	if (!cc_is_measured(p))
		return beta;
	return cc_mul_div(beta, cc_effective_cwnd(p), cc_windows_over(c, cc_counted(c, i), cc_whole_us(p->srtt_ns)));
}

CC_RULE u64 cc_mpveno_loss(struct cc_connection *c, u64 i)
{
	if (!c || i >= CC_PATHS_MAX)
		return 0;
	cc_olia_loss(c, i);
	return cc_veno_reduced(c->paths[i].cwnd, cc_veno_backlog(&c->paths[i]) >= cc_mpveno_threshold(c, i));
}
