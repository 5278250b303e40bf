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
# The accounts that accounts.py made; who joined the groups in another way keeps theirs.
for name in $(sort -u "$folder/state/made" 2>/dev/null); do
  pkill -KILL -U "$name" || true
  userdel ${2:+--remove} "$name" 2>/dev/null || true
done
pkill -KILL -U undertorch-grader || true
userdel undertorch-grader || true
groupdel undertorch || true
groupdel undertorch-teachers || true
rm -rf "$folder"
