// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// Finding the Haskell thread that an OS thread runs, or that waits for it. The including
// file defines access to the table of OS threads:
//
//	FIND_THREAD(tid): its struct thread_state, null if it is not known
//	NOTE_THREAD(tid, state): stores it; 0 on success
//	THREAD_POINTER(): where the OS thread's thread-local variables are; 0 if that is not known
#pragma once

#include "info_table.h"
#include "window.h"

// read_thread reads a TSO's id and the address of its topmost stack chunk. False if there is
// no TSO at the address.
INLINE bool read_thread(struct walker *k, u64 tso, u64 *stack)
{
	struct walk *w = k->walk;
	u32 bytes = w->layout.tso_read;
	OPAQUE(bytes);
	bytes &= sizeof(w->tso) - 1;
	if (tso == 0 || (tso & 7) || READ_USER(w->tso, bytes, tso))
		return false;
	if (w->tso[0] != w->tso_info || w->tso_info == 0) {
		u8 why;
		struct cached_info *c = find_table(k, w->tso[0], &why);
		// In a shared library the info table may be on a page that was never accessed. Then
		// it suffices that Sp is in what would be the thread's stack.
		if (c ? c->type != TSO : why != STOP_UNREADABLE_INFO)
			return false;
		if (c)
			w->tso_info = w->tso[0];
	}
	*stack = w->tso[(w->layout.tso_stackobj / 8) & (TSO_READ_WORDS - 1)];
	w->header.tso = w->tso[(w->layout.tso_id / 8) & (TSO_READ_WORDS - 1)];
	return true;
}

// enter_running takes the bounds of the running thread's stack chunk, which must contain
// w->sp. They are read only when the chunk is another one than last time: a chunk never
// changes its size.
INLINE bool enter_running(struct walk *w, u64 stack)
{
	struct running_chunk *r = &w->running;
	u64 saved_sp;
	if (r->stack == stack && r->tso == w->header.tso) {
		w->chunk_lo = r->lo;
		w->chunk_hi = r->hi;
		w->window_words = 0;
		if (sp_in_chunk(w))
			return true;
	}
	r->stack = 0;
	if (!enter_chunk(w, stack, &saved_sp) || !sp_in_chunk(w))
		return false;
	r->stack = stack;
	r->tso = w->header.tso;
	r->lo = w->chunk_lo;
	r->hi = w->chunk_hi;
	return true;
}

// leave_chunk handles the moment in which the RTS changes chunks: it takes the underflow
// frame at w->sp as a chunk of its own if the thread's current chunk is the one that the
// frame leads to. False otherwise.
static NOINLINE int leave_chunk(struct walker *k, u64 stack)
{
	struct walk *w = k->walk;
	u64 frame[2];
	u8 why;
	if (READ_USER(frame, sizeof(frame), w->sp))
		return 0;
	struct cached_info *c = find_frame_table(k, frame[0], &why);
	if (!c || c->type != UNDERFLOW_FRAME || frame[1] != stack)
		return 0;
	w->chunk_lo = w->sp;
	w->chunk_hi = w->sp + sizeof(frame);
	w->window_words = 0;
	return 1;
}

// enter_haskell takes the STG machine's state from the registers. True if they hold a
// Haskell context, with w->sp inside the current stack chunk.
INLINE bool enter_haskell(struct walker *k, u64 base, u64 sp)
{
	struct walk *w = k->walk;
	u64 reg_table[BASE_READ_LEN / 8];
	u64 stack;
	if ((base & 7) || (sp & 7) || base == 0 || sp == 0)
		return false;
	if (READ_USER(reg_table, sizeof(reg_table), base + BASE_CURRENT_TSO))
		return false;
	if (!read_thread(k, reg_table[0], &stack))
		return false;
	// A strong invariant: registers of foreign code do not form a register table whose
	// thread's stack contains the stack pointer.
	w->sp = sp;
	if (UNLIKELY(!enter_running(w, stack)) && !leave_chunk(k, stack)) {
		w->header.tso = 0;
		return false;
	}
	w->header.capability = (u16)reg_table[(BASE_CAPABILITY_NO - BASE_CURRENT_TSO) / 8];
	w->task = reg_table[(BASE_RUNNING_TASK - BASE_CURRENT_TSO) / 8];
	w->base = base;
	return true;
}

