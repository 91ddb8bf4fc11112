/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a kernel has left out. There are kernels that run no program of this kind while some task is the current one, and a timer may fire
 * in its time: then nobody tells us, and what the kernel takes for our answer is whatever its stack held. The next ACK sees what cannot
 * be, and makes up for it. docs/decisions/0042-programs-that-are-left-out.md.
 */
#pragma once

/* By more than a rule leaves: the threshold after a loss is the window at most, or two segments. */
CC_INLINE int is_beyond_the_window(struct tcp_sock *tp)
{
	return tp->snd_ssthresh > cc_max(tp->prior_cwnd, 2);
}

/*
 * Whether the threshold of the loss that is being repaired was asked for here. The kernel sets one itself where it sends again what was too
 * large for the path (tcp_non_congestion_loss_retransmit), and where it undoes a reduction and goes on repairing: then nothing is marked
 * as what could be undone.
 */
CC_INLINE int is_ours(struct tcp_sock *tp, u32 state)
{
	return state == TCP_CA_CWR || tp->undo_marker;
}

/* The threshold of the loss that is being repaired, by the window that there was then. */
CC_INLINE void ask_again(enum cc_kind kind, struct tcp_sock *tp, u32 state)
{
	u32 window = tp->snd_cwnd;
	tp->snd_cwnd = tp->prior_cwnd;
	tp->snd_ssthresh = on_loss(kind, tp);
	if (state == TCP_CA_LOSS)
		on_timeout(kind, tp);
	tp->snd_cwnd = cc_max(cc_min(window, tp->prior_cwnd), 1);
}

/* Before anything else that an ACK brings. */
CC_INLINE void mend(enum cc_kind kind, struct tcp_sock *tp)
{
	struct own *own = own_of(tp);
	u32 state = KERNEL_BITS(&tp->inet_conn, icsk_ca_state), in_recovery = state >= TCP_CA_CWR;
	if (!own->has_begun && KERNEL_BITS(&tp->inet_conn, icsk_ca_initialized))
		on_init(kind, tp);
	if (in_recovery != own->in_recovery)
		on_state(kind, tp, state);
	if (in_recovery && is_ours(tp, state) && is_beyond_the_window(tp))
		ask_again(kind, tp, state);
	/* No window of ours has so many octets: it was the answer to `undo_cwnd`. */
	if ((u64)tp->snd_cwnd * tp->mss_cache > CC_CWND_MAX)
		tp->snd_cwnd = cc_max(tp->prior_cwnd, 1);
}
