#!/bin/sh
# check_cases.sh ROOT: each test that CASES.md names is in its file, each file exists, and the numbers rise.
set -eu
root=$1
cases=$root/test/CASES.md
bad=0
complain() {
    echo "CASES.md: $1" >&2
    bad=1
}

references=$(mktemp)
trap 'rm -f "$references"' EXIT
# On one line each: a reference may be broken at its end.
tr '\n' ' ' <"$cases" | tr -s ' ' | grep -oE '`[^` ]+`: "[^"]+"' >"$references"
while IFS= read -r reference; do
    file=${reference#\`}
    file=${file%%\`*}
    name=${reference#*: \"}
    name=${name%\"}
    case $file in
    *.ml) wanted="\"$name" ;;
    *) wanted=$name ;;
    esac
    if [ ! -f "$root/$file" ]; then
        complain "there is no $file"
    elif ! grep -qF -e "$wanted" "$root/$file"; then
        complain "$file has no \"$name\""
    fi
done <"$references"

numbers=$(grep -oE '^[0-9]+\.' "$cases" | tr -d .)
[ "$(printf '%s\n' "$numbers" | sort -nu)" = "$numbers" ] || complain "the numbers do not rise"
count=$(wc -l <"$references")
[ "$count" -ge 60 ] || complain "only $count references were found"
[ "$bad" = 0 ] && echo "CASES.md: $count references, $(printf '%s\n' "$numbers" | wc -l) cases"
exit "$bad"
