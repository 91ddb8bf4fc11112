/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Adaptive congestion control by its intent (`Mode::Build`): for the equations see
 * crates/cooperation/src/adaptive_congestion/mod.rs. It is a layer over any controller, and only reduces windows.
 */
#pragma once

#include "arithmetic.h"

/* Treatment of ratios above eta_max, as in crates/cooperation/src/adaptive_congestion/settings.rs. */
enum cc_beyond { CC_BEYOND_IGNORE, CC_BEYOND_CAP, CC_BEYOND_SPREAD };

struct cc_acc_settings {
	/* F; zero: windows are never cut. */
	u64 period_ns;
	u64 eta_min_q16;
	u64 eta_max_q16;
	u64 beyond;
	/* m */
	u64 cuts_max;
	/* Gamma in round-trip times. */
	u64 age_rtts;
	/* When they came into force, which tells them from those before: periods of the latter end without a cut. */
	u64 since_ns;
};

struct cc_acc_path {
	/* All round-trip times so far, and those before the period began. */
	struct cc_mean rtts;
	struct cc_mean rtts_before;
	/* Delay from the relay to the destination as the relay reports it; zero without a report. */
	u64 way_ns;
	/* T_init */
	u64 established_ns;
	/* d_r of the last period; CC_NONE if the path has no measurement. */
	u64 delay_ns;
	/* count_r */
	u64 count;
	/* The window to lower to, octets, until the path's own socket takes it; zero if there is none. */
	u64 cut;
	/* Number of cuts so far. */
	u64 cuts;
};

/* State of a connection. Each path writes its own sums; the one socket that ends a period writes the rest. */
struct cc_acc {
	/* When the period ends. */
	u64 next_ns;
	struct cc_acc_path paths[CC_PATHS_MAX];
	/* `since_ns` of the settings under which the period began. */
	u64 since_ns;
};

/*
 * A period begins that follows on none: the first one of a connection, or the first one under new settings. What was
 * measured or decided before does not belong to it.
 */
CC_RULE u64 cc_acc_begin(struct cc_acc *a, u64 since_ns)
{
	if (!a)
		return 0;
	for (u64 i = 0; i < CC_PATHS_MAX; i++) {
		a->paths[i].rtts_before = a->paths[i].rtts;
		a->paths[i].count = 0;
		a->paths[i].cut = 0;
	}
	a->since_ns = since_ns;
	return 0;
}

/* Data arrived, with or without a round-trip time. State that another path left in the place is cleared. */
CC_RULE u64 cc_acc_delivered(struct cc_acc *a, u64 i, u64 rtt_ns, u64 way_ns, u64 established_ns)
{
	static const struct cc_acc_path forgotten;
	if (!a || i >= CC_PATHS_MAX)
		return 0;
	if (a->paths[i].established_ns != established_ns) {
		a->paths[i] = forgotten;
		a->paths[i].established_ns = established_ns;
	}
	a->paths[i].way_ns = way_ns;
	if (rtt_ns != CC_NONE)
		cc_mean_add(&a->paths[i].rtts, rtt_ns);
	return 0;
}

/* Determines d_r of all paths. Returns the measured paths, as bits. */
CC_RULE u64 cc_acc_measure(const struct cc_connection *c, struct cc_acc *a)
{
	u64 measured = 0;
	if (!c || !a)
		return 0;
	for (u64 i = 0; i < CC_PATHS_MAX; i++) {
		struct cc_acc_path *p = &a->paths[i];
		u64 sum = cc_sub_floored(p->rtts.sum, p->rtts_before.sum);
		u64 samples = cc_sub_floored(p->rtts.samples, p->rtts_before.samples);
		p->rtts_before = p->rtts;
		p->delay_ns = CC_NONE;
		if (!cc_is_used(c, i) || !samples || !cc_is_measured(&c->paths[i]))
			continue;
		p->delay_ns = cc_add_capped(sum / samples, p->way_ns);
		measured |= 1ULL << i;
	}
	return measured;
}

/* Returns the first of equally slow paths, as the engine does; CC_NONE if none was measured. */
CC_RULE u64 cc_acc_slowest(const struct cc_acc *a, u64 measured)
{
	u64 found = CC_NONE, delay = 0;
	if (!a)
		return CC_NONE;
	for (u64 i = 0; i < CC_PATHS_MAX; i++) {
		if (!(measured >> i & 1) || (found != CC_NONE && a->paths[i].delay_ns <= delay))
			continue;
		found = i;
		delay = a->paths[i].delay_ns;
	}
	return found;
}

