/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reports of processes on live connections, and the state of adaptive congestion control. For the reasons see
 * docs/decisions/0038-layers-in-the-kernel.md.
 */
#pragma once

#include "kernel.h"
#include "rules/acc.h"

/*
 * A report on a path. The path is identified by its connection's token and the identifier of the remote address (RFC
 * 8684 section 3.2), as in the engine's agents. The report is valid until `until_ns` of CLOCK_MONOTONIC: a process that
 * has gone does not slow anything down for long.
 */
struct told {
	struct cc_told_state competition;
	/* Delay from the relay to the destination. */
	u64 way_ns;
	u64 until_ns;
};

/* crates/kernel-cc/src/words.rs and layout.rs read and write these. */
_Static_assert(sizeof(struct told) == 40, "as it is written");
_Static_assert(sizeof(struct cc_acc_settings) == 56, "as they are written");
_Static_assert(sizeof(struct cc_acc) == 976, "as it is read");

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_HASH);
	MAP_NUMBER(map_flags, BPF_F_NO_PREALLOC);
	/* This, and those of connections and of adapted, the loader sets. */
	MAP_NUMBER(max_entries, 16384);
	/* The token, with the identifier above it. */
	MAP_TYPE(key, u64);
	MAP_TYPE(value, struct told);
} told SEC(".maps");

/* Settings of adaptive congestion control for all connections. */
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_NUMBER(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct cc_acc_settings);
} adapting SEC(".maps");

/* State of adaptive congestion control for each connection, by token. */
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_HASH);
	MAP_NUMBER(map_flags, BPF_F_NO_PREALLOC);
	MAP_NUMBER(max_entries, 16384);
	MAP_TYPE(key, u64);
	MAP_TYPE(value, struct cc_acc);
} adapted SEC(".maps");

/* Its initial value; never written. */
struct cc_acc unadapted;

/* Returns the valid report on a path. There is none for plain TCP, whose key is not a token. */
CC_INLINE const struct told *told_of(u64 key, u32 remote_id)
{
	const struct told *found;
	u64 path = key | (u64)remote_id << 32;
	if (!key || key >> 32)
		return 0;
	found = bpf_map_lookup_elem(&told, &path);
	return found && found->until_ns > bpf_ktime_get_ns() ? found : 0;
}

/* Copies a report to where the rules look for it. */
CC_RULE u64 hear(struct cc_connection *c, u64 i, const struct told *told)
{
	static const struct cc_told_state untold;
	if (c && i < CC_PATHS_MAX)
		c->paths[i].told = told ? told->competition : untold;
	return 0;
}

/* Returns nothing if it is off, and for plain TCP. */
CC_INLINE const struct cc_acc_settings *acc_settings(u64 key)
{
	u32 only = 0;
	const struct cc_acc_settings *settings = bpf_map_lookup_elem(&adapting, &only);
	return settings && settings->period_ns && key && !(key >> 32) ? settings : 0;
}

CC_INLINE struct cc_acc *acc_of(u64 key)
{
	struct cc_acc *found = bpf_map_lookup_elem(&adapted, &key);
	if (found)
		return found;
	bpf_map_update_elem(&adapted, &key, &unadapted, BPF_NOEXIST);
	return bpf_map_lookup_elem(&adapted, &key);
}

/* Whether the caller is the one that moves the end of the period from `next`. */
CC_INLINE int moves_end(struct cc_acc *acc, u64 next, u64 period_ns, u64 now_ns)
{
	return __sync_val_compare_and_swap(&acc->next_ns, next, now_ns + period_ns) == next;
}

/*
 * Begins a period if there is none, or one of other settings: that one may end much later than these want, or have
 * ended long ago, while adaptive congestion control was off.
 */
CC_INLINE void begin_period(struct cc_acc *acc, const struct cc_acc_settings *settings, u64 now_ns)
{
	u64 next = acc->next_ns, since_ns = settings->since_ns;
	if (acc->since_ns != since_ns && moves_end(acc, next, settings->period_ns, now_ns))
		cc_acc_begin(acc, since_ns);
}

/* Whether the period is over and the caller is the one that ends it. */
CC_INLINE int is_over(struct cc_acc *acc, u64 period_ns, u64 now_ns)
{
	u64 next = acc->next_ns;
	return now_ns >= next && moves_end(acc, next, period_ns, now_ns);
}

/* Returns once the window to which path `i` should be lowered, octets; zero if there is none. */
CC_RULE u64 taken_cut(struct cc_acc *acc, u64 i)
{
	u64 cut;
	if (!acc || i >= CC_PATHS_MAX)
		return 0;
	cut = acc->paths[i].cut;
	acc->paths[i].cut = 0;
	return cut;
}
