// Package bpf contains the stack walker that runs in the kernel, and loads it.
//
// The C code in c/ is the source of truth: record.h for what is exchanged with user space,
// walk.h for the STG stack walk, sample.bpf.c for the program itself. Go's copies of types
// and constants, and the objects, are generated from it and committed, so building needs no
// clang.
package bpf

//go:generate go run ccagent/internal/ghc/header c/ghc.h
//go:generate go tool bpf2go -cc clang -strip llvm-strip -target amd64,arm64 -go-package bpf -type sample_header -type process_layout -type walk -type walk_stats -type frame_kind -type stop_reason -type record_type -type sample_flags -type alloc_site -type alloc_origin -type alloc_account -type ccs_record -type ccs_why -type ticky_record -type thread_time -type transaction_end -type transaction_window -type transaction_account -type thunk_state -type task_place -type unwind_row -type unwind_bucket sampler c/sample.bpf.c -- -O2 -mcpu=v3 -Wall -Wextra -Wno-unused-parameter -Werror
//go:generate go tool bpf2go -cc clang -strip llvm-strip -target amd64,arm64 -go-package bpf -type rts_globals -type rts_counts -type rts_probe -type rts_group -type rts_gc_word timeline c/timeline.bpf.c -- -O2 -mcpu=v3 -Wall -Wextra -Wno-unused-parameter -Werror
//go:generate go tool bpf2go -cc clang -strip llvm-strip -target amd64,arm64 -go-package bpf -type nursery_layout -type nursery_counts -type block_record nursery c/nursery.bpf.c -- -O2 -mcpu=v3 -Wall -Wextra -Wno-unused-parameter -Werror
//go:generate go tool bpf2go -cc clang -strip llvm-strip -target amd64,arm64 -go-package bpf -type hold_state hold c/hold.bpf.c -- -O2 -mcpu=v3 -Wall -Wextra -Wno-unused-parameter -Werror
//go:generate go tool bpf2go -cc clang -strip llvm-strip -target amd64,arm64 -go-package bpf -type leader_wish -type leader_state -type leader_record leader c/leader.bpf.c -- -O2 -mcpu=v3 -Wall -Wextra -Wno-unused-parameter -Werror
//go:generate go tool bpf2go -cc clang -strip llvm-strip -target amd64,arm64 -go-package bpf -type thread_registers registers c/registers.bpf.c -- -O2 -mcpu=v3 -Wall -Wextra -Wno-unused-parameter -Werror
