/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * MCC-Coop and GMCC-Coop, guarded and with rho squared: for the equations see
 * crates/transport/src/congestion/sharing.rs. Numbers that are floating-point in the engine are in 2^-16 here. Without
 * a report both are LIA.
 */
#pragma once

#include "lia.h"

/* Trusted range of reports: crates/transport/src/congestion/competition.rs. */
#define CC_RATIO_MAX_Q16 (1000 * CC_ONE_Q16)
#define CC_INCREASE_MIN_Q16 (CC_ONE_Q16 / 64)
#define CC_INCREASE_MAX_Q16 (3 * CC_ONE_Q16)
#define CC_DECREASE_MAX_Q16 (7 * CC_ONE_Q16 / 8)

/* rho, at least 1. */
CC_INLINE u64 cc_excess_q16(const struct cc_path *p)
{
	return cc_max(cc_min(p->told.ratio_q16, CC_RATIO_MAX_Q16), CC_ONE_Q16);
}

/* alpha'; NewReno's without a report. */
CC_INLINE u64 cc_increase_q16(const struct cc_path *p, u64 general)
{
	if (!general || !p->told.ratio_q16)
		return CC_ONE_Q16;
	return cc_max(cc_min(p->told.increase_q16, CC_INCREASE_MAX_Q16), CC_INCREASE_MIN_Q16);
}

/* beta'; NewReno's without a report. */
CC_INLINE u64 cc_decrease_q16(const struct cc_path *p, u64 general)
{
	if (!general || !p->told.ratio_q16)
		return CC_ONE_Q16 / 2;
	return cc_min(p->told.decrease_q16, CC_DECREASE_MAX_Q16);
}

/* `general`: competing flows are AIMD with the reported parameters, instead of always NewReno. */
CC_RULE s64 cc_sharing_ack(struct cc_connection *c, u64 i, u64 acked_bytes, u64 cwnd_limited, u64 general)
{
	u64 acked, increase, most, ratio, linked;
	const struct cc_path *p;
	if (!c || i >= CC_PATHS_MAX)
		return 0;
	p = &c->paths[i];
	acked = cc_creditable(p, acked_bytes, cwnd_limited);
	if (!acked)
		return 0;
	increase = cc_increase_q16(p, general);
	ratio = cc_excess_q16(p);
	most = increase * p->mss;
	if (ratio > CC_ONE_Q16)
		most = cc_mul_div(most, CC_ONE_Q16 * CC_ONE_Q16, ratio * ratio);
	linked = cc_mul_div(cc_lia_linked(c, i, acked), increase, CC_ONE_Q16);
	return cc_signed(cc_min(cc_mul_div(acked, most, p->cwnd), linked));
}

/* After losses and time-outs. */
CC_RULE u64 cc_sharing_reduced(struct cc_connection *c, u64 i, u64 general)
{
	if (!c || i >= CC_PATHS_MAX)
		return 0;
	cc_lia_forget(c);
	return cc_mul_div(c->paths[i].cwnd, cc_decrease_q16(&c->paths[i], general), CC_ONE_Q16);
}
