// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// The few kernel types, helpers and map declarations that the programs use. Helper numbers
// are kernel ABI (include/uapi/linux/bpf.h).
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed short s16;
typedef signed int s32;
typedef signed long long s64;
typedef _Bool bool;
#define true 1
#define false 0

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))
// GLOBAL makes a function that the verifier looks at by itself, with any arguments. These can
// only be numbers.
#ifdef __bpf__
#define GLOBAL __attribute__((noinline))
#else
#define GLOBAL static
#endif
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define LIKELY(x) __builtin_expect(!!(x), 1)
// ROLLED keeps a loop from being unrolled: fetching more code for every sample costs more
// than the branches that unrolling saves.
#define ROLLED _Pragma("clang loop unroll(disable)")
// OPAQUE keeps the compiler from knowing a variable's value, and from moving checks of it.
// Linux 6.1's verifier loses a comparison's bounds when the compiler copies or spills the
// value; it needs a mask right before the use, which a compiler that knows the bounds leaves
// out.
#define OPAQUE(x) asm volatile("" : "+r"(x))
// UNKNOWN keeps the verifier from knowing a value; otherwise it processes a loop once
// for each value that it can distinguish. It costs nothing on little-endian machines.
#ifdef __bpf__
#define UNKNOWN(x) asm volatile("%0 = le64 %0" : "+r"(x))
#else
#define UNKNOWN(x) OPAQUE(x)
#endif

#define __uint(name, val) int(*name)[val]
#define __array(name, val) typeof(val) *name[]
#define __type(name, val) typeof(val) *name

enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PROG_ARRAY = 3,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};

enum {
	BPF_F_NO_PREALLOC = 1 << 0,
	BPF_F_MMAPABLE = 1 << 10,
	BPF_RB_NO_WAKEUP = 1,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
};

struct task_struct;
struct mm_struct;
struct seq_file;
#ifdef __bpf__
// task_struct has the fields that are used; their offsets are found when the program is
// loaded (CO-RE).
struct sched_entity {
	u64 exec_start;
	u64 sum_exec_runtime;
	u64 prev_sum_exec_runtime;
} __attribute__((preserve_access_index));

#if defined(__TARGET_ARCH_x86)
struct thread_struct {
	unsigned long fsbase;
} __attribute__((preserve_access_index));
#endif

struct task_struct {
	u32 __state;
	u32 flags;
	s32 pid, tgid;
	struct sched_entity se;
	struct mm_struct *mm;
	unsigned long nvcsw;
	struct task_struct *real_parent, *group_leader;
	struct pid *thread_pid;
#if defined(__TARGET_ARCH_x86)
	struct thread_struct thread;
#endif
} __attribute__((preserve_access_index));

struct hrtimer_cpu_base;

struct hrtimer_clock_base {
	struct hrtimer_cpu_base *cpu_base;
} __attribute__((preserve_access_index));

struct hrtimer {
	struct hrtimer_clock_base *base;
} __attribute__((preserve_access_index));

struct ns_common {
	u32 inum;
} __attribute__((preserve_access_index));

struct pid_namespace {
	struct ns_common ns;
} __attribute__((preserve_access_index));

// upid is a process id in one pid namespace.
struct upid {
	s32 nr;
	struct pid_namespace *ns;
};

// pid has a upid for each namespace from the initial one down to the process's own.
struct pid {
	u32 level;
	struct upid numbers[1];
} __attribute__((preserve_access_index));

struct bpf_iter_meta {
	struct seq_file *seq;
} __attribute__((preserve_access_index));

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
} __attribute__((preserve_access_index));
#endif

// Set in a process that has not called exec since it was forked, and in any thread but the
// process's first.
#define PF_FORKNOEXEC 0x40

struct bpf_pidns_info {
	u32 pid;
	u32 tgid;
};

static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*bpf_map_update_elem)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static u64 (*bpf_ktime_get_ns)(void) = (void *)5;
static u32 (*bpf_get_prandom_u32)(void) = (void *)7;
static u32 (*bpf_get_smp_processor_id)(void) = (void *)8;
static long (*bpf_tail_call)(void *ctx, void *prog_array, u32 index) = (void *)12;
static u64 (*bpf_get_current_pid_tgid)(void) = (void *)14;
static long (*bpf_get_stack)(void *ctx, void *buf, u32 size, u64 flags) = (void *)67;
static long (*bpf_probe_read_user)(void *dst, u32 size, const void *src) = (void *)112;
static long (*bpf_probe_read_kernel)(void *dst, u32 size, const void *src) = (void *)113;
static long (*bpf_get_ns_current_pid_tgid)(u64 dev, u64 ino, struct bpf_pidns_info *out, u32 size) = (void *)120;
static long (*bpf_seq_write)(struct seq_file *seq, const void *data, u32 size) = (void *)127;
static long (*bpf_ringbuf_output)(void *ringbuf, void *data, u64 size, u64 flags) = (void *)130;
static void *(*bpf_task_storage_get)(void *map, struct task_struct *task, void *value, u64 flags) = (void *)156;
static struct task_struct *(*bpf_get_current_task_btf)(void) = (void *)158;
static long (*bpf_task_pt_regs)(struct task_struct *task) = (void *)175;
static long (*bpf_loop)(u32 iterations, void *callback, void *ctx, u64 flags) = (void *)181;
