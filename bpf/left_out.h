/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Makes up for callbacks that a kernel has left out. Some kernels run no program of this kind while certain tasks are
 * current, and a timer may fire during such a task: then our callback is not called, and the kernel takes whatever its
 * stack held for our answer. The next ACK notices an impossible value, and corrects it.
 * docs/decisions/0042-programs-that-are-left-out.md.
 */
#pragma once

/* Whether the threshold exceeds the maximum of every rule: after a loss it is at most the window, or two segments. */
CC_INLINE int is_beyond_the_window(struct tcp_sock *tp)
{
	return tp->snd_ssthresh > cc_max(tp->prior_cwnd, 2);
}

/*
 * Whether the threshold of the current recovery was requested here. The kernel sets one itself when it retransmits
 * packets that were too large for the path (tcp_non_congestion_loss_retransmit), and when it undoes a reduction but
 * continues the recovery: then the undo marker is not set.
 */
CC_INLINE int is_ours(struct tcp_sock *tp, u32 state)
{
	return state == TCP_CA_CWR || tp->undo_marker;
}

/* Determines the threshold of the current recovery again, from the window before the loss. */
CC_INLINE void ask_again(enum cc_kind kind, struct tcp_sock *tp, u32 state)
{
	u32 window = tp->snd_cwnd;
	tp->snd_cwnd = tp->prior_cwnd;
	tp->snd_ssthresh = on_loss(kind, tp);
	if (state == TCP_CA_LOSS)
		on_timeout(kind, tp);
	tp->snd_cwnd = cc_max(cc_min(window, tp->prior_cwnd), 1);
}

/* Called before all other work of an ACK. */
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
	/* No window of ours has so many octets: this was the answer to `undo_cwnd`. */
	if ((u64)tp->snd_cwnd * tp->mss_cache > CC_CWND_MAX)
		tp->snd_cwnd = cc_max(tp->prior_cwnd, 1);
}
