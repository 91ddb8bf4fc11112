/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * All controllers behind one interface, that of the engine's trait CongestionController. If `kind` is constant, a
 * compiler keeps only the rule of one controller in each function.
 */
#pragma once

#include "balia.h"
#include "lia.h"
#include "mveno.h"
#include "olia.h"
#include "sharing.h"
#include "veno.h"
#include "wvegas.h"

CC_INLINE int cc_has_olia_increases(enum cc_kind kind)
{
	return kind == CC_OLIA || kind == CC_MPVENO;
}

/* A path is established: its place is taken and its view is set, but its state in the place is not. */
CC_INLINE void cc_added(enum cc_kind kind, struct cc_connection *c, u64 i)
{
	if (cc_is_linked(kind))
		cc_lia_forget(c);
	if (cc_has_olia_increases(kind))
		c->is_current = CC_FALSE;
	if (kind == CC_WVEGAS && i < CC_PATHS_MAX)
		cc_wvegas_restart(&c->paths[i]);
	if (cc_is_mveno(kind) && i < CC_PATHS_MAX)
		c->paths[i].mveno.delta_q16 = CC_ONE_Q16 / cc_max(cc_path_count(c, i), 1);
}

/* A path has ended; its place is free. */
CC_INLINE void cc_removed(enum cc_kind kind, struct cc_connection *c)
{
	if (cc_is_linked(kind))
		cc_lia_forget(c);
	if (cc_has_olia_increases(kind))
		c->is_current = CC_FALSE;
	if (cc_is_mveno(kind))
		cc_mveno_adjust(c, cc_counted(c, CC_NONE), kind == CC_MVENO_OWN_RTT);
}

/* Data arrived, or a round-trip time was measured. */
CC_INLINE void cc_delivered(enum cc_kind kind, struct cc_path *p, u64 delivered_bytes, u64 rtt_ns)
{
	if (cc_has_olia_increases(kind))
		cc_olia_delivery(p, delivered_bytes);
	if (rtt_ns == CC_NONE)
		return;
	if (cc_is_mveno(kind))
		cc_mean_add(&p->mveno.rtts, rtt_ns);
	if (kind == CC_WVEGAS)
		cc_mean_add(&p->wvegas.round, rtt_ns);
}

/* Returns the window's growth in congestion avoidance, 2^-16 octet. */
CC_INLINE s64 cc_acked(enum cc_kind kind, struct cc_connection *c, u64 i, u64 acked_bytes, u64 cwnd_limited)
{
	switch (kind) {
	case CC_LIA:
		return cc_lia_ack(c, i, acked_bytes, cwnd_limited);
	case CC_BALIA:
		return cc_balia_ack(c, i, acked_bytes, cwnd_limited);
	case CC_OLIA:
	case CC_MPVENO:
		return cc_olia_ack(c, i, acked_bytes, cwnd_limited);
	case CC_VENO:
		return cc_veno_ack(c, i, acked_bytes, cwnd_limited);
	case CC_MVENO:
	case CC_MVENO_OWN_RTT:
		return cc_mveno_ack(c, i, acked_bytes, cwnd_limited);
	case CC_MCC_COOP:
	case CC_GMCC_COOP:
		return cc_sharing_ack(c, i, acked_bytes, cwnd_limited, kind == CC_GMCC_COOP);
	case CC_WVEGAS:
		if (i < CC_PATHS_MAX)
			c->paths[i].wvegas.was_limited |= cwnd_limited;
		return 0;
	case CC_OWN:
		return 0;
	}
	return 0;
}

/* The minimum threshold after a congestion event, octets. */
CC_INLINE u64 cc_least(enum cc_kind kind, const struct cc_connection *c, u64 i)
{
	if ((kind == CC_OLIA || kind == CC_BALIA) && cc_path_count(c, i) > 1)
		return c->paths[i].mss;
	return 2ULL * c->paths[i].mss;
}

CC_INLINE u64 cc_lost_unbounded(enum cc_kind kind, struct cc_connection *c, u64 i)
{
	switch (kind) {
	case CC_LIA:
		return cc_lia_loss(c, i);
	case CC_OLIA:
		return cc_olia_loss(c, i);
	case CC_BALIA:
		return cc_balia_loss(c, i);
	case CC_WVEGAS:
		return cc_wvegas_loss(c, i);
	case CC_VENO:
		return cc_veno_loss(c, i);
	case CC_MVENO:
	case CC_MVENO_OWN_RTT:
		return cc_mveno_loss(c, i);
	case CC_MPVENO:
		return cc_mpveno_loss(c, i);
	case CC_MCC_COOP:
	case CC_GMCC_COOP:
		return cc_sharing_reduced(c, i, kind == CC_GMCC_COOP);
	case CC_OWN:
		return 0;
	}
	return 0;
}

/* The threshold after a loss, octets. */
CC_INLINE u64 cc_lost(enum cc_kind kind, struct cc_connection *c, u64 i)
{
	if (i >= CC_PATHS_MAX)
		return 0;
	return cc_max(cc_lost_unbounded(kind, c, i), cc_least(kind, c, i));
}

/* The threshold after a retransmission time-out, octets. Also clears state; after `cc_lost` it changes nothing more. */
CC_INLINE u64 cc_timed_out(enum cc_kind kind, struct cc_connection *c, u64 i)
{
	if (i >= CC_PATHS_MAX)
		return 0;
	if (cc_is_linked(kind))
		cc_lia_forget(c);
	if (cc_has_olia_increases(kind))
		cc_olia_loss(c, i);
	if (kind == CC_WVEGAS)
		cc_wvegas_restart(&c->paths[i]);
	if (cc_is_mveno(kind))
		cc_mveno_forget(&c->paths[i]);
	if (cc_shares(kind))
		return cc_lost(kind, c, i);
	return cc_max(c->paths[i].cwnd / 2, cc_least(kind, c, i));
}

/* All data that were in flight when the round began are acknowledged. Returns a new window in octets, or CC_NONE. */
CC_INLINE u64 cc_round_ended(enum cc_kind kind, struct cc_connection *c, u64 i)
{
	if (cc_is_linked(kind))
		cc_lia_forget(c);
	if (cc_has_olia_increases(kind))
		c->is_current = CC_FALSE;
	if (cc_is_mveno(kind))
		return cc_mveno_round(c, i, kind == CC_MVENO_OWN_RTT);
	if (kind == CC_WVEGAS)
		return cc_wvegas_round(c, i);
	return CC_NONE;
}
