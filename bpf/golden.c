/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The rules as a program: questions on standard input, one per line, answers on standard output.
 * crates/kernel-cc/tests/golden.rs asks the engine the same questions.
 *
 *   kinds                     answers the number of kinds
 *   new KIND                                          a connection without paths
 *   view I CWND SSTHRESH SRTT_NS MIN_RTT_NS MSS REC   visible state of path I; -1: unknown
 *   add I, remove I
 *   wait I WAITS              whether path I waits, 0 or 1
 *   tell I RATIO INCREASE DECREASE     report of the relay of path I, 2^-16; a ratio of 0: none
 *   delivery I OCTETS RTT_NS
 *   ack I OCTETS LIMITED      answers the step in 2^-16 octet
 *   loss I, timeout I         answers the threshold in octets
 *   round I                   answers the new window in octets, or -1
 *   sample I RTT_NS WAY_NS BORN_NS     for adaptive congestion control
 *   period NOW_NS ETA_MIN ETA_MAX BEYOND CUTS_MAX AGE_RTTS    answers the path to cut, or -1, and its new window
 *   product A B C             answers A * B / C
 *   ratio AH AL BH BL SHIFT   answers A / B / 2^SHIFT
 */
#include <stdio.h>
#include <string.h>

#include "rules/acc.h"
#include "rules/controllers.h"

static struct cc_connection connection;
static struct cc_acc acc;
static enum cc_kind kind;

static void view(u64 i, const u64 *v)
{
	struct cc_path *p = &connection.paths[i];
	p->cwnd = v[0];
	p->ssthresh = v[1];
	p->srtt_ns = v[2];
	p->min_rtt_ns = v[3];
	p->mss = (u32)v[4];
	p->in_recovery = (u32)v[5];
}

static void add(u64 i)
{
	struct cc_path seen = connection.paths[i];
	memset(&seen.mveno, 0, sizeof(seen.mveno));
	connection.paths[i] = seen;
	connection.used |= 1ULL << i;
	cc_added(kind, &connection, i);
}

static void end_period(u64 now_ns, const u64 *v)
{
	struct cc_acc_settings settings = { 1, v[0], v[1], v[2], v[3], v[4], 0 };
	u64 i = cc_acc_period(&connection, &acc, &settings, now_ns);
	printf("%lld %llu\n", (s64)i, i < CC_PATHS_MAX ? acc.paths[i].cut : 0);
}

static void answer(const char *question, u64 i, const u64 *v)
{
	if (!strcmp(question, "kinds")) {
		printf("%d\n", CC_OWN);
	} else if (!strcmp(question, "new")) {
		memset(&connection, 0, sizeof(connection));
		memset(&acc, 0, sizeof(acc));
		kind = (enum cc_kind)i;
	} else if (!strcmp(question, "view")) {
		view(i, v);
	} else if (!strcmp(question, "add")) {
		add(i);
	} else if (!strcmp(question, "remove")) {
		connection.used &= ~(1ULL << i);
		cc_removed(kind, &connection);
	} else if (!strcmp(question, "wait")) {
		connection.waiting &= ~(1ULL << i);
		connection.waiting |= v[0] << i;
	} else if (!strcmp(question, "tell")) {
		connection.paths[i].told = (struct cc_told_state){ v[0], v[1], v[2] };
	} else if (!strcmp(question, "delivery")) {
		cc_delivered(kind, &connection.paths[i], v[0], v[1]);
	} else if (!strcmp(question, "ack")) {
		printf("%lld\n", cc_acked(kind, &connection, i, v[0], v[1]));
	} else if (!strcmp(question, "loss")) {
		printf("%llu\n", cc_lost(kind, &connection, i));
	} else if (!strcmp(question, "timeout")) {
		printf("%llu\n", cc_timed_out(kind, &connection, i));
	} else if (!strcmp(question, "round")) {
		printf("%lld\n", (s64)cc_round_ended(kind, &connection, i));
	} else if (!strcmp(question, "sample")) {
		cc_acc_delivered(&acc, i, v[0], v[1], v[2]);
	} else if (!strcmp(question, "begin")) {
		cc_acc_begin(&acc, i);
	} else if (!strcmp(question, "period")) {
		end_period(i, v);
	} else if (!strcmp(question, "product")) {
		printf("%llu\n", cc_mul_div(i, v[0], v[1]));
	} else if (!strcmp(question, "ratio")) {
		printf("%llu\n", cc_wide_ratio(i, v[0], v[1], v[2], v[3]));
	}
}

int main(void)
{
	char line[256], question[16];
	while (fgets(line, sizeof(line), stdin)) {
		u64 i = 0, v[6] = { 0 };
		if (sscanf(line, "%15s %llu %llu %llu %llu %llu %llu %llu", question, &i, &v[0], &v[1], &v[2], &v[3], &v[4], &v[5]) >= 1)
			answer(question, i, v);
	}
	return 0;
}
