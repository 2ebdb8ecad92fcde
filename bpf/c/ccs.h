// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// Reading the cost-centre stack that a program of the profiling way is running on.
//
// Cost-centre stacks are never freed, so each is sent once. The names of cost centres lie in
// pages that need not be resident: user space reads them from the program's file.
#pragma once

#include "thread.h"

#define BASE_RUNNING_TASK_FROM_CCCS (BASE_RUNNING_TASK - BASE_CCCS)

// A stack has each cost centre only once, so no program's stack is deeper.
#define MAX_CCS_DEPTH 512

// ccs_key identifies a cost-centre stack: incarnation and address.
struct ccs_key {
	u64 ccs;
	u64 incarnation;
};

// ccs_words is the part of CostCentreStack that is read: from cc through depth.
struct ccs_words {
	u64 cc, prev, children, root, depth;
};

_Static_assert(__builtin_offsetof(struct ccs_words, prev) == CCS_PREV - CCS_CC, "CostCentreStack.prevStack");
_Static_assert(__builtin_offsetof(struct ccs_words, depth) == CCS_DEPTH - CCS_CC, "CostCentreStack.depth");

// cc_words is the part of CostCentre that is read: from label through is_caf.
struct cc_words {
	u64 label, module, srcloc, allocated, ticks;
	u8 is_caf;
};

_Static_assert(__builtin_offsetof(struct cc_words, module) == CC_MODULE - CC_LABEL, "CostCentre.module");
_Static_assert(__builtin_offsetof(struct cc_words, srcloc) == CC_SRCLOC - CC_LABEL, "CostCentre.srcloc");
_Static_assert(__builtin_offsetof(struct cc_words, is_caf) == CC_IS_CAF - CC_LABEL, "CostCentre.is_caf");

// running_ccs gives the address of the current cost-centre stack, 0 if it is not known. It
// is read from the register table if the registers of Haskell code are known; from the
// capability if a Task runs C for its capability (GC, the scheduler); and from the TSO if
// the thread waits for a safe foreign call.
INLINE u64 running_ccs(struct walker *k)
{
	struct walk *w = k->walk;
	u64 cap = 0, table[BASE_RUNNING_TASK_FROM_CCCS / 8 + 1], ccs = 0;
	if (!w->layout.tso_cccs)
		return 0;
	// A thunk's code first checks the heap, and only then takes the cost-centre stack that
	// the thunk was made on: the second word of its header.
	if (w->entered && !READ_USER(&ccs, sizeof(ccs), w->entered + 8) && ccs)
		return ccs;
	if (w->base) {
		if (READ_USER(&ccs, sizeof(ccs), w->base + BASE_CCCS))
			return 0;
		return ccs;
	}
	u64 task = task_of_thread(w);
	if (!task)
		return 0;
	// Task.cap is right before Task.incall. A Task that has released its capability still
	// points to it.
	if (!READ_USER(&cap, sizeof(cap), task + w->layout.task_incall - 8) && cap &&
	    !READ_USER(table, sizeof(table), cap + BASE_OF_CAPABILITY + BASE_CCCS) &&
	    table[BASE_RUNNING_TASK_FROM_CCCS / 8] == task)
		return table[0];
	if (w->waiting && READ_USER(&ccs, sizeof(ccs), w->waiting + w->layout.tso_cccs))
		return 0;
	return ccs;
}

// read_ccs fills in a cost-centre stack's record, and sets why if the stack or the one below
// it cannot be used.
INLINE void read_ccs(struct ccs_record *r)
{
	struct ccs_words s;
	struct cc_words c;
	u64 below;
	r->why = CCS_UNREADABLE;
	r->prev = r->cc = r->label = r->module = r->srcloc = 0;
	r->is_caf = 0;
	if ((r->ccs & 7) || READ_USER(&s, sizeof(s), r->ccs + CCS_CC))
		return;
	if ((s.cc & 7) || READ_USER(&c, sizeof(c), s.cc + CC_LABEL))
		return;
	r->cc = s.cc;
	r->label = c.label;
	r->module = c.module;
	r->srcloc = c.srcloc;
	r->is_caf = c.is_caf != 0;
	r->why = CCS_WHOLE;
	if (s.prev == 0)
		return;
	if ((s.prev & 7) || READ_USER(&below, sizeof(below), s.prev + CCS_DEPTH)) {
		r->why = CCS_UNREADABLE;
		return;
	}
	// Depth decreases by one with each step down, so there can be no cycle.
	if (below + 1 != s.depth) {
		r->why = CCS_IMPLAUSIBLE;
		return;
	}
	r->prev = s.prev;
}
