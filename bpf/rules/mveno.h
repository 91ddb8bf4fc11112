/* SPDX-License-Identifier: GPL-2.0-only */
/* mVeno and mveno-own-rtt: for the equations see crates/transport/src/congestion/mveno.rs. */
#pragma once

#include "veno.h"

#define CC_FLOOR_Q16 (CC_ONE_Q16 / 100)
#define CC_SEGMENTS_MAX_Q16 ((1ULL << 21) * CC_ONE_Q16)

/* Equation (4), as P(N > beta) in 2^-16. */
CC_RULE u64 cc_mveno_congestion(u64 rtt_ns, u64 base_rtt_ns, u64 cwnd_max, u64 mss)
{
	u64 backlog_max = cc_backlog(cwnd_max, rtt_ns, base_rtt_ns);
	u64 not_congested = cc_min(cc_mul_div(CC_BETA_SEGMENTS * mss, CC_ONE_Q16, backlog_max), CC_ONE_Q16);
	return cc_max(CC_ONE_Q16 - not_congested, CC_FLOOR_Q16);
}

/* Equation (5). */
CC_INLINE u64 cc_mveno_decrease(u64 congestion_q16)
{
	return (2 * CC_ONE_Q16 + 3 * congestion_q16) / 10;
}

/* Segments in 2^-16, below 2^37. */
CC_INLINE u64 cc_mveno_segments(u64 bytes, u64 mss)
{
	return cc_min(cc_mul_div(bytes, CC_ONE_Q16, mss), CC_SEGMENTS_MAX_Q16);
}

/* Equation (13) within its bounds, 2^-16: first Q_r and w_r, then Q_s and T_s y_s. */
CC_RULE u64 cc_mveno_delta(u64 q, u64 window, u64 q_whole, u64 window_whole)
{
	struct cc_wide extent, divisor, dividend, subtrahend = { 0, q_whole << 16 };
	u64 delta;
	window_whole = cc_min(window_whole, CC_SEGMENTS_MAX_Q16);
	extent = cc_wide_scaled(cc_wide_product(window_whole, window_whole), cc_mveno_decrease(q_whole));
	extent = cc_wide_plus(cc_wide_shifted_right_16(extent), 1ULL << 32);
	divisor = cc_wide_shifted_right_16(cc_wide_scaled(extent, q));
	if (!cc_wide_exceeds(divisor, subtrahend))
		return CC_ONE_Q16;
	divisor = cc_wide_minus(divisor, subtrahend);
	window = cc_min(window, CC_SEGMENTS_MAX_Q16);
	dividend = cc_wide_scaled(cc_wide_product(window, window), q_whole * cc_mveno_decrease(q));
	delta = cc_wide_ratio(dividend.high, dividend.low, divisor.high, divisor.low, 16);
	return cc_max(cc_min(delta, CC_ONE_Q16), CC_FLOOR_Q16);
}

/* T_s of algorithm 1, line 12, over `places`; CC_NONE if no round has ended. */
CC_RULE u64 cc_mveno_mean_of_all(const struct cc_connection *c, u64 places)
{
	u64 sum = 0, samples = 0;
	if (!c)
		return CC_NONE;
	for (u64 i = 0; i < CC_PATHS_MAX; i++) {
		if (!cc_is_among(places, i))
			continue;
		sum = cc_add_capped(sum, c->paths[i].mveno.last.rtts.sum);
		samples += c->paths[i].mveno.last.rtts.samples;
	}
	return samples ? sum / samples : CC_NONE;
}

/* Q_s in 2^-16, over `places`. */
CC_RULE u64 cc_mveno_congestion_of_all(const struct cc_connection *c, u64 places, u64 rtt_ns)
{
	u64 base_rtt_ns = CC_NONE, largest = 0, cwnd_max = 0, mss = 1;
	if (!c)
		return CC_ONE_Q16;
	for (u64 i = 0; i < CC_PATHS_MAX; i++) {
		const struct cc_round *round = &c->paths[i].mveno.last;
		if (!cc_is_among(places, i) || !round->rtts.samples)
			continue;
		base_rtt_ns = cc_min(base_rtt_ns, round->base_rtt_ns);
		/* The last of equal ones, as in the engine. */
		if (round->cwnd_max / cc_max(round->mss, 1) >= largest) {
			cwnd_max = round->cwnd_max;
			mss = cc_max(round->mss, 1);
			largest = cwnd_max / mss;
		}
	}
	return cc_mveno_congestion(rtt_ns, base_rtt_ns, cwnd_max, mss);
}

/* T_s y_s in segments of 2^-16, over `places`. */
CC_RULE u64 cc_mveno_window_of_all(const struct cc_connection *c, u64 places, u64 rtt_ns)
{
	u64 window = 0;
	if (!c)
		return 0;
	for (u64 i = 0; i < CC_PATHS_MAX; i++) {
		const struct cc_round *round = &c->paths[i].mveno.last;
		if (!cc_is_among(places, i) || !round->rtts.samples)
			continue;
		u64 own = cc_mveno_segments(round->mean_cwnd, round->mss);
		window = cc_add_capped(window, cc_mul_div(own, rtt_ns, round->mean_rtt_ns));
	}
	return cc_min(window, CC_SEGMENTS_MAX_Q16);
}

