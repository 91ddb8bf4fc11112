/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Connections and their subflows: which subflows belong together, and where their state is kept.
 *
 * A subflow's socket has the connection's token; tokens are unique on a machine. The map entry under the token holds
 * what all subflows share, with a place for each. A socket knows its place, and checks whether it still has it: what
 * was lost with an entry is made again. If no memory or no place is left, a subflow is controlled alone.
 */
#pragma once

#include "layers.h"

/* Callbacks during which a subflow without a place does not ask again. */
#define PATIENCE 64

/*
 * The owner of a place, for observers. Ports in host order; addresses as on the wire, IPv4 ones mapped to IPv6
 * (RFC 4291 section 2.5.5.2).
 */
struct place {
	u64 owner;
	u32 local_address[4];
	u32 remote_address[4];
	u16 local_port;
	u16 remote_port;
	u32 acks;
	/* Identifier of the remote address (RFC 8684 section 3.2). */
	u32 remote_id;
	u32 unused;
};

struct connection {
	struct cc_connection rules;
	/* Bit i: place i is taken; `rules.used` follows as soon as the path can be seen. */
	u64 taken;
	struct place places[CC_PATHS_MAX];
};

/* crates/kernel-cc/src/layout.rs reads it. */
_Static_assert(sizeof(struct connection) == 2448, "as it is read");

/* State in the socket itself: zero at first. */
struct own {
	u64 key;
	/* Window beyond whole segments, 2^-16 octet. */
	u64 carried_q16;
	/* The part of the threshold beyond whole segments, which is added to the window after the recovery. */
	u64 left_q16;
	u32 place;
	u32 in_recovery;
	u32 round_end;
	u32 delivered;
	u32 round_has_ended;
	u32 wait;
	u32 remote_id;
	u64 since_ns;
	/* The kernel has called `init`. Callbacks about the handshake come earlier. */
	u32 has_begun;
};
_Static_assert(sizeof(struct own) <= 13 * sizeof(u64), "what a socket has for its controller");

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_HASH);
	MAP_NUMBER(map_flags, BPF_F_NO_PREALLOC);
	MAP_NUMBER(max_entries, 16384);
	MAP_TYPE(key, u64);
	MAP_TYPE(value, struct connection);
} connections SEC(".maps");

enum counter { COUNT_ADDED, COUNT_REMOVED, COUNT_WITHOUT_PLACE, COUNTERS };

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_NUMBER(max_entries, COUNTERS);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u64);
} counters SEC(".maps");

/* Initial value of a connection; never written. */
struct connection nothing;

CC_INLINE void count(u32 which)
{
	u64 *counter = bpf_map_lookup_elem(&counters, &which);
	if (counter)
		__sync_fetch_and_add(counter, 1);
}

CC_INLINE struct own *own_of(struct tcp_sock *tp)
{
	return (struct own *)tp->inet_conn.icsk_ca_priv;
}

/* Returns the MPTCP context of a socket, or nothing if it is not an MPTCP subflow. */
CC_INLINE const struct mptcp_subflow_context *subflow_of(struct tcp_sock *tp)
{
	void *data = tp->inet_conn.icsk_ulp_data;
	if (!tp->is_mptcp || !data)
		return 0;
	return bpf_rdonly_cast(data, __builtin_btf_type_id(*(struct mptcp_subflow_context *)0, 1));
}

/*
 * Returns the token of the socket's connection. Plain TCP has no siblings: its key is the address of the socket, which
 * exceeds all tokens.
 */
CC_INLINE u64 key_of(struct tcp_sock *tp, const struct mptcp_subflow_context *subflow)
{
	return subflow && subflow->token ? subflow->token : (u64)tp;
}

/*
 * Whether a subflow waits: the kernel's scheduler gives a backup data only if nothing else can carry them, and this one
 * has nothing outstanding.
 */
CC_INLINE int is_waiting(struct tcp_sock *tp)
{
	const struct mptcp_subflow_context *subflow = subflow_of(tp);
	if (!subflow || tp->snd_una != tp->snd_nxt)
		return CC_FALSE;
	return KERNEL_BITS(subflow, backup) || KERNEL_BITS(subflow, request_bkup);
}

CC_INLINE void set_waiting(struct cc_connection *c, u64 i, int waits)
{
	u64 bit = 1ULL << i;
	if (!waits == !(c->waiting & bit))
		return;
	if (waits)
		__sync_fetch_and_or(&c->waiting, bit);
	else
		__sync_fetch_and_and(&c->waiting, ~bit);
}

/*
 * The smallest round-trip time of the last five minutes (tcp_min_rtt_wlen), as in the engine. The kernel updates it
 * before it passes on an ACK.
 */
CC_INLINE u64 min_rtt_ns(struct tcp_sock *tp)
{
	u32 min_rtt_us = tp->rtt_min.s[0].v;
	return min_rtt_us == ~0U ? CC_NONE : min_rtt_us * 1000ULL;
}

/* Copies the visible state of a socket. */
CC_INLINE void see(struct tcp_sock *tp, const struct own *own, struct cc_path *path)
{
	u64 mss = tp->mss_cache;
	path->mss = mss;
	path->cwnd = tp->snd_cwnd * mss + (own->carried_q16 >> 16);
	path->ssthresh = tp->snd_ssthresh * mss;
	path->srtt_ns = tp->srtt_us ? (tp->srtt_us >> 3) * 1000ULL : CC_NONE;
	path->min_rtt_ns = min_rtt_ns(tp);
	path->in_recovery = own->in_recovery;
}

