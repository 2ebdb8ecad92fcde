// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// on_collection runs where a collection begins. All capabilities have stopped, and their
// nurseries hold, one after another, all small objects that were allocated since the collection
// before, dead or alive. It copies a block that is chosen at random among those of all.

#include "capabilities.h"
#include "arch.h"
#include "ghc.h"
#include "ids.h"
#include "nursery.h"

const struct block_record *emit_block_record __attribute__((unused));

static void *(*bpf_ringbuf_reserve)(void *ringbuf, u64 size, u64 flags) = (void *)131;
static void (*bpf_ringbuf_submit)(void *data, u64 flags) = (void *)132;
static void (*bpf_ringbuf_discard)(void *data, u64 flags) = (void *)133;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 22); // shared with the sampler
} samples SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u32);
	__type(value, struct nursery_layout);
} nurseries SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct nursery_counts);
} nursery_counted SEC(".maps");

#define READ(dst, at) bpf_probe_read_user(dst, sizeof(*(dst)), (const void *)(at))

// The longest list of blocks that is gone through: 4 GB of nursery.
#define MAX_NURSERY (1 << 20)

// choose_capability gives the BaseReg of a capability that is chosen at random, and how many
// there are; 0 if there is none.
INLINE u64 choose_capability(const struct nursery_layout *l, u64 *count)
{
	u32 n;
	u64 first = 0, chosen = l->main_capability;
	if (!l->n_capabilities || READ(&n, l->n_capabilities) || n == 0)
		return 0;
	*count = n;
	if (l->capabilities) {
		if (READ(&first, l->capabilities))
			return 0;
		u64 array = capability_array(l->capabilities, l->capabilities_in_place, first, l->main_capability);
		if (READ(&chosen, array + 8 * (u64)(bpf_get_prandom_u32() % n)))
			return 0;
	} else if (n != 1) {
		return 0;
	}
	return chosen ? chosen + BASE_OF_CAPABILITY : 0;
}

static long step_back(u32 i, void *context)
{
	u64 *block = context;
	return READ(block, *block + BLOCK_BACK) || !*block;
}

// copy_block fills the record. It returns 1 if the nursery has no block at the chosen place, −1
// if it cannot be read.
INLINE int copy_block(struct block_record *r, const struct nursery_layout *l)
{
	u64 base = choose_capability(l, &r->capabilities), nursery, block, free;
	u32 capability;
	if (!base || READ(&capability, base + BASE_CAPABILITY_NO) || READ(&r->header.total, base + l->total_allocated) ||
	    READ(&nursery, base + BASE_NURSERY) || READ(&block, base + BASE_CURRENT_NURSERY) || READ(&r->nursery, nursery + NURSERY_BLOCKS))
		return -1;
	r->header.capability = capability;
	if (r->nursery == 0 || r->nursery > MAX_NURSERY)
		return -1;
	// Blocks that are filled precede the current one. Any place among all is as likely, so
	// that a block stands for as many as the nursery has, however many are filled.
	bpf_loop(bpf_get_prandom_u32() % (u32)r->nursery, step_back, &block, 0);
	if (!block)
		return 1;
	if (READ(&r->start, block + BLOCK_START) || READ(&free, block + BLOCK_FREE) || free < r->start)
		return -1;
	r->used = free - r->start;
	if (bpf_probe_read_user(r->words, sizeof(r->words), (const void *)r->start))
		return -1;
	return 0;
}

INLINE int take(struct regs *ctx)
{
	struct sample_header h = {};
	u32 zero = 0;
	struct nursery_counts *counts = bpf_map_lookup_elem(&nursery_counted, &zero);
	if (!counts)
		return 0;
	counts->hits++;
	struct task_struct *task = bpf_get_current_task_btf();
	h.pid = process_of(task);
	h.tid = id_of(task);
	const struct nursery_layout *l = bpf_map_lookup_elem(&nurseries, &h.pid);
	if (!l || bpf_get_prandom_u32() > l->chance)
		return 0;
	counts->chosen++;
	struct block_record *r = bpf_ringbuf_reserve(&samples, sizeof(*r), 0);
	if (!r) {
		counts->dropped++;
		return 0;
	}
	h.time = bpf_ktime_get_ns();
	h.cpu = bpf_get_smp_processor_id();
	h.record = RECORD_BLOCK;
	h.frame_count = sizeof(*r) / 8 - sizeof(h) / 8;
	r->header = h;
	r->capabilities = 1;
	int failed = copy_block(r, l);
	if (!failed) {
		bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
		return 0;
	}
	if (failed > 0)
		counts->missed++;
	else
		counts->failed++;
	bpf_ringbuf_discard(r, BPF_RB_NO_WAKEUP);
	return 0;
}

SEC("uprobe")
int on_collection(struct regs *ctx) { return take(ctx); }

char program_license[] SEC("license") = "Dual BSD/GPL";
