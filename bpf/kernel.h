/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The parts of the kernel that are used: members of its structures by name. The loader finds their offsets in the
 * running kernel, so building needs nothing of a kernel, and one object fits every kernel.
 */
#pragma once

#include "rules/types.h"

#define SEC(name) __attribute__((section(name), used))
#define KERNEL_TYPE __attribute__((preserve_access_index))
#define KERNEL_FUNCTION __attribute__((section(".ksyms")))
#define MAP_NUMBER(name, value) int(*name)[value]
#define MAP_TYPE(name, type) type *name

/* include/uapi/linux/bpf.h */
#define BPF_MAP_TYPE_HASH 1
#define BPF_MAP_TYPE_ARRAY 2
#define BPF_F_NO_PREALLOC 1
#define BPF_NOEXIST 1

static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const bpf_map_update_elem)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*const bpf_map_delete_elem)(void *map, const void *key) = (void *)3;

static u64 (*const bpf_ktime_get_ns)(void) = (void *)5;

extern void *bpf_rdonly_cast(const void *object, u32 type) KERNEL_FUNCTION;

/* include/net/tcp.h: enum tcp_ca_state, enum tcp_ca_event and the flags of controllers. */
#define TCP_CA_CWR 2
#define TCP_CA_LOSS 4
#define CA_EVENT_TX_START 0
#define CA_EVENT_LOSS 3
#define TCP_CONG_NON_RESTRICTED 1

/* include/linux/socket.h */
#define AF_INET6 10

struct in6_addr {
	u64 words[2];
};

struct sock_common {
	u16 skc_family;
	u16 skc_num;
	u16 skc_dport;
	u32 skc_daddr;
	u32 skc_rcv_saddr;
	/* Absent if the kernel has no IPv6. */
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
} KERNEL_TYPE;

struct sock {
	struct sock_common __sk_common;
} KERNEL_TYPE;

struct inet_sock {
	struct sock sk;
} KERNEL_TYPE;

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	void *icsk_ulp_data;
	u8 icsk_ca_state : 5;
	u8 icsk_ca_initialized : 1;
	u64 icsk_ca_priv[13];
} KERNEL_TYPE;

/* include/linux/win_minmax.h: the first sample is the smallest of the window. */
struct minmax_sample {
	u32 v;
} KERNEL_TYPE;

struct minmax {
	struct minmax_sample s[3];
} KERNEL_TYPE;

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 mss_cache;
	u32 snd_cwnd;
	u32 snd_ssthresh;
	u32 snd_cwnd_clamp;
	u32 snd_nxt;
	u32 snd_una;
	u32 srtt_us;
	struct minmax rtt_min;
	u32 delivered;
	u32 prior_cwnd;
	u32 undo_marker;
	u32 max_packets_out;
	u8 is_cwnd_limited : 1;
	_Bool is_mptcp;
} KERNEL_TYPE;

struct mptcp_subflow_context {
	u32 token;
	u32 request_bkup : 1;
	u32 backup : 1;
	u8 remote_id;
} KERNEL_TYPE;

struct ack_sample {
	s32 rtt_us;
} KERNEL_TYPE;

/* Passed to the kernel, which also takes members by their names. */
struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*cwnd_event)(struct sock *sk, u32 event);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	u32 (*undo_cwnd)(struct sock *sk);
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	char name[16];
	u32 flags;
};

/* Address of a member in the running kernel; nothing if the kernel has no such member. */
#define KERNEL_MEMBER(structure, field)                                                                                 \
	(__builtin_preserve_field_info((structure)->field, 2) ?                                                         \
		 (const void *)((const u8 *)(structure) + __builtin_preserve_field_info((structure)->field, 0)) :       \
		 (const void *)0)

/* A bit field of a kernel structure: the loader finds which octets to load, and which of their bits to use. */
#define KERNEL_BITS(structure, field)                                                                                   \
	({                                                                                                              \
		u64 value_ = 0;                                                                                         \
		const u8 *at_ = (const u8 *)(structure) + __builtin_preserve_field_info((structure)->field, 0);         \
		switch (__builtin_preserve_field_info((structure)->field, 1)) {                                         \
		case 1:                                                                                                 \
			value_ = *at_;                                                                                  \
			break;                                                                                          \
		case 2:                                                                                                 \
			value_ = *(const u16 *)at_;                                                                     \
			break;                                                                                          \
		case 4:                                                                                                 \
			value_ = *(const u32 *)at_;                                                                     \
			break;                                                                                          \
		case 8:                                                                                                 \
			value_ = *(const u64 *)at_;                                                                     \
			break;                                                                                          \
		}                                                                                                       \
		value_ <<= __builtin_preserve_field_info((structure)->field, 4);                                        \
		value_ >>= __builtin_preserve_field_info((structure)->field, 5);                                        \
		value_;                                                                                                 \
	})