CC_INLINE void map_address(u32 *mapped, u32 address)
{
	mapped[0] = mapped[1] = 0;
	mapped[2] = __builtin_bswap32(0xffff);
	mapped[3] = address;
}

CC_INLINE void copy_address(u32 *copy, const u32 *address)
{
	for (int i = 0; i < 4; i++)
		copy[i] = address[i];
}

CC_INLINE void describe(struct tcp_sock *tp, struct place *place)
{
	const struct sock_common *common = &tp->inet_conn.icsk_inet.sk.__sk_common;
	const u32 *local = KERNEL_MEMBER(common, skc_v6_rcv_saddr), *remote = KERNEL_MEMBER(common, skc_v6_daddr);
	if (common->skc_family == AF_INET6 && local && remote) {
		copy_address(place->local_address, local);
		copy_address(place->remote_address, remote);
	} else {
		map_address(place->local_address, common->skc_rcv_saddr);
		map_address(place->remote_address, common->skc_daddr);
	}
	place->owner = (u64)tp;
	place->local_port = common->skc_num;
	place->remote_port = __builtin_bswap16(common->skc_dport);
	place->acks = 0;
}

/* Takes a free place; CC_PATHS_MAX if there is none. */
CC_RULE u64 take_place(struct connection *connection)
{
	if (!connection)
		return CC_PATHS_MAX;
	for (u64 i = 0; i < CC_PATHS_MAX; i++) {
		u64 bit = 1ULL << i;
		if (!(connection->taken & bit) && !(__sync_fetch_and_or(&connection->taken, bit) & bit))
			return i;
	}
	return CC_PATHS_MAX;
}

/* Finds or makes the connection of a socket and gives it a place there. Returns nothing if that is impossible. */
CC_INLINE struct connection *attach(enum cc_kind kind, struct tcp_sock *tp, struct own *own)
{
	static const struct cc_mveno_state forgotten;
	struct connection *connection;
	const struct mptcp_subflow_context *subflow = subflow_of(tp);
	u64 key = key_of(tp, subflow), i;
	if (!own->has_begun)
		return 0;
	if (own->wait) {
		own->wait -= 1;
		return 0;
	}
	own->wait = PATIENCE;
	/* A socket that had this address before may have ended without a `release` (left_out.h). */
	if (key >> 32)
		bpf_map_delete_elem(&connections, &key);
	connection = bpf_map_lookup_elem(&connections, &key);
	if (!connection) {
		bpf_map_update_elem(&connections, &key, &nothing, BPF_NOEXIST);
		connection = bpf_map_lookup_elem(&connections, &key);
	}
	i = connection ? take_place(connection) : CC_PATHS_MAX;
	if (!connection || i >= CC_PATHS_MAX) {
		count(COUNT_WITHOUT_PLACE);
		return 0;
	}
	own->since_ns = bpf_ktime_get_ns();
	own->remote_id = subflow ? subflow->remote_id : 0;
	describe(tp, &connection->places[i]);
	connection->places[i].remote_id = own->remote_id;
	see(tp, own, &connection->rules.paths[i]);
	connection->rules.paths[i].mveno = forgotten;
	set_waiting(&connection->rules, i, is_waiting(tp));
	__sync_fetch_and_or(&connection->rules.used, 1ULL << i);
	cc_added(kind, &connection->rules, i);
	own->key = key;
	own->place = i;
	own->wait = 0;
	count(COUNT_ADDED);
	return connection;
}

/* Returns the connection in which a socket has its place, or nothing if it has none. */
CC_INLINE struct connection *attached(struct tcp_sock *tp, const struct own *own)
{
	struct connection *connection;
	u64 key = own->key, i = own->place;
	if (!key || i >= CC_PATHS_MAX)
		return 0;
	connection = bpf_map_lookup_elem(&connections, &key);
	if (!connection || connection->places[i].owner != (u64)tp)
		return 0;
	return connection;
}

/* Updates the visible state of a socket in its place. */
CC_INLINE void look(struct tcp_sock *tp, const struct own *own, struct connection *connection, u64 i)
{
	see(tp, own, &connection->rules.paths[i]);
	set_waiting(&connection->rules, i, is_waiting(tp));
}

/* Returns the connection of a socket, and updates the visible state of the path. */
CC_INLINE struct connection *connection_of(enum cc_kind kind, struct tcp_sock *tp, struct own *own)
{
	struct connection *connection = attached(tp, own);
	if (!connection)
		connection = attach(kind, tp, own);
	else if (own->place < CC_PATHS_MAX)
		look(tp, own, connection, own->place);
	return connection;
}

/* Frees the place of a socket, and the connection's memory with the last place. */
CC_INLINE void detach(enum cc_kind kind, struct tcp_sock *tp, struct own *own)
{
	struct connection *connection = attached(tp, own);
	u64 key = own->key, i = own->place, bit;
	own->key = 0;
	own->has_begun = CC_FALSE;
	if (!connection || i >= CC_PATHS_MAX)
		return;
	bit = 1ULL << i;
	connection->places[i].owner = 0;
	__sync_fetch_and_and(&connection->rules.used, ~bit);
	cc_removed(kind, &connection->rules);
	count(COUNT_REMOVED);
	if (__sync_fetch_and_and(&connection->taken, ~bit) & ~bit)
		return;
	bpf_map_delete_elem(&connections, &key);
	bpf_map_delete_elem(&adapted, &key);
}
