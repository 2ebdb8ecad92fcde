// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// bpf_probe_read_user over recorded memory or another process.

#define _GNU_SOURCE
#include <string.h>
#include <sys/uio.h>

#include "walker.h"

static long read_process(s32 pid, void *to, u64 length, u64 address)
{
	struct iovec local = {to, length};
	struct iovec remote = {(void *)address, length};
	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)length ? 0 : -1;
}

// Adjacent ranges are joined when a snapshot is made, so a read that succeeds lies in one
// range.
static long read_ranges(const struct replay_memory *m, void *to, u64 length, u64 address)
{
	u64 lo = 0, hi = m->range_count;
	while (lo < hi) {
		u64 mid = lo + (hi - lo) / 2;
		if (m->ranges[mid].address <= address)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == 0)
		return -1;
	const struct replay_range *r = &m->ranges[lo - 1];
	u64 skip = address - r->address;
	if (skip > r->length || length > r->length - skip)
		return -1;
	if (r->offset > m->blob_length || r->length > m->blob_length - r->offset)
		return -1;
	memcpy(to, m->blob + r->offset + skip, length);
	return 0;
}

long replay_read_memory(struct replay_memory *m, void *to, u64 length, u64 address)
{
	if (m->reads < m->log_room) {
		m->log[m->reads].address = address;
		m->log[m->reads].length = length;
	}
	m->reads++;
	long failed = m->pid ? read_process(m->pid, to, length, address) : read_ranges(m, to, length, address);
	if (failed)
		memset(to, 0, length); // like the kernel's helper
	return failed;
}
