// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// The programs that sample. on_event runs at every overflow of a sampled event, in the interrupt, and on_tick
// (tick.h) at the kernel's tick; those in alloc_probes.h run where the target allocates, on_switch
// (offcpu.h) where a CPU switches threads, on_transaction (transactions.h) where attempts of transactions
// end, on_construction (constructions.h) where values of constructors are made, and on_shutdown (shutdown.h) when a program ends. Each run that samples sends one record to user space.

#include "sample.h" // first: it says how the walker reads memory and maps

#include "alloc_probes.h"
#include "constructions.h"
#include "offcpu.h"
#include "shutdown.h"
#include "take.h"
#include "targets.h"
#include "tick.h"
#include "transactions.h"

// Types reach Go through BTF, which contains only types that are used.
const enum frame_kind *emit_frame_kind __attribute__((unused));
const enum stop_reason *emit_stop_reason __attribute__((unused));
const enum record_type *emit_record_type __attribute__((unused));
const enum sample_flags *emit_sample_flags __attribute__((unused));
const enum alloc_site *emit_alloc_site __attribute__((unused));
const enum alloc_origin *emit_alloc_origin __attribute__((unused));
const enum ccs_why *emit_ccs_why __attribute__((unused));
const struct ccs_record *emit_ccs_record __attribute__((unused));
const struct ticky_record *emit_ticky_record __attribute__((unused));
const struct thread_time *emit_thread_time __attribute__((unused));
const enum transaction_end *emit_transaction_end __attribute__((unused));
const struct transaction_window *emit_transaction_window __attribute__((unused));
const struct transaction_account *emit_transaction_account __attribute__((unused));
const struct construction_window *emit_construction_window __attribute__((unused));
const struct construction_key *emit_construction_key __attribute__((unused));
const struct construction_site *emit_construction_site __attribute__((unused));
const enum thunk_state *emit_thunk_state __attribute__((unused));
const enum task_place *emit_task_place __attribute__((unused));
const struct unwind_row *emit_unwind_row __attribute__((unused));
const struct unwind_bucket *emit_unwind_bucket __attribute__((unused));

SEC("perf_event")
int on_event(struct perf_event_context *ctx)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct walk *w = bpf_map_lookup_elem(&walks, &cpu);
	if (!w)
		return 0;
	u32 pid = process_of(bpf_get_current_task_btf());
	u64 carry = 0;
	if (only_boosted) {
		if (!is_boosted(pid))
			return 0;
	} else if (!is_target(pid)) {
		count_other(event_index);
		return 0;
	} else if (passed_over(w, ctx->sample_period, &carry)) {
		w->stats.thinned++;
		return 0;
	}
	begin_sample(w, cpu);
	w->stats.samples++;
	w->header.period = ctx->sample_period + carry;
	if (only_boosted)
		w->header.flags |= SAMPLE_BOOSTED;
	if (with_age)
		note_age(w);

	if (REGS_IN_USER(&ctx->regs)) {
		begin_unwind(&w->unwind, &ctx->regs);
	} else {
		w->header.flags |= SAMPLE_IN_KERNEL;
		if (kernel_stacks)
			push_kernel_frames(ctx, w, 0);
		if (!enter_user(w)) {
			w->header.stop = STOP_NO_USER_CONTEXT;
			emit(w);
			return 0;
		}
	}
	walk_and_send(w);
	return 0;
}

char program_license[] SEC("license") = "Dual BSD/GPL";