CC_RULE u64 cc_acc_fastest(const struct cc_acc *a, u64 measured)
{
	u64 found = CC_NONE, delay = 0;
	if (!a)
		return CC_NONE;
	for (u64 i = 0; i < CC_PATHS_MAX; i++) {
		if (!(measured >> i & 1) || (found != CC_NONE && a->paths[i].delay_ns >= delay))
			continue;
		found = i;
		delay = a->paths[i].delay_ns;
	}
	return found;
}

/* Gamma */
CC_RULE u64 cc_acc_least_age(const struct cc_connection *c, u64 measured, u64 age_rtts)
{
	u64 srtt = 0;
	if (!c)
		return CC_NONE;
	for (u64 i = 0; i < CC_PATHS_MAX; i++)
		if (measured >> i & 1)
			srtt = cc_max(srtt, c->paths[i].srtt_ns);
	return cc_mul_div(srtt, age_rtts, 1);
}

/* Resets all counts of cuts in a row, and returns the count of `slowest` so far. */
CC_RULE u64 cc_acc_take_count(struct cc_acc *a, u64 slowest)
{
	u64 made = 0;
	if (!a)
		return 0;
	for (u64 i = 0; i < CC_PATHS_MAX; i++) {
		if (i == slowest)
			made = a->paths[i].count;
		a->paths[i].count = 0;
	}
	return made;
}

/*
 * Returns the new window for `cwnd` when the slowest path has delay `slow` and the fastest `fast`; CC_NONE if the ratio
 * is out of range. `rtt` is the part of `slow` that the window changes, and `min_rtt` that without a queue.
 */
CC_INLINE u64 cc_acc_left(const struct cc_acc_settings *s, u64 cwnd, u64 slow, u64 fast, u64 rtt, u64 min_rtt)
{
	u64 part, whole;
	if (!cc_product_exceeds(slow, CC_ONE_Q16, s->eta_min_q16, fast))
		return CC_NONE;
	/* eta_max = whole / part */
	part = s->beyond == CC_BEYOND_SPREAD ? cc_max(min_rtt, 1) : CC_ONE_Q16;
	whole = s->beyond == CC_BEYOND_SPREAD ? rtt : s->eta_max_q16;
	if (!cc_product_exceeds(slow, part, whole, fast))
		return cc_mul_div(cwnd, fast, slow);
	if (s->beyond == CC_BEYOND_IGNORE || !cc_product_exceeds(whole, CC_ONE_Q16, s->eta_min_q16, part))
		return CC_NONE;
	return cc_mul_div(cwnd, part, whole);
}

/*
 * A period has ended. Returns the path whose window must be cut, with the new window in its state; CC_NONE if there is
 * none.
 */
CC_RULE u64 cc_acc_period(const struct cc_connection *c, struct cc_acc *a, const struct cc_acc_settings *s, u64 now_ns)
{
	u64 measured, slowest, fastest, made, left;
	const struct cc_path *p;
	struct cc_acc_path *own;
	if (!c || !a || !s)
		return CC_NONE;
	measured = cc_acc_measure(c, a);
	slowest = cc_acc_slowest(a, measured);
	fastest = cc_acc_fastest(a, measured);
	if (slowest >= CC_PATHS_MAX || fastest >= CC_PATHS_MAX || cc_bits(measured) < 2 || !a->paths[fastest].delay_ns)
		return CC_NONE;
	p = &c->paths[slowest];
	own = &a->paths[slowest];
	made = cc_acc_take_count(a, slowest);
	left = cc_acc_left(s, p->cwnd, own->delay_ns, a->paths[fastest].delay_ns,
			   cc_sub_floored(own->delay_ns, own->way_ns),
			   p->min_rtt_ns == CC_NONE ? p->srtt_ns : p->min_rtt_ns);
	if (left == CC_NONE || made >= s->cuts_max)
		return CC_NONE;
	/* A period in which the path could not be cut does not count, and does not break the row either. */
	own->count = made;
	left = cc_max(left, 2ULL * p->mss);
	if (cc_sub_floored(now_ns, own->established_ns) <= cc_acc_least_age(c, measured, s->age_rtts) ||
	    cc_in_slow_start(p) || p->in_recovery || left >= p->cwnd)
		return CC_NONE;
	own->count = made + 1;
	own->cuts += 1;
	own->cut = left;
	return slowest;
}
