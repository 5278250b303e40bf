#!/usr/bin/env bash
# Undo install.sh and accounts.py: as root, deploy/server/remove.sh [FOLDER] [--with-homes].
# The folder goes, with the class in it: keep a copy of FOLDER/grader/class. Learners' homes stay, unless you say --with-homes.
set -euo pipefail
folder=$(realpath -m "${1:-/opt/undertorch}")
[ -d "$folder/state" ] || { echo "$folder is no class's server." >&2; exit 1; }
if [ -d /run/systemd/system ]; then
  systemctl disable --now undertorch-{proxy,hub,teacher} || true
  rm -f /etc/systemd/system/undertorch-{proxy,hub,teacher}.service
  systemctl daemon-reload
fi
gone() { # an account, once its last process has ended
  for _ in $(seq 50); do pkill -KILL -U "$1" || break; sleep 0.1; done
  userdel --force ${2:+--remove} "$1" 2>/dev/null || true
  if id "$1" >/dev/null 2>&1; then echo "The account $1 could not be removed." >&2; fi
}
# The accounts that accounts.py made; who joined the groups in another way keeps theirs.
for name in $(sort -u "$folder/state/made" 2>/dev/null); do gone "$name" "${2:-}"; done
gone undertorch-grader
for group in undertorch{,-teachers}; do groupdel $group || true; done
rm -rf "$folder"
