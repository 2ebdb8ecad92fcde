#!/usr/bin/env bash
# Prints the lines of layouts.txt: where fields are in each release and way, as the C compiler says of GHC's sources.
#
#   layouts.sh REPOSITORY HEADERS [TAG…]     REPOSITORY is a clone of GHC's; HEADERS the folder of the header files that an installed
#                                            GHC from 9.4 on has (ghcautoconf.h …), of which only what configure finds is used
set -euo pipefail
repository=$1 headers=$2
shift 2
tags=()
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ $# -gt 0 ] || mapfile -t tags < <(git -C "$repository" tag --list 'ghc-8.10.*-release' 'ghc-9.*-release' --sort=v:refname)
for tag in "$@" "${tags[@]}"; do
  tree=$work/tree generated=$work/generated include=rts/include parts=(rts)
  rm -rf "$tree" "$generated"
  mkdir -p "$tree" "$generated/rts"
  if git -C "$repository" cat-file -e "$tag:includes" 2>/dev/null; then # before 9.4
    include=includes parts=(rts includes)
  fi
  git -C "$repository" archive "$tag" "${parts[@]}" | tar -x -C "$tree"
  cp "$headers"/{ghcautoconf,ghcplatform,ghcversion,DerivedConstants}.h "$generated/"
  [ ! -e "$tree/rts/gen_event_types.py" ] ||
    python3 "$tree/rts/gen_event_types.py" --event-types-defines "$generated/rts/EventLogConstants.h"
  cat >"$work/probe.c" <<'C'
#include "rts/PosixSource.h"
#include "Rts.h"
#include "Capability.h"
#include <stddef.h>
#include <stdio.h>
#define SHOW(name, value) printf(" " name "=%ld", (long)(value))
#define FIELD(type, field) SHOW(#type "." #field, offsetof(type, field))
int main(void)
{
	FIELD(StgTSO, id);
	FIELD(StgTSO, why_blocked);
	SHOW("sizeof_why_blocked", sizeof(((StgTSO *)0)->why_blocked));
#ifdef LABELLED
	FIELD(StgTSO, label);
#endif
	SHOW("StgTSO", sizeof(StgTSO) / 8);
	FIELD(StgTSO, tot_stack_size);
#ifdef PROFILING
	FIELD(StgTSO, prof.cccs);
#endif
	FIELD(Capability, pinned_object_blocks);
	FIELD(Capability, total_allocated);
#ifdef THREADED_RTS
	FIELD(Capability, spark_stats);
#endif
	SHOW("StgTRecChunk", sizeof(StgTRecChunk) / 8);
	printf("\n");
}
C
  flags=(-w -DCOMPILING_RTS -DFS_NAMESPACE=rts "-I$generated" "-I$tree/$include" "-I$tree" "-I$tree/rts")
  ! grep -q label "$tree/$include/rts/storage/TSO.h" || flags+=(-DLABELLED)
  for way in v thr p thr_p; do
    case $way in
    v) defines=() ;;
    thr) defines=(-DTHREADED_RTS) ;;
    p) defines=(-DPROFILING) ;;
    thr_p) defines=(-DTHREADED_RTS -DPROFILING) ;;
    esac
    gcc "${flags[@]}" "${defines[@]}" -o "$work/probe" "$work/probe.c"
    release=${tag#ghc-}
    printf '%s %s' "${release%-release}" "$way"
    "$work/probe"
  done
done