/*
 * Linkpara_Adjust() of algorithm 1 over `places`; with `own_rtt` each path compares with what all paths would carry in
 * its own round-trip time.
 */
CC_RULE u64 cc_mveno_adjust(struct cc_connection *c, u64 places, u64 own_rtt)
{
	u64 rtt_ns, q_whole, window_whole;
	if (!c)
		return 0;
	rtt_ns = cc_mveno_mean_of_all(c, places);
	if (rtt_ns == CC_NONE)
		return 0;
	q_whole = cc_mveno_congestion_of_all(c, places, rtt_ns);
	window_whole = cc_mveno_window_of_all(c, places, rtt_ns);
	for (u64 i = 0; i < CC_PATHS_MAX; i++) {
		const struct cc_round *round = &c->paths[i].mveno.last;
		u64 q, own, whole = window_whole;
		if (!cc_is_among(places, i) || !round->rtts.samples)
			continue;
		if (own_rtt)
			whole = cc_min(cc_mul_div(window_whole, round->mean_rtt_ns, rtt_ns), CC_SEGMENTS_MAX_Q16);
		q = cc_mveno_congestion(round->mean_rtt_ns, round->base_rtt_ns, round->cwnd_max, round->mss);
		own = cc_mveno_segments(round->mean_cwnd, round->mss);
		c->paths[i].mveno.delta_q16 = cc_mveno_delta(q, own, q_whole, whole);
	}
	return 0;
}

/* N_r >= beta. */
CC_INLINE int cc_mveno_is_congested(const struct cc_path *p)
{
	const struct cc_round *round = &p->mveno.last;
	return round->rtts.samples &&
	       cc_backlog(round->mean_cwnd, round->mean_rtt_ns, round->base_rtt_ns) >= CC_BETA_SEGMENTS * round->mss;
}

CC_RULE s64 cc_mveno_ack(struct cc_connection *c, u64 i, u64 acked_bytes, u64 cwnd_limited)
{
	u64 per_window, gained;
	struct cc_path *p;
	if (!c || i >= CC_PATHS_MAX)
		return 0;
	p = &c->paths[i];
	cc_mean_add(&p->mveno.cwnds, p->cwnd);
	per_window = cc_mul_div(cc_mss_q16(p), p->mveno.delta_q16, CC_ONE_Q16);
	gained = cc_mul_div(cc_creditable(p, acked_bytes, cwnd_limited), per_window, p->cwnd);
	return cc_signed(cc_mveno_is_congested(p) ? gained / 2 : gained);
}

/* The end of each round is not often enough: see the engine. */
CC_INLINE void cc_mveno_note_window(struct cc_path *p)
{
	p->mveno.cwnd_max = cc_max(p->mveno.cwnd_max, p->cwnd);
}

CC_RULE u64 cc_mveno_loss(struct cc_connection *c, u64 i)
{
	if (!c || i >= CC_PATHS_MAX)
		return 0;
	cc_mveno_note_window(&c->paths[i]);
	return cc_veno_reduced(c->paths[i].cwnd, cc_mveno_is_congested(&c->paths[i]));
}

/* The last round, at a time-out: what the subflow carried then it does not carry now. */
CC_INLINE void cc_mveno_forget(struct cc_path *p)
{
	static const struct cc_round none;
	cc_mveno_note_window(p);
	p->mveno.last = none;
}

CC_RULE u64 cc_mveno_round(struct cc_connection *c, u64 i, u64 own_rtt)
{
	struct cc_mean rtts, cwnds;
	struct cc_mveno_state *s;
	struct cc_path *p;
	if (!c || i >= CC_PATHS_MAX)
		return CC_NONE;
	p = &c->paths[i];
	s = &p->mveno;
	rtts = s->rtts;
	cwnds = s->cwnds;
	s->rtts.sum = s->rtts.samples = s->cwnds.sum = s->cwnds.samples = 0;
	cc_mveno_note_window(p);
	/* A round without samples gives no new information. */
	if (rtts.samples && p->min_rtt_ns != CC_NONE) {
		s->last.mean_rtt_ns = rtts.sum / rtts.samples;
		s->last.base_rtt_ns = p->min_rtt_ns;
		s->last.mean_cwnd = cwnds.samples ? cwnds.sum / cwnds.samples : p->cwnd;
		s->last.cwnd_max = s->cwnd_max;
		s->last.mss = cc_max(p->mss, 1);
		s->last.rtts = rtts;
	}
	cc_mveno_adjust(c, cc_counted(c, i), own_rtt);
	return CC_NONE;
}
