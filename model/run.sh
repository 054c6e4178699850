#!/usr/bin/env bash
# Checks the models of the protocol with spin (https://spinroot.com): each must have no error, and each of its broken
# variants must have one. On Debian and Ubuntu: apt-get install spin gcc
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# check MODEL [VARIANT]: prints a line, and fails if the model is refuted or the variant is not.
check() {
	local model=$1 variant=${2:-} errors states property
	spin ${variant:+-D"$variant"} -a "$here/$model.pml" >spin.out || { cat spin.out >&2; return 1; }
	gcc -O2 -DSAFETY -DVECTORSZ=2048 -o pan pan.c
	./pan -m1000000 >pan.out
	errors=$(sed -nE 's/.*errors: ([0-9]+).*/\1/p' pan.out)
	states=$(sed -nE 's/ *([0-9]+) states, stored.*/\1/p' pan.out)
	property=$(sed -nE 's/^pan:1: (.*) \(at depth.*/\1/p' pan.out)
	printf '%-6s %-10s %9s states  %s\n' "$model" "$variant" "$states" "${property:-no error}"
	if [[ -z $errors || ( -z $variant && $errors != 0 ) || ( -n $variant && $errors == 0 ) ]]; then
		cat pan.out >&2
		return 1
	fi
}

for model in lease guard inbox; do
	check "$model"
	sed -nE 's/^ \*   -D([A-Z_]+) .*/\1/p' "$here/$model.pml" >variants
	while read -r variant; do
		check "$model" "$variant"
	done <variants
done