// remember_thread stores the OS thread's Task, for its safe foreign calls.
INLINE void remember_thread(struct walk *w)
{
	u32 tid = w->header.tid, incarnation = w->layout.incarnation;
	struct noted_thread *noted = &w->noted[tid & (NOTED_THREADS - 1)];
	// Stored again now and then, because the map evicts entries.
	if (!w->task || (noted->tid == tid && noted->task == w->task && noted->incarnation == incarnation && w->number & 255))
		return;
	struct thread_state state = {.task = w->task, .incarnation = incarnation};
	if (NOTE_THREAD(tid, &state))
		return;
	noted->tid = tid;
	noted->task = w->task;
	noted->incarnation = incarnation;
}

// The thread control block of the C library (System V ABI, ELF Handling For Thread-Local Storage): its second word
// leads to the table of the modules' variables, with two words a module in glibc.
#define TCB_DTV 8
#define DTV_ENTRY 16
#define MAX_TLS_MODULES 4096

// task_by_variable gives the OS thread's Task as the run-time system itself finds it: in its variable my_task. 0 if that is
// not known, or is not yet set.
static NOINLINE u64 task_by_variable(struct walk *w)
{
	u64 at = w->layout.task_at, pointer, module, modules, variables, task;
	switch (w->layout.task_place) {
	case TASK_AT:
		if (w->header.tid != w->header.pid)
			return 0;
		break;
	case TASK_OFFSET:
		pointer = THREAD_POINTER();
		if (pointer == 0)
			return 0;
		at += pointer;
		break;
	case TASK_MODULE:
		pointer = THREAD_POINTER();
		if (pointer == 0 || READ_USER(&module, sizeof(module), w->layout.task_module) || module == 0 || module > MAX_TLS_MODULES ||
		    READ_USER(&modules, sizeof(modules), pointer + TCB_DTV) ||
		    READ_USER(&variables, sizeof(variables), modules + module * DTV_ENTRY) || (s64)variables <= 0)
			return 0;
		at += variables;
		break;
	default:
		return 0;
	}
	if (READ_USER(&task, sizeof(task), at) || (task & 7))
		return 0;
	return task;
}

// task_of_thread gives the OS thread's Task, 0 if it is not known.
INLINE u64 task_of_thread(struct walk *w)
{
	u32 tid = w->header.tid, incarnation = w->layout.incarnation;
	const struct noted_thread *noted = &w->noted[tid & (NOTED_THREADS - 1)];
	if (LIKELY(noted->tid == tid && noted->incarnation == incarnation))
		return noted->task;
	const struct thread_state *thread = FIND_THREAD(tid);
	return thread && thread->incarnation == incarnation ? thread->task : task_by_variable(w);
}

// held_capability notes the capability that this OS thread holds while it runs the run-time
// system's own code: the scheduler or a GC. During a safe foreign call it holds none.
static NOINLINE int held_capability(struct walk *w)
{
	u64 cap, words[2], task = task_of_thread(w);
	// Task.cap precedes Task.incall.
	if (task == 0 || READ_USER(&cap, sizeof(cap), task + w->layout.task_incall - sizeof(cap)) || cap == 0 || (cap & 7) ||
	    READ_USER(words, sizeof(words), cap + BASE_OF_CAPABILITY + BASE_CAPABILITY_NO))
		return 0;
	if (words[(BASE_RUNNING_TASK - BASE_CAPABILITY_NO) / 8] == task && (u32)words[0] < NO_CAPABILITY)
		w->header.capability = (u16)words[0];
	return 0;
}

// enter_suspended finds the Haskell thread that waits for the safe foreign call which this
// OS thread makes. Its stack is saved, so Sp is at a frame. If the call has called back into
// Haskell, the waiting thread is that of the enclosing InCall.
INLINE bool enter_suspended(struct walker *k)
{
	struct walk *w = k->walk;
	u64 incall, tso, stack, task = task_of_thread(w);
	if (task == 0 || READ_USER(&incall, sizeof(incall), task + w->layout.task_incall) ||
	    READ_USER(&tso, sizeof(tso), incall + INCALL_SUSPENDED_TSO))
		return false;
	// A read that faults costs as much as ten that do not.
	if (tso == 0 && (READ_USER(&incall, sizeof(incall), incall + INCALL_PREV_STACK) || incall == 0 ||
			 READ_USER(&tso, sizeof(tso), incall + INCALL_SUSPENDED_TSO)))
		return false;
	if (!read_thread(k, tso, &stack))
		return false;
	if (!enter_chunk(w, stack, &w->sp) || !sp_in_chunk(w)) {
		w->header.tso = 0;
		return false;
	}
	w->waiting = tso;
	w->task = task; // remembered
	return true;
}
