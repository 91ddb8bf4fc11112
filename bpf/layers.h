/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a process tells of a connection's paths: docs/decisions/0038-layers-in-the-kernel.md. A path is known by its connection's token and
 * the identifier of the other end's address (RFC 8684 section 3.2), as the engine's agents know it.
 */
#pragma once

#include "connection.h"

/* What holds until `until_ns`, by CLOCK_MONOTONIC: a process that has gone slows nothing down for long. */
struct told {
	struct cc_told_state competition;
	u64 until_ns;
};

/* crates/kernel-cc/src/told.rs writes it. */
_Static_assert(sizeof(struct told) == 32, "as it is written");

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_HASH);
	MAP_NUMBER(map_flags, BPF_F_NO_PREALLOC);
	MAP_NUMBER(max_entries, 16384);
	/* The token, and above it the identifier. */
	MAP_TYPE(key, u64);
	MAP_TYPE(value, struct told);
} told SEC(".maps");

/* What is told of the path of a socket; nothing of plain TCP, whose key is no token. */
CC_INLINE const struct told *told_of(const struct own *own)
{
	const struct told *found;
	u64 path = own->key | (u64)own->remote_id << 32;
	if (!own->key || own->key >> 32)
		return 0;
	found = bpf_map_lookup_elem(&told, &path);
	return found && found->until_ns > bpf_ktime_get_ns() ? found : 0;
}

/* What is told goes to where the rules look. */
CC_RULE u64 hear(struct cc_connection *c, u64 i, const struct told *told)
{
	static const struct cc_told_state untold;
	if (c && i < CC_PATHS_MAX)
		c->paths[i].told = told ? told->competition : untold;
	return 0;
}
