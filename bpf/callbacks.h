/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's callbacks: rules as `tcp_congestion_ops` of Linux. A file that includes this one defines the rules
 * first, as functions with the names in rules/controllers.h; see template.bpf.c.
 *
 * The kernel counts windows in segments and the rules in octets: the part of a window beyond whole segments is carried
 * along. Slow start follows RFC 5681; recovery is the kernel's own.
 */
#pragma once

#include "connection.h"
#include "rules/veno.h"

char terms[] SEC("license") = "GPL";

CC_INLINE int is_veno_like(enum cc_kind kind)
{
	return kind == CC_VENO || kind == CC_MPVENO || cc_is_mveno(kind);
}

/* Whether the window is the limit: in slow start it may be twice what was in flight (RFC 7661). */
CC_INLINE int is_cwnd_limited(struct tcp_sock *tp)
{
	if (KERNEL_BITS(tp, is_cwnd_limited))
		return 1;
	return tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out;
}

/*
 * Sets a window in 2^-16 octet: whole segments for the kernel, at least one, and the rest is carried along. The window
 * never has more octets than the engine's: Linux adds to the value, and warns of sums beyond 2^31 segments.
 */
CC_INLINE void set_window(struct tcp_sock *tp, struct own *own, u64 window_q16)
{
	u64 mss_q16 = cc_max(tp->mss_cache, 1) * CC_ONE_Q16;
	u64 segments;
	window_q16 = cc_min(window_q16, CC_CWND_MAX * CC_ONE_Q16);
	segments = cc_max(window_q16 / mss_q16, 1);
	if (segments >= tp->snd_cwnd_clamp || window_q16 < mss_q16) {
		segments = cc_min(segments, cc_max(tp->snd_cwnd_clamp, 1));
		own->carried_q16 = 0;
	} else {
		own->carried_q16 = window_q16 % mss_q16;
	}
	tp->snd_cwnd = segments;
}

CC_INLINE void step_window(struct tcp_sock *tp, struct own *own, s64 step_q16)
{
	u64 window_q16 = (u64)tp->snd_cwnd * tp->mss_cache * CC_ONE_Q16 + own->carried_q16;
	u64 given = step_q16 < 0 ? -step_q16 : 0;
	set_window(tp, own, step_q16 < 0 ? cc_sub_floored(window_q16, given) : window_q16 + cc_min(step_q16, window_q16));
}

/* Returns the segments that remain for congestion avoidance. */
CC_INLINE u32 slow_start(struct tcp_sock *tp, u32 acked)
{
	u64 cwnd = cc_min((u64)tp->snd_cwnd + acked, tp->snd_ssthresh);
	acked -= cwnd - tp->snd_cwnd;
	tp->snd_cwnd = cc_min(cwnd, tp->snd_cwnd_clamp);
	return acked;
}

CC_INLINE void end_round(enum cc_kind kind, struct tcp_sock *tp, struct own *own)
{
	struct connection *connection = connection_of(kind, tp, own);
	u64 cwnd, mss = cc_max(tp->mss_cache, 1);
	own->round_has_ended = CC_FALSE;
	if (!connection)
		return;
	cwnd = cc_round_ended(kind, &connection->rules, own->place);
	if (cwnd == CC_NONE)
		return;
	set_window(tp, own, cc_min(cwnd, CC_CWND_MAX) * CC_ONE_Q16);
	if (tp->snd_ssthresh > cwnd / mss)
		tp->snd_ssthresh = cc_max(cwnd / mss, 2);
}

CC_INLINE void on_init(enum cc_kind kind, struct tcp_sock *tp)
{
	struct own *own = own_of(tp);
	own->key = 0;
	own->carried_q16 = 0;
	own->left_q16 = 0;
	own->in_recovery = KERNEL_BITS(&tp->inet_conn, icsk_ca_state) >= TCP_CA_CWR;
	own->round_end = tp->snd_nxt;
	own->delivered = tp->delivered;
	own->round_has_ended = CC_FALSE;
	own->wait = 0;
	own->has_begun = CC_TRUE;
	connection_of(kind, tp, own);
}

/* Not during loss recovery, when the window follows the recovery. */
CC_INLINE void cut_window(struct tcp_sock *tp, struct own *own, u64 cut)
{
	u64 mss = cc_max(tp->mss_cache, 1), segments = cc_max(cut / mss, 2);
	if (own->in_recovery)
		return;
	if (segments < tp->snd_cwnd)
		set_window(tp, own, cc_max(cut, 2 * mss) * CC_ONE_Q16);
	if (segments < tp->snd_ssthresh)
		tp->snd_ssthresh = segments;
}

