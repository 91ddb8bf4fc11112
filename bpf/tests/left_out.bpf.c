/* SPDX-License-Identifier: GPL-2.0-only */
/* LIA in a kernel that leaves out as much as it can (left_out.h): only the work of ACKs is done by our programs. */
#include "../rules/controllers.h"

#include "../callbacks.h"

/* Stands for the content of the stack. It is half of TCP_INFINITE_SSTHRESH: the kernel would warn of larger windows. */
#define RUBBISH 0x40000000

SEC("struct_ops") u32 left_out_ssthresh(u64 *context) { return RUBBISH; }
SEC("struct_ops") u32 left_out_undo_cwnd(u64 *context) { return RUBBISH; }
SEC("struct_ops") void left_out_cong_avoid(u64 *context) { on_growth(CC_LIA, SOCKET, context[2]); }
SEC("struct_ops") void left_out_pkts_acked(u64 *context)
{
	mend(CC_LIA, SOCKET);
	on_acked(CC_LIA, SOCKET, ((const struct ack_sample *)context[1])->rtt_us);
}
SEC("struct_ops") void left_out_release(u64 *context) { detach(CC_LIA, SOCKET, own_of(SOCKET)); }

SEC(".struct_ops.link")
struct tcp_congestion_ops left_out = {
	.ssthresh = (void *)left_out_ssthresh,
	.undo_cwnd = (void *)left_out_undo_cwnd,
	.cong_avoid = (void *)left_out_cong_avoid,
	.pkts_acked = (void *)left_out_pkts_acked,
	.release = (void *)left_out_release,
	.name = "left_out",
	.flags = TCP_CONG_NON_RESTRICTED,
};
