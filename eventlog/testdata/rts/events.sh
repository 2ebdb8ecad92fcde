#!/usr/bin/env bash
# Prints the lines of events.txt: each release's events with their sizes (-1: each event carries its own), and what the bands of a heap
# profile may be, as the C compiler says of GHC's sources.
#
#   events.sh REPOSITORY HEADERS [TAG…]      REPOSITORY is a clone of GHC's; HEADERS the folder of the header files that an installed
#                                            GHC has (ghcautoconf.h …)
set -euo pipefail
repository=$1 headers=$2
shift 2
mapfile -t tags < <(git -C "$repository" tag --list 'ghc-9.*-release' --sort=v:refname)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for tag in "${tags[@]}" "$@"; do
  git -C "$repository" cat-file -e "$tag:rts/gen_event_types.py" 2>/dev/null || continue # before 9.4
  rm -rf "$work/tree" "$work/generated"
  mkdir -p "$work/tree" "$work/generated/rts"
  git -C "$repository" archive "$tag" rts | tar -x -C "$work/tree"
  cp "$headers"/{ghcautoconf,ghcplatform,ghcversion,DerivedConstants}.h "$work/generated/"
  generator=$work/tree/rts/gen_event_types.py
  python3 "$generator" --event-types-defines "$work/generated/rts/EventLogConstants.h"
  python3 "$generator" --event-types-array "$work/generated/types.h"
  {
    cat <<'C'
#include "Rts.h"
#include "rts/EventLogFormat.h"
#include <stdio.h>
typedef struct { int etNum; int size; const char *desc; } EventType;
#include "types.h"
int main(void)
{
	for (unsigned i = 0; i < sizeof eventTypes / sizeof *eventTypes; i++)
		if (eventTypes[i].desc)
			printf(" %d:%d", eventTypes[i].etNum, (short)eventTypes[i].size);
C
    grep -o 'HEAP_PROF_BREAKDOWN_[A-Z_]*' "$work/tree/rts/include/rts/EventLogFormat.h" |
      sed 's/HEAP_PROF_BREAKDOWN_\(.*\)/\tprintf(" \1=%d", &);/'
    printf '\tprintf("\\n");\n}\n'
  } >"$work/probe.c"
  gcc -w "-I$work/generated" "-I$work/tree/rts/include" -o "$work/probe" "$work/probe.c"
  release=${tag#ghc-}
  [ "$release" != master ] || release=9.15
  printf '%s' "${release%-release}"
  "$work/probe"
done