/*
 * Adaptive congestion control, if it is on: the first socket with an ACK after the end of a period finds the slowest
 * path, and that path's own socket lowers its window with its next ACK.
 */
CC_INLINE void adapt(struct tcp_sock *tp, struct own *own, struct connection *connection, u64 rtt_ns)
{
	const struct cc_acc_settings *settings = acc_settings(own->key);
	struct cc_acc *acc = settings ? acc_of(own->key) : 0;
	const struct told *told;
	u64 now_ns, cut;
	if (!acc)
		return;
	now_ns = bpf_ktime_get_ns();
	begin_period(acc, settings, now_ns);
	told = told_of(own->key, own->remote_id);
	cc_acc_delivered(acc, own->place, rtt_ns, told ? told->way_ns : 0, own->since_ns);
	if (is_over(acc, settings->period_ns, now_ns))
		cc_acc_period(&connection->rules, acc, settings, now_ns);
	cut = taken_cut(acc, own->place);
	if (cut)
		cut_window(tp, own, cut);
}

CC_INLINE void on_acked(enum cc_kind kind, struct tcp_sock *tp, s32 rtt_us)
{
	struct own *own = own_of(tp);
	struct connection *connection;
	u64 delivered_bytes = (u64)(tp->delivered - own->delivered) * tp->mss_cache;
	u64 rtt_ns = rtt_us < 0 ? CC_NONE : rtt_us * 1000ULL;
	if (own->round_has_ended)
		end_round(kind, tp, own);
	own->delivered = tp->delivered;
	connection = connection_of(kind, tp, own);
	if (connection && own->place < CC_PATHS_MAX) {
		connection->places[own->place].acks += 1;
		cc_delivered(kind, &connection->rules.paths[own->place], delivered_bytes, rtt_ns);
		if (cc_shares(kind))
			hear(&connection->rules, own->place, told_of(own->key, own->remote_id));
		adapt(tp, own, connection, rtt_ns);
	}
	/* The end of a round is handled after the ACK: in cong_avoid, or with the next ACK. */
	if ((s32)(tp->snd_una - own->round_end) >= 0) {
		own->round_has_ended = CC_TRUE;
		own->round_end = tp->snd_nxt;
	}
}

/* The step of a subflow without a place: that of the single-path parent. */
CC_INLINE s64 parent_step(enum cc_kind kind, struct tcp_sock *tp, const struct own *own, u64 acked_bytes)
{
	struct cc_path path;
	see(tp, own, &path);
	acked_bytes = cc_min(acked_bytes, path.cwnd);
	return cc_signed(is_veno_like(kind) ? cc_veno_gain(&path, acked_bytes) : cc_newreno_gain(&path, acked_bytes));
}

/*
 * Limits growth to that of slow start. No rule of ours asks for more. But if another program has written to the maps, a
 * window that doubles with each ACK loses so much at once that the path stands still for seconds.
 */
CC_INLINE s64 no_faster_than_slow_start(s64 step_q16, u64 acked_bytes)
{
	s64 most = (s64)(cc_min(acked_bytes, CC_CWND_MAX) * CC_ONE_Q16);
	return step_q16 > most ? most : step_q16;
}

CC_INLINE void on_growth(enum cc_kind kind, struct tcp_sock *tp, u32 acked)
{
	struct own *own = own_of(tp);
	struct connection *connection;
	s64 step;
	if (is_cwnd_limited(tp)) {
		if (tp->snd_cwnd < tp->snd_ssthresh)
			acked = slow_start(tp, acked);
		connection = acked ? connection_of(kind, tp, own) : 0;
		if (acked) {
			u64 acked_bytes = (u64)acked * tp->mss_cache;
			step = connection ? cc_acked(kind, &connection->rules, own->place, acked_bytes, 1) :
					    parent_step(kind, tp, own, acked_bytes);
			step_window(tp, own, no_faster_than_slow_start(step, acked_bytes));
		}
	}
	if (own->round_has_ended)
		end_round(kind, tp, own);
}

/*
 * Whole segments for the kernel; the rest is added at the end of the recovery. This matters for windows of a few
 * segments: half of five would be two, and a subflow that grows by a quarter of a segment per round trip needs two
 * round trips to make up for it. Never more than the window (left_out.h).
 */
CC_INLINE u32 threshold_segments(struct tcp_sock *tp, struct own *own, u64 bytes)
{
	u64 mss = cc_max(tp->mss_cache, 1);
	own->left_q16 = bytes < mss ? 0 : bytes % mss * CC_ONE_Q16;
	return cc_max(cc_min(bytes / mss, cc_max(tp->snd_cwnd, 2)), 1);
}

