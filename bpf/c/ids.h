// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// Process and thread ids as user space's pid namespace has them.
#pragma once

#include "kernel.h"

#ifdef __bpf__
// The inode of that namespace, 0 if it is the initial one. Set by user space before loading.
const volatile u64 pidns_ino = 0;
#endif

// MAX_PID_NS_LEVEL of include/linux/pid_namespace.h
#define PID_NS_LEVELS 32

#ifdef __bpf__
// id_of gives the id of a thread in user space's pid namespace, 0 if it has none there: it is
// in another branch of the tree of namespaces, or has ended.
static NOINLINE u32 id_of_nested(struct task_struct *task)
{
	struct pid *pid = task->thread_pid;
	u32 level = pid ? pid->level : 0;
	if (!pid)
		return 0;
	ROLLED for (u32 i = 1; i < PID_NS_LEVELS; i++) { // 0 is the initial one
		struct upid number;
		u32 inum;
		if (i > level)
			break;
		if (bpf_probe_read_kernel(&number, sizeof(number), (char *)&pid->numbers + i * sizeof(number)) ||
		    bpf_probe_read_kernel(&inum, sizeof(inum), &number.ns->ns.inum))
			break;
		if (inum == (u32)pidns_ino)
			return number.nr;
	}
	return 0;
}

INLINE u32 id_of(struct task_struct *task)
{
	return pidns_ino ? id_of_nested(task) : (u32)task->pid;
}

// process_of gives the id of a thread's process.
INLINE u32 process_of(struct task_struct *task)
{
	return pidns_ino ? id_of_nested(task->group_leader) : (u32)task->tgid;
}
#endif
