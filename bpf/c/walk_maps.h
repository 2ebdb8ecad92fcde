// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// The maps that a walk reads, and the names by which the walker knows them: bpf/replay, which runs the
// walker in user space, has its own.
#pragma once

#include "record.h"
#include "walk_state.h"

// Rows and buckets lie in chunks, which user space makes when it fills them: the memory of an array is there from the
// start, and a host's programs may have a tenth of the most that there is room for.
struct unwind_row_chunk {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1 << UNWIND_CHUNK_SHIFT);
	__type(key, u32);
	__uint(value_size, sizeof(struct unwind_row));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1); // set by user space
	__type(key, u32);
	__array(values, struct unwind_row_chunk);
} unwind_rows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); // set by user space
	__type(key, u32);
	__type(value, struct unwind_rule);
} unwind_rules SEC(".maps");

struct unwind_bucket_chunk {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1 << UNWIND_CHUNK_SHIFT);
	__type(key, u32);
	__uint(value_size, sizeof(struct unwind_bucket));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1); // set by user space
	__type(key, u32);
	__array(values, struct unwind_bucket_chunk);
} unwind_buckets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u32);
	__type(value, struct process_regions);
} regions SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, u32);
	__type(value, struct thread_state);
} threads SEC(".maps");

// One walk per CPU for events, then one per CPU for probes, then one per CPU for thread
// switches: a probe in user code can be interrupted by both others, and a switch by an
// event.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE); // begins at a cache line
	__uint(max_entries, 3);		   // set by user space
	__type(key, u32);
	__type(value, struct walk);
} walks SEC(".maps");

INLINE struct walk *walk_at(u32 slot) { return bpf_map_lookup_elem(&walks, &slot); }

// in_chunk returns an element of a chunk, null where there is no such chunk yet.
INLINE const void *in_chunk(void *chunks, u32 index)
{
	u32 number = index >> UNWIND_CHUNK_SHIFT, within = index & ((1 << UNWIND_CHUNK_SHIFT) - 1);
	void *chunk = bpf_map_lookup_elem(chunks, &number);
	return chunk ? bpf_map_lookup_elem(chunk, &within) : 0;
}

INLINE const struct unwind_row *unwind_row_at(u32 index) { return in_chunk(&unwind_rows, index); }
INLINE const struct unwind_rule *unwind_rule_at(u32 index) { return bpf_map_lookup_elem(&unwind_rules, &index); }
INLINE const struct unwind_bucket *unwind_bucket_at(u32 index) { return in_chunk(&unwind_buckets, index); }
INLINE const struct process_regions *regions_of(u32 pid) { return bpf_map_lookup_elem(&regions, &pid); }
INLINE const struct thread_state *thread_of(u32 tid) { return bpf_map_lookup_elem(&threads, &tid); }
INLINE long note_thread(u32 tid, const struct thread_state *t) { return bpf_map_update_elem(&threads, &tid, t, 0); }

#if defined(__TARGET_ARCH_x86)
#define THREAD_POINTER() (bpf_get_current_task_btf()->thread.fsbase)
#else
#define THREAD_POINTER() 0ULL
#endif

#define WALK_AT(slot) walk_at(slot)
#define FIND_REGIONS(pid) regions_of(pid)
#define FIND_THREAD(tid) thread_of(tid)
#define NOTE_THREAD(tid, state) note_thread(tid, state)
#define UNWIND_BUCKET(index) unwind_bucket_at(index)
#define UNWIND_ROW(index) unwind_row_at(index)
#define UNWIND_RULE(index) unwind_rule_at(index)
#define READ_USER(dst, size, at) bpf_probe_read_user(dst, size, (const void *)(at))