CC_INLINE u32 on_loss(enum cc_kind kind, struct tcp_sock *tp)
{
	struct own *own = own_of(tp);
	struct connection *connection = connection_of(kind, tp, own);
	struct cc_path path;
	u64 left;
	if (connection)
		return threshold_segments(tp, own, cc_lost(kind, &connection->rules, own->place));
	see(tp, own, &path);
	left = is_veno_like(kind) ? cc_veno_reduced(path.cwnd, cc_veno_is_congested(&path)) : path.cwnd / 2;
	return threshold_segments(tp, own, cc_max(left, 2ULL * path.mss));
}

/* The kernel has requested a threshold as after a loss; now it reports that the timer expired. */
CC_INLINE void on_timeout(enum cc_kind kind, struct tcp_sock *tp)
{
	struct own *own = own_of(tp);
	struct connection *connection = connection_of(kind, tp, own);
	u64 half = (u64)tp->snd_cwnd * tp->mss_cache / 2;
	own->carried_q16 = 0;
	if (connection)
		tp->snd_ssthresh = threshold_segments(tp, own, cc_timed_out(kind, &connection->rules, own->place));
	else
		tp->snd_ssthresh = threshold_segments(tp, own, cc_max(half, 2ULL * tp->mss_cache));
}

/* Nothing was outstanding, and now data leave. */
CC_INLINE void on_first_data(struct tcp_sock *tp)
{
	struct own *own = own_of(tp);
	struct connection *connection = attached(tp, own);
	if (connection && own->place < CC_PATHS_MAX)
		set_waiting(&connection->rules, own->place, CC_FALSE);
}

CC_INLINE void on_state(enum cc_kind kind, struct tcp_sock *tp, u8 state)
{
	struct own *own = own_of(tp);
	own->in_recovery = state >= TCP_CA_CWR;
	own->carried_q16 = own->in_recovery ? 0 : own->carried_q16 + own->left_q16;
	if (!own->in_recovery)
		own->left_q16 = 0;
	connection_of(kind, tp, own);
}

/* The reduction was unnecessary: restores the window before it. */
CC_INLINE u32 on_undo(struct tcp_sock *tp)
{
	own_of(tp)->left_q16 = 0;
	return cc_max(tp->snd_cwnd, tp->prior_cwnd);
}

#include "left_out.h"

#define SOCKET ((struct tcp_sock *)context[0])

/* The programs of a controller, and its registration by name: at most 15 characters, without a hyphen. */
#define CONTROLLER(id, kind, registered)                                                                                \
	SEC("struct_ops") void id##_init(u64 *context) { on_init(kind, SOCKET); }                                       \
	SEC("struct_ops") void id##_release(u64 *context) { detach(kind, SOCKET, own_of(SOCKET)); }                     \
	SEC("struct_ops") void id##_cong_avoid(u64 *context) { on_growth(kind, SOCKET, context[2]); }                   \
	SEC("struct_ops") u32 id##_ssthresh(u64 *context) { return on_loss(kind, SOCKET); }                             \
	SEC("struct_ops") void id##_set_state(u64 *context) { on_state(kind, SOCKET, context[1]); }                     \
	SEC("struct_ops") void id##_cwnd_event(u64 *context)                                                            \
	{                                                                                                               \
		if ((u32)context[1] == CA_EVENT_LOSS)                                                                   \
			on_timeout(kind, SOCKET);                                                                       \
		if ((u32)context[1] == CA_EVENT_TX_START)                                                               \
			on_first_data(SOCKET);                                                                          \
	}                                                                                                               \
	SEC("struct_ops") void id##_pkts_acked(u64 *context)                                                            \
	{                                                                                                               \
		mend(kind, SOCKET);                                                                                     \
		on_acked(kind, SOCKET, ((const struct ack_sample *)context[1])->rtt_us);                                \
	}                                                                                                               \
	SEC("struct_ops") u32 id##_undo_cwnd(u64 *context) { return on_undo(SOCKET); }                                  \
	SEC(".struct_ops.link")                                                                                         \
	struct tcp_congestion_ops id = {                                                                                \
		.init = (void *)id##_init,                                                                              \
		.release = (void *)id##_release,                                                                        \
		.cong_avoid = (void *)id##_cong_avoid,                                                                  \
		.ssthresh = (void *)id##_ssthresh,                                                                      \
		.set_state = (void *)id##_set_state,                                                                    \
		.cwnd_event = (void *)id##_cwnd_event,                                                                  \
		.pkts_acked = (void *)id##_pkts_acked,                                                                  \
		.undo_cwnd = (void *)id##_undo_cwnd,                                                                    \
		.name = registered,                                                                                     \
		.flags = TCP_CONG_NON_RESTRICTED,                                                                       \
	};
