# Makes and undoes changes of this host. FOLDER, NAMESPACE and DEVICE locate the record of how to undo them.
# Each line of the input is a change; the answer is a line: `ok` or an error message. At the end of the input, when the
# process at the other end has ended in any way, everything is undone. Signals must not end the script before that.
# Whoever can open the lock can hold it.
umask 077
trap '' HUP INT TERM PIPE QUIT USR1 USR2
set -f
# Whoever starts the script passes a socket to the kernel's connection tracking as its standard error.
exec 8>&2 2>/dev/null
folder=$1 namespace=$2 device=$3
own=$folder/$namespace-$device.undo

# Sends messages to connection tracking: their octets, as escapes of `printf`. A message must be in one write. Some
# shells, such as bash, write at the end of each line, and an octet of an address may be one; `dd` gathers everything.
forget() {
    # shellcheck disable=SC2059
    printf "$1" | dd obs=65536 >&8
}

# Succeeds if a table has this number of rules. The lines of its chains and sets have a handle too, after a brace.
guard() {
    [ "$(nft -a list table inet "$1" | grep -c '[^{] # handle')" = "$2" ]
}

apply() {
    kind=$1
    shift
    case $kind in
        ip) ip "$@" ;;
        nft) nft "$*" ;;
        sysctl) printf '%s' "$2" >"/proc/sys/net/$1" ;;
        forget) forget "$1" ;;
        guard) guard "$@" ;;
        *) echo "unknown change: $kind"; false ;;
    esac
}

while read -r line; do
    # shellcheck disable=SC2086
    if message=$(apply $line 2>&1); then message=ok; fi
    # In one line, and without another program, which may be missing.
    # shellcheck disable=SC2086
    echo ${message:-it failed without a message}
done 2>/dev/null

# If another of our programs still needs the variable, the last one restores it.
shared() {
    set +f
    for other in "$folder/$namespace"-*.undo; do
        if [ "$other" != "$own" ] && grep -qF "sysctl $1 " "$other"; then return 0; fi
    done
    return 1
}

restore() {
    shared "$1" && return
    # Another program has made this host a router meanwhile, and needs the variable too.
    if [ -n "$4" ] && [ "$(cat "/proc/sys/net/$4")" = 1 ]; then return; fi
    if [ "$(cat "/proc/sys/net/$1")" = "$2" ]; then printf '%s' "$3" >"/proc/sys/net/$1"; fi
}

# Succeeds if there is no such table. Whoever may not list the tables learns nothing.
gone() {
    tables=$(nft list tables) && ! printf '%s\n' "$tables" | grep -qxF "table inet $1"
}

# Changes that cannot be undone now stay in the record, and the next janitor tries again.
lacks() {
    while read -r kind rest; do
        case $kind in
            rule | lookup | table) command -v ip >/dev/null || return 0 ;;
            filter) command -v nft >/dev/null || return 0 ;;
        esac
    done <"$own"
    return 1
}
if [ -e "$own" ] && lacks; then exit 3; fi 2>/dev/null

# A process that makes a plan sees all of these changes or none.
exec 9>>"$folder/lock"
flock -w 30 9
left=
while read -r kind first second third fourth; do
    case $kind in
        rule) ip "-$first" rule del from "$second" lookup "$third" priority "$fourth" ;;
        # shellcheck disable=SC2086
        lookup) ip "-$first" rule del $fourth lookup "$second" priority "$third" ;;
        table) ip "-$first" route flush table "$second" ;;
        sysctl) restore "$first" "$second" "$third" "$fourth" ;;
        forget) forget "$first" ;;
        filter) nft delete table inet "$first" || gone "$first" || left=1 ;;
    esac
done <"$own" 2>/dev/null
[ -z "$left" ] || exit 3
rm -f "$own" "$folder/$namespace-$device.alive"
