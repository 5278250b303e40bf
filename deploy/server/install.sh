#!/usr/bin/env bash
# Make this Linux computer a class's server, or bring it up to date: as root, deploy/server/install.sh [FOLDER].
# docs/classroom.md leads through it. What it changes on the computer, all of which remove.sh undoes:
#   FOLDER (/opt/undertorch)     the course, its Python environment, the proxy, settings, tokens, exchange, the class
#   /etc/systemd/system          undertorch-proxy, undertorch-hub, undertorch-teacher (none where systemd does not run)
#   accounts                     groups undertorch and undertorch-teachers, user undertorch-grader
set -euo pipefail
umask 022
folder=$(realpath -m "${1:-/opt/undertorch}")
course=$(realpath "$(dirname "$0")/../..")
python=${PYTHON:-/usr/bin/python3} # not pyenv's or conda's: what lies in root's home nobody else can read

[ "$(id -u)" = 0 ] || { echo "install.sh has to be root's: it makes accounts." >&2; exit 1; }
for program in "$python" npm newusers setpriv unshare newuidmap; do
  command -v "$program" >/dev/null || { echo "There is no $program. Debian and Ubuntu: apt install python3-venv npm uidmap" >&2; exit 1; }
done

for group in undertorch undertorch-teachers; do groupadd --force "$group"; done
# The class's own account: nobody logs in as it. Subordinate users, of which one runs what was handed in.
id undertorch-grader >/dev/null 2>&1 || useradd --system --add-subids-for-system --no-create-home --home-dir "$folder/grader" --shell /bin/bash undertorch-grader

mkdir -p "$folder"/{course,etc,bin,state,exchange,grader}
chmod 700 "$folder/state" "$folder/grader"
chown undertorch-grader: "$folder/grader"

# The course, read-only for everybody but root.
for part in engine course notebooks exercises solutions docs requirements; do rm -rf "$folder/course/$part"; done
tar -C "$course" --exclude=__pycache__ --exclude=.lab -c engine course notebooks exercises solutions docs requirements \
  pyproject.toml README.md LICENSE LICENSE-docs | tar -C "$folder/course" --no-same-owner -x
lock=$folder/course/requirements/hub.txt
by="$python: $("$python" -V)" # it chose from the lock: another version would have taken other packages
[ "$by" = "$(cat "$folder/venv/python.txt" 2>/dev/null)" ] || rm -rf "$folder/venv"
if ! cmp -s "$lock" "$folder/venv/hub.txt"; then # the copy is of what was installed last
  "$python" -m venv "$folder/venv"
  echo "$by" >"$folder/venv/python.txt"
  "$folder/venv/bin/python" -m pip install --quiet --require-hashes -r "$lock"
  cp "$lock" "$folder/venv"
fi
"$folder/venv/bin/python" -m compileall -q "$folder/course/engine" "$folder/course/course"
proxy=5.3.0
grep -qs "\"version\": \"$proxy\"" "$folder/node_modules/configurable-http-proxy/package.json" ||
  npm install --loglevel=error --no-fund --prefix "$folder" "configurable-http-proxy@$proxy"

here=$folder/course/deploy/server
mkdir -p "$here" && cp -r "$course/deploy/server/." "$here"
cp -r "$here"/{jupyterhub_config.py,nbgrader_config.py,learner,pages,teacher} "$folder/etc"
sed "1i #!$folder/venv/bin/python" "$here/accounts.py" >"$folder/bin/accounts"
install -m 755 "$here/undertorch" "$folder/bin/undertorch"
chmod 755 "$folder/bin/accounts"
chmod -R go-w,a+rX "$folder/course" "$folder/etc" "$folder/bin"

# Everybody may put into these, and list nothing; `1` keeps them from each other's. nbgrader finds them made.
install -d -m 1777 "$folder/exchange"
own="-o undertorch-grader -g undertorch-grader"
install -d $own -m 755 "$folder/exchange/undertorch"{,/outbound}
install -d $own -m 1733 "$folder/exchange/undertorch/inbound"
install -d $own -m 711 "$folder/exchange/undertorch/feedback"

[ -e "$folder/grader/class/class.json" ] || runuser -u undertorch-grader -- "$folder/bin/undertorch" class new >/dev/null

# Secrets, made once: the proxy's, and those of the teachers' server.
secret() { od -An -N32 -tx1 /dev/urandom | tr -d ' \n'; }
umask 077
[ -e "$folder/state/ports.env" ] || echo "UNDERTORCH_PORT=${UNDERTORCH_PORT:-8000}" >"$folder/state/ports.env"
[ -e "$folder/state/proxy.env" ] || echo "CONFIGPROXY_AUTH_TOKEN=$(secret)" >"$folder/state/proxy.env"
[ -e "$folder/state/teacher.env" ] || echo "JUPYTERHUB_API_TOKEN=$(secret)" >"$folder/state/teacher.env"
umask 022

# The units' numbers: four ports from the first on, the folder, and the address.
. "$folder/state/ports.env"
mkdir -p "$folder/units"
host=${UNDERTORCH_HOST:-} # https://hub.example.org: then https://NAME.hub.example.org is one learner's
fill="s|@FOLDER@|$folder|g; s|@PROXY@|$UNDERTORCH_PORT|g; s|@API@|$((UNDERTORCH_PORT + 1))|g
  s|@HUB@|${UNDERTORCH_HUB_PORT:-$((UNDERTORCH_PORT + 2))}|g; s|@TEACHER@|$((UNDERTORCH_PORT + 3))|g
  s|@HOST@|$host|; s|@ROUTES@|${host:+--host-routing}|; s|@CLASS@|${host/:\/\//:\/\/class--service.}|"
for unit in "$here"/units/*.service; do sed "$fill" "$unit" >"$folder/units/${unit##*/}"; done
echo "The course is in $folder."
if [ -d /run/systemd/system ]; then
  for unit in ${UNDERTORCH_UNITS:-proxy hub teacher}; do  # The Littlest JupyterHub has a proxy and a hub of its own
    cp "$folder/units/undertorch-$unit.service" /etc/systemd/system
    systemctl daemon-reload
    systemctl enable --quiet "undertorch-$unit"
    systemctl restart "undertorch-$unit"
  done
  echo "The hub answers at http://127.0.0.1:$UNDERTORCH_PORT; deploy/server/Caddyfile gives it an address and https."
fi
echo "Next: $folder/bin/accounts ROSTER.csv"
